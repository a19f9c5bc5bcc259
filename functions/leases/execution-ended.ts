import { batches } from '../../shared/lambda/batches.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAME_FIELDS } from '../../shared/lambda/stored-names.ts';
import { executionEndedInput } from '../../shared/locks/calls/inputs.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { endExecution } from '../../shared/locks/executions/ended.ts';

/** Called by the rule at once, and again by the queue that delays the rule's events. */
export const executionEnded = (dependencies = leasesFromEnvironment()) =>
  batches(
    lambdaFunction({
      name: 'executionEnded',
      input: executionEndedInput(),
      nameFields: NO_NAME_FIELDS,
      queued: true,
      ofDeployment: true,
      run: endExecution(dependencies),
      logged: ['execution', 'again', 'status', 'tickets', 'freed', 'graced', 'kept'],
    }),
  );

export const handler = executionEnded();
