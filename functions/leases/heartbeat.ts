import { lambdaFunction } from '../../shared/lambda/function.ts';
import { heartbeater } from '../../shared/leases/heartbeat.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { heartbeatInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { extendPermitOr } from '../../shared/locks/routing/heartbeat.ts';

export const heartbeat = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'heartbeat',
    input: heartbeatInput(),
    names: LEASE_NAMES,
    run: extendPermitOr(dependencies, heartbeater(dependencies)),
    logged: ['key', 'holder', 'fence', 'reason'],
  });

export const handler = heartbeat();
