import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { endTask } from './notify.ts';
import { getWaiter, isTask, withdrawn } from './waiters.ts';
import { type Asker, flagCancelled } from './waiting-calls.ts';

/**
 * Withdraws the waiter of a grant that came after the look at the line. A call must be answered that it was withdrawn, and not that its wait is over.
 * A task was not notified of its grant, and would never end.
 * @param asker with the key of the line
 * @returns whether its row was still there
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable also if Step Functions gave no answer about the task
 */
export async function withdrawWaiter(
  dependencies: LeaseDependencies,
  { asker, ticket }: { asker: Asker; ticket: string },
  call: Call,
): Promise<boolean> {
  const name = { key: asker.key, ticket };
  if (await flagCancelled(dependencies, { name, asker }, call)) return true;
  const row = await getWaiter(dependencies, name, call);
  if (!row || !isTask(row)) return false;
  await endTask(dependencies, { waiter: row, error: withdrawn(asker.key) }, call);
  return true;
}
