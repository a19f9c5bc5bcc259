import { batches } from '../../shared/lambda/batches.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAME_FIELDS } from '../../shared/lambda/stored-names.ts';
import { repairInput } from '../../shared/locks/calls/inputs.ts';
import { repairLines } from '../../shared/locks/calls/repair.ts';
import {
  type LeaseDependencies,
  leasesFromEnvironment,
  waitEventsFromEnvironment,
} from '../../shared/locks/dependencies.ts';

/** The schedule calls this function for all lines, and the queue of delayed messages calls it for one key at a time. */
export const repairQueues = (
  dependencies: LeaseDependencies = { ...leasesFromEnvironment(), waitEvents: waitEventsFromEnvironment() },
) =>
  batches(
    lambdaFunction({
      name: 'repairQueues',
      input: repairInput(),
      nameFields: NO_NAME_FIELDS,
      queued: true,
      ofDeployment: true,
      run: repairLines(dependencies),
      logged: ['key', 'keys', 'granted', 'notified', 'unanswered', 'complete'],
    }),
  );

export const handler = repairQueues();
