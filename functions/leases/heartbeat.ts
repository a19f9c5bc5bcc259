import { lambdaFunction } from '../../shared/lambda/function.ts';
import { heartbeat as run } from '../../shared/locks/calls/heartbeat.ts';
import { heartbeatInput, LEASE_NAME_FIELDS } from '../../shared/locks/calls/inputs.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const heartbeat = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'heartbeat',
    input: heartbeatInput(),
    nameFields: LEASE_NAME_FIELDS,
    run: run(dependencies),
    logged: ['key', 'holder', 'fence', 'reason'],
  });

export const handler = heartbeat();
