import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import type { Granted, Outcome } from '../permits/permit-request.ts';
import type { PoolRecord } from '../permits/record.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { DEFAULT_QUOTAS } from './limits/quotas.ts';
import type { Lock } from './lock.ts';
import { deadlineOf, isBackInLine } from './times.ts';

// Plain calls load this file. So this file loads the rest of the line only for a call that waits.

interface Asking {
  /** One try, without waiting. */
  attempt(): Promise<Outcome>;
  /** Asks about the executions of bound holders. @returns whether a grant has ended, so that another try is worth it */
  look(record: PoolRecord): Promise<boolean>;
  /** Builds the lock, only if the call waits or gives up its grant. @param record the current record after the first try */
  lock(record: PoolRecord): Promise<Lock>;
  /** The error LeaseHeld. */
  held(record: PoolRecord): HoldfastError;
  waitSeconds: number;
  /** True if the call waits in line. False if it races. */
  fair: boolean;
  /** The waiter of an earlier call of the request. */
  ticket: string | undefined;
  arrivedAt: number;
}

/**
 * Tries once. Then waits in line (wait.ts) or races (race.ts), no longer than the deployment allows (`maxWaitSeconds`). A call that would use up the
 * reserved concurrency does not wait. A call that does not wait looks at bound holders, and tries once more if that has ended a grant.
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function tryThenWait(dependencies: LeaseDependencies, asking: Asking, call: Call): Promise<Granted> {
  const { waitSeconds, fair, ticket, arrivedAt, held } = asking;
  const first = await asking.attempt();
  const now = dependencies.clock.now();
  const deadline = deadlineOf(dependencies, { waitSeconds, arrivedAt, now }, call);
  const isLate = deadline <= now;
  const isBack = isBackInLine(dependencies, { waitSeconds, fair, ticket });
  const isRefused = !first.won && isLate && !isBack;
  // A call that waits looks later, beside its wait: a slow answer here would cost it its position.
  const outcome = isRefused && (await asking.look(first.record)) ? await asking.attempt() : first;
  if (outcome.won) {
    if (ticket === undefined) return outcome;
    const { leaveAfterGrant } = await import('./leave.ts');
    const lock = await asking.lock(outcome.record);
    await leaveAfterGrant({ dependencies, lock, call }, { granted: outcome, ticket });
    return outcome;
  }
  const { record } = outcome;
  if (isRefused) throw held(record);
  const wait = async (): Promise<Granted> => {
    const at = { dependencies, lock: await asking.lock(record), call };
    if (!fair) {
      const { race } = await import('./race.ts');
      return race(at, { heldBy: record, deadline, attempt: asking.attempt });
    }
    const { waitInLine } = await import('./wait.ts');
    return waitInLine(at, { ticket, deadline: Math.max(deadline, now) });
  };
  const { acquireConcurrency: concurrency } = dependencies.quotas ?? DEFAULT_QUOTAS;
  if (concurrency === undefined || isLate) return wait();
  const { countedWait } = await import('./limits/concurrent-waits.ts');
  const counted = { deadline, isBack, concurrency, held: () => held(record), wait };
  return countedWait(dependencies, counted, call);
}
