import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { Kind } from '../kind.ts';
import { canNotify } from '../message.ts';
import { isOverdue, isTask, readWaiters, type WaitingTask } from '../waiters.ts';

/**
 * The next task in line that may receive a bound grant of its own execution, because the task of that grant is gone
 * (docs/protocols/bound.md#a-grant-that-reached-no-task). All other waiters wait for the end of the execution.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function successorOf(
  dependencies: LeaseDependencies,
  { key, kind, execution }: { key: string; kind: Kind; execution: string },
  call: Call,
): Promise<WaitingTask | undefined> {
  const ofExecution = {
    FilterExpression: 'execution = :execution',
    ExpressionAttributeValues: { ':execution': text(execution) },
  };
  for await (const waiter of readWaiters(dependencies, { key, kind, ...ofExecution }, call)) {
    if (!isTask(waiter) || !waiter.bound || isOverdue(waiter, dependencies.clock.now())) continue;
    if (await canNotify(dependencies, waiter)) return waiter;
  }
  return undefined;
}
