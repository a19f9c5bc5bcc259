import { lambdaFunction } from '../../shared/lambda/function.ts';
import { LEASE_NAME_FIELDS, runNextInput } from '../../shared/locks/calls/inputs.ts';
import { runNext as run } from '../../shared/locks/calls/run-next.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const runNext = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'runNext',
    input: runNextInput(),
    nameFields: LEASE_NAME_FIELDS,
    run: run(dependencies),
    logged: ['key', 'ticket', 'moved', 'before', 'reason'],
    audited: true,
  });

export const handler = runNext();
