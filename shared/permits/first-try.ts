import type { Call } from '../aws/call.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { MAX_DUPLICATE_CONFLICTS } from '../line/acquisition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isLate } from './alone.ts';
import { isHandedOff } from './freed.ts';
import { endPermits, type GrantsWritten, grantPermits, latestRelease, MOST_ENDED } from './grants.ts';
import { ALONE, pathOf } from './identity.ts';
import { ownOf } from './marks.ts';
import { type Outcome, type PermitRequest, refuseOtherWeight } from './permit-request.ts';
import { previousAlone } from './previous.ts';
import { ending, entryOf, isAloneIn, type PoolEntry, type PoolRecord, unusable } from './record.ts';
import { toEnd } from './room.ts';
import { permitLost } from './views.ts';
import type { Written } from './write.ts';

type Won = Outcome & { won: true };

/** A take-over is tried again only if one of the expired holders has extended its permit, or has gone, since it was seen. */
const MAX_TRIES = 5;

/**
 * Acquires without waiting (docs/protocols/locks.md#acquire). One write, or two if the request needs the places of several holders that have expired, or
 * if the fence on record is not below the clock here. While the mark is there, gives what is free to the line.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function tryOnce(dependencies: LeaseDependencies, request: PermitRequest, call: Call): Promise<Outcome> {
  const { clock, clockSkewMs } = dependencies;
  let ended: PoolEntry[] = [];
  let seen: PoolRecord | undefined;
  let lineSeenEmpty = false;
  let meetings = 1;
  const mayMeetAgain = () => meetings++ < MAX_DUPLICATE_CONFLICTS;
  for (let tries = 1; ; ) {
    const triedAt = clock.now();
    const isFull = ended.length <= MOST_ENDED;
    const isSecond = seen !== undefined;
    const isAlone = isAloneIn(request);
    const latest = latestRelease(dependencies, { seen, now: triedAt });
    const written = await write(dependencies, { request, ended, seen, now: triedAt }, call);
    const { won, record } = written;
    const before = seen;
    seen = record;
    const own = entryOf(record, request.name);
    if (written.landed && own) {
      const granted = await settle(dependencies, { written, own, ended, triedAt }, call);
      if (granted) return granted;
      if (!mayMeetAgain()) return { won: false, record };
      ended = [];
      continue; // the next write meets the grant as another call has left it
    }
    refuseEnded(record, request);
    if (own && own.expiresAt > triedAt) refuseOtherWeight(request, own);
    // If the permit names an execution, each repeat records the time of its answer.
    if (own && (isFromLine(own) || own.execution !== undefined)) {
      const repeated = await repeat(dependencies, { request, record }, call);
      if (repeated) return repeated;
      // A duplicate call has changed it. The next write meets it as that call has left it.
      if (ownOf(record, request.name, clock.now()) && mayMeetAgain()) {
        ended = [];
        continue;
      }
    } else if (own && own.expiresAt > triedAt) return { won: true, record, repeated: true, ended: [] };
    const next = toEnd(record, request, { now: clock.now(), clockSkewMs });
    if (record.mark !== undefined) {
      const outcome: PoolRecord | 'empty' = lineSeenEmpty
        ? record
        : await handOffIfNext(
            dependencies,
            { record, isFree: next !== undefined && !isHandedOff(record, clock.now()) },
            call,
          );
      if (outcome === 'empty') lineSeenEmpty = true;
      else {
        // The line may have served an earlier waiter of the request, or a duplicate call may have a permit.
        refuseEnded(outcome, request);
        const granted = ownOf(outcome, request.name, clock.now());
        const claimed =
          granted?.claimTtlMs !== undefined && (await repeat(dependencies, { request, record: outcome }, call));
        if (claimed) return claimed;
        if (!granted || !mayMeetAgain()) return { won: false, record: outcome };
      }
      ended = [];
      continue;
    }
    const isInTime = (record.freedAt ?? 0) <= latest && !(isAlone && isHigher(record, before, triedAt));
    const hadRoom = toEnd(record, request, { now: triedAt, clockSkewMs })?.every(({ path }) => path === ALONE);
    // With the fence and the release as seen, nothing but an attribute of a wrong type can refuse such a write.
    if (isFull && (isInTime || record.malformed !== undefined) && isSecond && ended.length === 0 && hadRoom)
      throw unusable(record, pathOf(request.name, isAlone));
    if (!won) tries++;
    if (!next || tries > MAX_TRIES) return { won: false, record };
    // The next try replaces an expired exclusive holder without naming it.
    ended = isAlone ? next.filter(({ path }) => path !== ALONE) : next;
  }
}

/** Whether the fence on record is not below the one of the try. */
const isHigher = ({ fence = 0 }: PoolRecord, before: PoolRecord | undefined, triedAt: number): boolean =>
  fence >= Math.max((before?.fence ?? 0) + 1, triedAt);

