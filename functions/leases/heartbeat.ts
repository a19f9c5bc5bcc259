import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';
import { heartbeater } from '../../shared/leases/heartbeat.ts';
import { heartbeatInput } from '../../shared/leases/inputs.ts';
import { LEASE_NAMES } from '../../shared/leases/names.ts';
import { extendPermitOr } from '../../shared/leases/pools/routing/heartbeat.ts';

export const heartbeat = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'heartbeat',
    input: heartbeatInput(),
    names: LEASE_NAMES,
    run: extendPermitOr(dependencies, heartbeater(dependencies)),
    logged: ['key', 'holder', 'fence', 'reason'],
  });

export const handler = heartbeat();
