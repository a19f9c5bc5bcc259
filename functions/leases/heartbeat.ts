import { lambdaFunction } from '../../shared/lambda/function.ts';
import { heartbeat as run } from '../../shared/locks/calls/heartbeat.ts';
import { heartbeatInput, LEASE_NAMES } from '../../shared/locks/calls/inputs.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const heartbeat = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'heartbeat',
    input: heartbeatInput(),
    names: LEASE_NAMES,
    run: run(dependencies),
    logged: ['key', 'holder', 'fence', 'reason'],
  });

export const handler = heartbeat();
