import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { heartbeat as run } from '../../shared/locks/heartbeat.ts';
import { heartbeatInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';

export const heartbeat = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'heartbeat',
    input: heartbeatInput(),
    names: LEASE_NAMES,
    run: run(dependencies),
    logged: ['key', 'holder', 'fence', 'reason'],
  });

export const handler = heartbeat();
