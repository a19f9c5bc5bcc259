import type { Ids } from '../surroundings/ids.ts';
import { isGrant } from './claim.ts';
import type { Granted, LockCall } from './lock.ts';
import { pollRecord } from './look.ts';

/** The pauses of a waiting caller grow from about the former to the latter. */
const MIN_PAUSE_MS = 25;
const MAX_PAUSE_MS = 250;

/** While others are in line, each try reads that line. What is free goes to them, and only a line whose waiters are all dead leaves something. */
const BESIDE_LINE_MS = 1000;

interface Racing<Rec, Won> {
  /** What kept the first try from a grant. */
  heldBy: Rec;
  /** When patience ends, in epoch milliseconds. */
  deadline: number;
  attempt(): Promise<Won | { won: false; record: Rec }>;
}

/**
 * Waits outside the line (`fair: false`): looks whether the lock has come free, and tries again. This costs less than a position in line, and
 * the caller that looks first gets the grant.
 * @throws HoldfastError LeaseHeld when patience ends, and what a try throws
 */
export async function race<Rec, Won extends Granted<Rec> & { won: true }>(
  at: LockCall<Rec>,
  { heldBy, ...racing }: Racing<Rec, Won>,
): Promise<Won> {
  const { clock, ids } = at.dependencies;
  const pauses = jitteredPauses(ids);
  for (let record = heldBy; ; ) {
    await untilItLooksFree(at, { ...racing, heldBy: record, pauses, triedAt: clock.now() });
    const outcome = await racing.attempt();
    if (outcome.won) return outcome;
    record = outcome.record;
  }
}

/** Sleeps until the holder's expiry, or for a jittered pause if that is shorter, and looks. */
async function untilItLooksFree<Rec, Won>(
  { dependencies, lock, call }: LockCall<Rec>,
  { heldBy, deadline, pauses, triedAt }: Racing<Rec, Won> & { pauses: Iterator<number, never>; triedAt: number },
): Promise<void> {
  const { clock } = dependencies;
  const freeAt = (record: Rec): number => {
    const own = lock.own(record);
    if (typeof own === 'string' || (isGrant(own) && own.expiresAt > clock.now())) return Number.NEGATIVE_INFINITY;
    const at = lock.freeAt(record);
    return lock.isMarked(record) ? Math.max(at, triedAt + BESIDE_LINE_MS) : at;
  };
  for (let record = heldBy; ; ) {
    const now = clock.now();
    const patience = deadline - now;
    if (patience <= 0) throw lock.held(record);
    // It may be in the past: the lock is free for its line, and Step Functions cannot be reached to notify the task that is next.
    const toFree = freeAt(record) - now;
    const pause = pauses.next().value;
    await clock.sleep(Math.min(toFree > 0 ? Math.min(pause, toFree) : pause, patience));
    record = await pollRecord(dependencies, lock.where, call);
    if (freeAt(record) <= clock.now()) return;
  }
}

/** In milliseconds. */
export function* jitteredPauses(ids: Ids): Generator<number, never> {
  for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS))
    yield Math.round(pause * (0.5 + ids.random() / 2));
}
