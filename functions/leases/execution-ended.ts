import { batches } from '../../shared/lambda/batches.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAME_FIELDS } from '../../shared/lambda/stored-names.ts';
import { executionEndedInput } from '../../shared/locks/calls/inputs.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { freeEndedExecution } from '../../shared/locks/executions/ended.ts';

/**
 * The rule calls this function at once for the end of an execution, and the queue that delays the same event calls it
 * again.
 */
export const executionEnded = (dependencies = leasesFromEnvironment()) =>
  batches(
    lambdaFunction({
      name: 'executionEnded',
      input: executionEndedInput(),
      nameFields: NO_NAME_FIELDS,
      queued: true,
      ofDeployment: true,
      run: freeEndedExecution(dependencies),
      logged: ['execution', 'again', 'status', 'tickets', 'freed', 'graced', 'kept'],
    }),
  );

export const handler = executionEnded();
