import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { Questions } from '../executions/questions.ts';
import { executionState } from '../executions/state.ts';
import { type Delivery, sendHeartbeat } from '../message.ts';
import { deleteWaiter, isTask, type Waiter, type WaitingTask } from '../waiters.ts';

/** Most tasks that are first in line do not wait for longer. */
const ASKED_AFTER_MS = 60_000;

/**
 * Takes a task out of the line that keeps those behind it out, if Step Functions accepts no message for the task any more
 * (docs/protocols/tasks.md#dead-tasks). A heartbeat is the only message to a task that does not end the task. Step Functions then begins to count the
 * `HeartbeatSeconds` of its state again. Once Step Functions throttles, the run asks no more.
 * @param waiter the first in line, which does not fit
 * @returns whether its row is gone
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable
 */
export async function dropDeadTask(
  dependencies: LeaseDependencies,
  { waiter, questions }: { waiter: Waiter; questions: Questions },
  call: Call,
): Promise<boolean> {
  if (!isTask(waiter) || waiter.parkedAt + ASKED_AFTER_MS > dependencies.clock.now()) return false;
  if (questions.tasks-- <= 0) {
    questions.isCutShort = true;
    return false;
  }
  const delivery = await liveness(dependencies, waiter, call);
  if (delivery === 'throttled') questions.tasks = 0;
  if (delivery !== 'gone') return false;
  await deleteWaiter(dependencies, waiter, call);
  return true;
}

/**
 * Asks whether a task is alive by a heartbeat. After a heartbeat, a callback would time out without further ones, so for a callback this asks about the
 * execution instead. The execution is older than the callback. So if AWS does not find it after `ASKED_AFTER_MS`, it has ended, or its function was deleted.
 */
async function liveness(
  dependencies: LeaseDependencies,
  { taskToken, execution }: WaitingTask,
  call: Call,
): Promise<Delivery | 'throttled'> {
  if (taskToken !== undefined) return sendHeartbeat(dependencies, taskToken, call);
  if (execution === undefined) return 'unanswered';
  try {
    const state = await executionState(dependencies, execution, call);
    return state === 'ended' || state === 'missing' ? 'gone' : 'delivered';
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return error.code === 'Throttled' ? 'throttled' : 'unanswered';
  }
}
