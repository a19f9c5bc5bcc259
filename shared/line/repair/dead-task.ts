import { SendTaskHeartbeatCommand } from '@aws-sdk/client-sfn';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { Questions } from '../executions/questions.ts';
import { sendToTask } from '../notify.ts';
import { deleteTicket, isTask, type Ticket } from '../waiters.ts';

/** Most tasks that are first in line do not wait for longer. */
const ASKED_AFTER_MS = 60_000;

/**
 * Takes a task out of the line that keeps those behind it out, if Step Functions accepts no message for the task any more
 * (docs/protocols/pools.md#repair). A heartbeat is the only message to a task that does not end the task. Step Functions then begins to count the
 * `HeartbeatSeconds` of its state again.
 * @param ticket the first in line, which does not fit
 * @returns whether its row is gone
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable
 */
export async function dropDeadTask(
  dependencies: LeaseDependencies,
  { ticket, questions }: { ticket: Ticket; questions: Questions },
  call: Call,
): Promise<boolean> {
  if (!isTask(ticket) || ticket.parkedAt + ASKED_AFTER_MS > dependencies.clock.now()) return false;
  if (questions.left-- <= 0) return false;
  const command = new SendTaskHeartbeatCommand({ taskToken: ticket.taskToken });
  if ((await sendToTask(dependencies, command, call)) !== 'gone') return false;
  await deleteTicket(dependencies, ticket, call);
  return true;
}