interface Trying {
  request: PermitRequest;
  seen: PoolRecord | undefined;
  ended: readonly PoolEntry[];
  now: number;
}

/** If more have to go than one write can end, the first of them go in a write of their own. */
const write = async (
  dependencies: LeaseDependencies,
  { request, ended, seen, now }: Trying,
  call: Call,
): Promise<Written & Partial<GrantsWritten>> => {
  const { key } = request;
  const going = ended.map((entry) => ({ entry, how: 'expired' }) as const);
  return ended.length <= MOST_ENDED
    ? grantPermits(dependencies, { key, permits: [request], ended: going, seen, now }, call)
    : endPermits(dependencies, { key, ended: going.slice(0, MOST_ENDED), now }, call);
};

interface Landed {
  written: Written & Partial<GrantsWritten>;
  own: PoolEntry;
  ended: readonly PoolEntry[];
  triedAt: number;
}

/**
 * The grant that this call has written. If the write is late, and met no fence or an expired grant that may have been late too, raises the fence first: of a try of
 * the SDK that got no answer, nothing tells what it met.
 * @returns undefined if another call has changed the grant
 * @throws HoldfastError OutcomeUnknown if the fence could not be raised, because this call may be the only one that has the request id
 */
async function settle(
  dependencies: LeaseDependencies,
  { written: { won, record, before }, own, ended, triedAt }: Landed,
  call: Call,
): Promise<Won | undefined> {
  const previous = before && previousAlone(before, triedAt);
  const granted = { won: true, record, repeated: !won, ended, previous } as const;
  const isFirst = before ? before.fence === undefined : own.fence === triedAt;
  const isSafe = won && !isFirst && ended.length === 0 && (before?.entries.length ?? 0) === 0;
  if (isSafe || !isLate(triedAt, dependencies.clock.now())) return granted;
  const { raiseFence } = await import('../line/lock.ts');
  try {
    const raised = await raiseFence(dependencies, { key: record.key, entry: own }, call);
    return raised.won ? { ...granted, record: raised.record } : undefined;
  } catch (error) {
    throw error instanceof HoldfastError ? outcomeUnknown(writing(`table ${dependencies.table}`), error) : error;
  }
}

/** @throws HoldfastError LeaseLost if the request has had a permit, as far as the record remembers, or has one that is ending */
function refuseEnded(record: PoolRecord, { key, name }: PermitRequest): void {
  const how = ending(record, name);
  if (how) throw permitLost(key, how);
}

/** The call that wrote it may be about to notify a task, or its caller has not claimed it. */
const isFromLine = ({ ticket, claimTtlMs }: PoolEntry): boolean => ticket !== undefined || claimTtlMs !== undefined;

async function repeat(
  dependencies: LeaseDependencies,
  { request, record }: { request: PermitRequest; record: PoolRecord },
  call: Call,
): Promise<Won | undefined> {
  const { Lock } = await import('../line/lock.ts');
  const { claim } = await import('../line/claim.ts');
  const at = { dependencies, lock: new Lock(dependencies, request, call), call };
  const claimed = await claim(at, { record, maxConflicts: 1 });
  return claimed && { ...claimed, won: true };
}

/** Gives room to the callers and tasks that came before. @returns the record that keeps the request out, or that the line is empty */
async function handOffIfNext(
  dependencies: LeaseDependencies,
  { record, isFree }: { record: PoolRecord; isFree: boolean },
  call: Call,
): Promise<PoolRecord | 'empty'> {
  if (!isFree) return record;
  const { handOff } = await import('./hand-off.ts');
  const { end, granted, record: current } = await handOff(dependencies, { record }, call);
  const isTaken = granted.length > 0 && current.entries.some(({ path }) => path === ALONE);
  return end === 'empty' && !isTaken ? 'empty' : current;
}
