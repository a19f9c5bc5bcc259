import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { canNotify } from '../message.ts';
import { isOverdue, isTask, readWaiters, type WaitingTask } from '../waiters.ts';

interface Times {
  acquiredAt?: number | undefined;
  heartbeatAt?: number | undefined;
  answeredAt?: number | undefined;
}

/**
 * Whether perhaps nobody was notified of a bound grant whose task is gone. Its holder knows of a grant that has had a heartbeat, or that a later task of
 * the request has received. Messages do not move the times of a bound grant.
 */
export const mayBeUnnotified = ({ acquiredAt, heartbeatAt, answeredAt }: Times): boolean =>
  answeredAt === undefined && heartbeatAt === acquiredAt;

/**
 * The next task in line that may receive a bound grant whose own task is gone (docs/protocols/bound.md#a-grant-that-reached-no-task): a bound task of the same
 * execution. All other waiters wait for the end of the execution.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function successorOf(
  dependencies: LeaseDependencies,
  { key, execution }: { key: string; execution: string },
  call: Call,
): Promise<WaitingTask | undefined> {
  const ofExecution = {
    FilterExpression: 'execution = :execution',
    ExpressionAttributeValues: { ':execution': text(execution) },
  };
  for await (const waiter of readWaiters(dependencies, { key, ...ofExecution }, call)) {
    if (!isTask(waiter) || !waiter.bound || isOverdue(waiter, dependencies.clock.now())) continue;
    if (await canNotify(dependencies, waiter)) return waiter;
  }
  return undefined;
}
