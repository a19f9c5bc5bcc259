import type { Call } from '../../aws/call.ts';
import { outcomeUnknown, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { HandOffOutcome } from '../line/hand-off.ts';
import { type GrantsWritten, latestRelease, MAX_ENDED, writeEnds, writeGrants } from './grants.ts';
import { EXCLUSIVE_PATH, pathOf } from './identity.ts';
import {
  endOfRequest,
  entryOf,
  type HolderEntry,
  isExclusiveGrant,
  type KeyRecord,
  ownGrantOf,
  unusable,
} from './record.ts';
import { isSlowWrite, type Written } from './requests.ts';
import { entriesToEnd, type GrantRequest, previousOfExclusive, refuseOtherWeight, type TryOutcome } from './room.ts';

/**
 * How often a first try begins again because a duplicate call has changed the grant of the request. Each duplicate
 * usually changes it once.
 */
const MAX_DUPLICATE_CONFLICTS = 20;

type WonTry = TryOutcome & { won: true };

/** A take-over is tried again only if an expired holder has extended its grant or left since the record was read. */
const MAX_TAKE_OVER_TRIES = 5;

interface TryState {
  request: GrantRequest;
  /** The record as the last write returned it. Undefined before the first write. */
  record: KeyRecord | undefined;
  /** The expired holders that the next write replaces. */
  toEnd: readonly HolderEntry[];
  tries: number;
  /** How often a duplicate call has changed the grant of the request. */
  conflicts: number;
  /** Whether a hand-off of this call has found the line empty. */
  wasLineEmpty: boolean;
}

interface TryWrite {
  triedAt: number;
  /** The record as the call knew it before the write. */
  before: KeyRecord | undefined;
  toEnd: readonly HolderEntry[];
  written: Written & Partial<GrantsWritten>;
}

/** `again`: the record has changed, so the call writes once more. */
type OrAgain<Answer> = Answer | 'again';

/**
 * Acquires without waiting (docs/protocols/locks.md#acquire): with one write, or with two if expired holders are in the
 * way or the fence is ahead of the clock. If the key has a line, hands off the free room to the waiters.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function firstTry(
  dependencies: LeaseDependencies,
  request: GrantRequest,
  call: Call,
): Promise<TryOutcome> {
  const state: TryState = { request, record: undefined, toEnd: [], tries: 1, conflicts: 0, wasLineEmpty: false };
  for (;;) {
    const { record: before, toEnd } = state;
    const triedAt = dependencies.clock.now();
    const written = await writeTakeOver(dependencies, { ...state, now: triedAt }, call);
    state.record = written.record;
    state.toEnd = [];
    const outcome = await decideByRecord(dependencies, { state, attempt: { triedAt, before, toEnd, written } }, call);
    if (outcome !== 'again') return outcome;
  }
}

/** Counts a conflict with a duplicate call. @returns whether the call may try again */
const noteConflict = (state: TryState): boolean => ++state.conflicts < MAX_DUPLICATE_CONFLICTS;

interface AfterWrite {
  state: TryState;
  attempt: TryWrite;
}

/** Decides what the record that a write returned means for the request (docs/protocols/locks.md#a-lost-condition). */
async function decideByRecord(
  dependencies: LeaseDependencies,
  { state, attempt }: AfterWrite,
  call: Call,
): Promise<OrAgain<TryOutcome>> {
  const { landed, record } = attempt.written;
  const ownEntry = entryOf(record, state.request.name);
  if (landed && ownEntry) {
    const granted = await withSafeFence(dependencies, { attempt, ownEntry }, call);
    return granted ?? (noteConflict(state) ? 'again' : { won: false, record });
  }
  const repeated = await repeatOwn(dependencies, { state, attempt }, call);
  if (repeated) return repeated;
  // Only in line can the caller replace the latest request, which may be away between two calls.
  if (state.request.replace && record.latest) return { won: false, record };
  return record.mark === undefined
    ? takeOver(dependencies, { state, attempt })
    : serveLine(dependencies, { state, record }, call);
}

/** Takes over from the expired holders. If they are too many for one write, the write only ends as many as it can. */
const writeTakeOver = async (
  dependencies: LeaseDependencies,
  { request, toEnd, record, now }: Pick<TryState, 'request' | 'toEnd' | 'record'> & { now: number },
  call: Call,
): Promise<TryWrite['written']> => {
  const { key } = request;
  const expired = toEnd.map((entry) => ({ entry, how: 'expired' }) as const);
  return toEnd.length <= MAX_ENDED
    ? writeGrants(dependencies, { key, grants: [request], toEnd: expired, record, now }, call)
    : writeEnds(dependencies, { key, toEnd: expired.slice(0, MAX_ENDED), now }, call);
};

/**
 * Answers with the grant that the request already has.
 * @returns undefined if the request has no grant, or only one that has expired
 */
async function repeatOwn(
  dependencies: LeaseDependencies,
  { state, attempt: { triedAt, written } }: AfterWrite,
  call: Call,
): Promise<OrAgain<WonTry> | undefined> {
  const { request } = state;
  const { record } = written;
  await refuseEndedRequest(record, request);
  const ownEntry = entryOf(record, request.name);
  if (!ownEntry) return undefined;
  const isCurrent = ownEntry.expiresAt > triedAt;
  if (isCurrent) refuseOtherWeight(request, ownEntry);
  // A grant from the line may have to be claimed. If the grant names an execution, each repeat records the time of its
  // answer.
  if (!isFromLine(ownEntry) && ownEntry.execution === undefined)
    return isCurrent ? { won: true, record, repeated: true, ended: [] } : undefined;
  const repeated = await repeatGrant(dependencies, { request, record }, call);
  if (repeated) return repeated;
  // A duplicate call has changed the grant, so the next write reads it as that call has left it.
  return ownGrantOf(record, request.name, dependencies.clock.now()) && noteConflict(state) ? 'again' : undefined;
}

/**
 * Whether the grant came from the line. Such a grant may still be unclaimed, or another call may be about to notify its
 * task.
 */
const isFromLine = ({ ticket, claimTtlMs }: HolderEntry): boolean => ticket !== undefined || claimTtlMs !== undefined;

/**
 * Refuses a request whose grant is ending, or has ended and is remembered by the record.
 * @throws HoldfastError LeaseLost, Superseded
 */
async function refuseEndedRequest(record: KeyRecord, { name }: GrantRequest): Promise<void> {
  if (!endOfRequest(record, name)) return;
  const { refusalOf } = await import('../line/lock.ts');
  throw refusalOf(record, name);
}

/**
 * Claims the grant that the request received from the line, or records this answer.
 * @returns undefined if the grant has changed
 */
async function repeatGrant(
  dependencies: LeaseDependencies,
  { request, record }: { request: GrantRequest; record: KeyRecord },
  call: Call,
): Promise<WonTry | undefined> {
  const { Lock } = await import('../line/lock.ts');
  const { claim } = await import('../line/claim.ts');
  const lock = new Lock(dependencies, request, call);
  const claimed = await claim({ dependencies, lock, call }, { record, maxConflicts: 1 });
  return claimed && { ...claimed, won: true };
}

/**
 * Hands off the free room to the waiters in line.
 * @returns the request's own grant if the line gave it one, or a refusal
 */
async function serveLine(
  dependencies: LeaseDependencies,
  { state, record }: { state: TryState; record: KeyRecord },
  call: Call,
): Promise<OrAgain<TryOutcome>> {
  const { clock, clockSkewMs } = dependencies;
  const { request } = state;
  const isFree = entriesToEnd(record, request, { now: clock.now(), clockSkewMs }) !== undefined;
  const handedOff = isFree && !state.wasLineEmpty ? await handOffIfAny(dependencies, record, call) : { record };
  if (handedOff === 'empty') {
    state.wasLineEmpty = true;
    return 'again';
  }
  const { record: after, isLeftToSleepers = false } = handedOff;
  // The line may have served an earlier waiter of the request, or a duplicate call may have a grant.
  await refuseEndedRequest(after, request);
  const granted = ownGrantOf(after, request.name, clock.now());
  const isUnclaimed = granted?.claimTtlMs !== undefined;
  const claimed = isUnclaimed && (await repeatGrant(dependencies, { request, record: after }, call));
  if (claimed) return claimed;
  return granted && noteConflict(state) ? 'again' : { won: false, record: after, isLeftToSleepers };
}

/**
 * @returns `empty` if the line is empty. Otherwise the record after the hand-off, and whether the key is left free for
 * callers that sleep
 */
async function handOffIfAny(
  dependencies: LeaseDependencies,
  record: KeyRecord,
  call: Call,
): Promise<Pick<HandOffOutcome, 'record' | 'isLeftToSleepers'> | 'empty'> {
  const { handOff, mayBeHandingOff } = await import('../line/hand-off.ts');
  if (mayBeHandingOff(record, dependencies.clock.now())) return { record };
  const handed = await handOff(dependencies, { record }, call);
  const { end, served, record: current } = handed;
  const isTaken = served.length > 0 && current.entries.some(({ path }) => path === EXCLUSIVE_PATH);
  return end === 'empty' && !isTaken ? 'empty' : handed;
}

/** Finds the expired holders that the next write replaces. @returns a refusal if they would not make enough room */
function takeOver(
  dependencies: LeaseDependencies,
  { state, attempt: { triedAt, before, toEnd, written } }: AfterWrite,
): OrAgain<TryOutcome> {
  const { request } = state;
  const { won, record } = written;
  const isExclusive = isExclusiveGrant(request);
  const latest = latestRelease(dependencies, { record: before, now: triedAt });
  const isSameCap = before?.capAt === record.capAt;
  const isInTime =
    isSameCap && (record.freedAt ?? 0) <= latest && !(isExclusive && reachesTriedFence(record, before, triedAt));
  const hadRoom = toEnd.length === 0 && expiredToEnd(dependencies, { request, record, now: triedAt })?.length === 0;
  // There was room, and the fence, the release and the cap were as expected. Only an attribute of a wrong type can
  // refuse such a write.
  if (before && hadRoom && (isInTime || record.malformed !== undefined))
    throw unusable(record, pathOf(request.name, isExclusive));
  if (!won) state.tries++;
  const next = expiredToEnd(dependencies, { request, record, now: dependencies.clock.now() });
  if (!next || state.tries > MAX_TAKE_OVER_TRIES) return { won: false, record };
  state.toEnd = next;
  return 'again';
}

/**
 * As `entriesToEnd`. An exclusive request leaves out an expired exclusive holder, because its write replaces that entry
 * in any case.
 */
function expiredToEnd(
  { clockSkewMs }: LeaseDependencies,
  { request, record, now }: { request: GrantRequest; record: KeyRecord; now: number },
): HolderEntry[] | undefined {
  const toEnd = entriesToEnd(record, request, { now, clockSkewMs });
  return isExclusiveGrant(request) ? toEnd?.filter(({ path }) => path !== EXCLUSIVE_PATH) : toEnd;
}

/** Whether the fence on record is at least the fence that the try would have set. */
const reachesTriedFence = ({ fence = 0 }: KeyRecord, before: KeyRecord | undefined, triedAt: number): boolean =>
  fence >= Math.max((before?.fence ?? 0) + 1, triedAt);

/**
 * Answers with the grant that this call has written. First raises the fence if it may be too low
 * (docs/protocols/locks.md#late-grants): the write was late, and met no fence or an expired grant that may have been
 * late too. After a lost answer nothing shows what the write met, so the fence is raised too.
 * @returns undefined if another call has changed the grant
 * @throws HoldfastError OutcomeUnknown if the fence could not be raised: this call may be the only one that has the
 * request id
 */
async function withSafeFence(
  dependencies: LeaseDependencies,
  { attempt: { triedAt, toEnd, written }, ownEntry }: { attempt: TryWrite; ownEntry: HolderEntry },
  call: Call,
): Promise<WonTry | undefined> {
  const { won, record, before } = written;
  const previous = before && previousOfExclusive(before, triedAt);
  const granted = { won: true, record, repeated: !won, ended: toEnd, previous } as const;
  const metNoFence = before ? before.fence === undefined : ownEntry.fence === triedAt;
  const isSafe = won && !metNoFence && toEnd.length === 0 && (before?.entries.length ?? 0) === 0;
  if (isSafe || !isSlowWrite(triedAt, dependencies.clock.now())) return granted;
  const { raiseFence } = await import('../line/lock.ts');
  try {
    const raised = await raiseFence(dependencies, { key: record.key, entry: ownEntry }, call);
    return raised.won ? { ...granted, record: raised.record } : undefined;
  } catch (error) {
    throw error instanceof HoldfastError ? outcomeUnknown(writing(`table ${dependencies.table}`), error) : error;
  }
}
