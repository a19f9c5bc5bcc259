import type { Granted, Outcome } from '../permits/permit-request.ts';
import type { PoolRecord } from '../permits/record.ts';
import type { Ids } from '../surroundings/ids.ts';
import { isGrant } from './claim.ts';
import type { LockCall } from './lock.ts';
import { looksBeside, pollRecord } from './look.ts';

/** The pauses of a racing call grow from about MIN_PAUSE_MS to MAX_PAUSE_MS. */
const MIN_PAUSE_MS = 25;
const MAX_PAUSE_MS = 250;

/** The pause between tries while there is a mark. Each try then reads the line, and gets a grant only if no waiter in the line can be served. */
const BESIDE_LINE_MS = 1000;

interface Racing {
  /** The record that refused the first try. */
  heldBy: PoolRecord;
  /** When the call stops waiting, in epoch milliseconds. */
  deadline: number;
  attempt(): Promise<Outcome>;
}

/**
 * Waits outside the line (`fair: false`): polls until the lock looks free, and tries again. A race costs less than a position in line, and
 * the caller that looks first gets the grant.
 * @throws HoldfastError LeaseHeld at the deadline, and the errors of a try
 */
export async function race(at: LockCall, { heldBy, ...racing }: Racing): Promise<Granted> {
  const { clock, ids } = at.dependencies;
  const pauses = jitteredPauses(ids);
  const look = looksBeside(at.lock);
  for (let record = heldBy; ; ) {
    await untilItLooksFree(at, { ...racing, heldBy: record, pauses, look, triedAt: clock.now() });
    const outcome = await racing.attempt();
    if (outcome.won) return outcome;
    record = outcome.record;
  }
}

interface Round extends Racing {
  pauses: Iterator<number, never>;
  look: ReturnType<typeof looksBeside>;
  triedAt: number;
}

/** Polls until the lock looks free. Sleeps until the holder's expiry, or for a jittered pause if the pause is shorter. */
async function untilItLooksFree(
  { dependencies, lock, call }: LockCall,
  { heldBy, deadline, pauses, look, triedAt }: Round,
): Promise<void> {
  const { clock } = dependencies;
  const freeAt = (record: PoolRecord): number => {
    const own = lock.own(record);
    if (typeof own === 'string' || (isGrant(own) && own.expiresAt > clock.now())) return Number.NEGATIVE_INFINITY;
    const at = lock.freeAt(record);
    return lock.isMarked(record) ? Math.max(at, triedAt + BESIDE_LINE_MS) : at;
  };
  for (let record = heldBy; ; ) {
    const now = clock.now();
    const patience = deadline - now;
    if (patience <= 0) throw lock.held(record);
    // The time may be in the past: the lock is free for its line, but the next task cannot be notified, because Step Functions cannot be reached.
    const toFree = freeAt(record) - now;
    const pause = pauses.next().value;
    await clock.sleep(Math.min(toFree > 0 ? Math.min(pause, toFree) : pause, patience));
    record = await pollRecord(dependencies, lock.asked.key, call);
    look(record, true);
    if (freeAt(record) <= clock.now()) return;
  }
}

/** The pauses of a race, in milliseconds. */
export function* jitteredPauses(ids: Ids): Generator<number, never> {
  for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS))
    yield Math.round(pause * (0.5 + ids.random() / 2));
}
