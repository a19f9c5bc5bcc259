import type { Call } from '../../aws/call.ts';
import { outcomeUnknown, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { HandedOff } from '../line/hand-off.ts';
import { type GrantsWritten, latestRelease, MOST_ENDED, writeEnds, writeGrants } from './grants.ts';
import { ALONE, pathOf } from './identity.ts';
import { ending, entryOf, type HolderEntry, isAloneIn, type KeyRecord, ownOf, unusable } from './record.ts';
import { isLate, type Written } from './requests.ts';
import { type GrantRequest, previousAlone, refuseOtherWeight, type TryOutcome, toEnd } from './room.ts';

/** How often a first try starts again because a duplicate call has changed the grant of the request. Each duplicate usually changes the grant once. */
const MAX_DUPLICATE_CONFLICTS = 20;

type Won = TryOutcome & { won: true };

/** A take-over is tried again only if one of the expired holders has extended its grant, or has gone, since it was seen. */
const MAX_TAKE_OVER_TRIES = 5;

/** What one call has seen and done so far. */
interface Trying {
  request: GrantRequest;
  /** The record as the last write has shown it. */
  seen: KeyRecord | undefined;
  /** The expired holders that the next write replaces. */
  ended: readonly HolderEntry[];
  tries: number;
  /** How often it has met a duplicate call. */
  meetings: number;
  wasLineEmpty: boolean;
}

/** One write of a call, which saw `before` and replaced `ended`. */
interface Tried {
  at: number;
  before: KeyRecord | undefined;
  ended: readonly HolderEntry[];
  written: Written & Partial<GrantsWritten>;
}

/** The next write meets what has changed since. */
type OrAgain<Answer> = Answer | 'again';

/**
 * Acquires without waiting (docs/protocols/locks.md#acquire). One write, or two if the first finds expired holders in the way, or a fence that is not
 * below the clock here. While the mark is there, hands off what is free.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function firstTry(
  dependencies: LeaseDependencies,
  request: GrantRequest,
  call: Call,
): Promise<TryOutcome> {
  const trying: Trying = { request, seen: undefined, ended: [], tries: 1, meetings: 1, wasLineEmpty: false };
  for (;;) {
    const { seen: before, ended } = trying;
    const at = dependencies.clock.now();
    const written = await writeTakeOver(dependencies, { ...trying, now: at }, call);
    trying.seen = written.record;
    trying.ended = [];
    const outcome = await follow(dependencies, { trying, tried: { at, before, ended, written } }, call);
    if (outcome !== 'again') return outcome;
  }
}

const meetsAgain = (trying: Trying): boolean => trying.meetings++ < MAX_DUPLICATE_CONFLICTS;

interface After {
  trying: Trying;
  tried: Tried;
}

async function follow(
  dependencies: LeaseDependencies,
  { trying, tried }: After,
  call: Call,
): Promise<OrAgain<TryOutcome>> {
  const { landed, record } = tried.written;
  const own = entryOf(record, trying.request.name);
  if (landed && own) {
    const granted = await settle(dependencies, { tried, own }, call);
    return granted ?? (meetsAgain(trying) ? 'again' : { won: false, record });
  }
  const repeated = await repeatOwn(dependencies, { trying, tried }, call);
  if (repeated) return repeated;
  // In the line, the caller replaces the latest request, which may be away between two calls.
  if (trying.request.replace && record.latest) return { won: false, record };
  return record.mark === undefined
    ? takeOver(dependencies, { trying, tried })
    : serveLine(dependencies, { trying, record }, call);
}

/** Replaces the expired holders. If one write cannot end them all, this write only ends the first of them. */
const writeTakeOver = async (
  dependencies: LeaseDependencies,
  { request, ended, seen, now }: Pick<Trying, 'request' | 'ended' | 'seen'> & { now: number },
  call: Call,
): Promise<Tried['written']> => {
  const { key } = request;
  const going = ended.map((entry) => ({ entry, how: 'expired' }) as const);
  return ended.length <= MOST_ENDED
    ? writeGrants(dependencies, { key, grants: [request], ended: going, seen, now }, call)
    : writeEnds(dependencies, { key, ended: going.slice(0, MOST_ENDED), now }, call);
};

/**
 * Answers with the grant that the request has.
 * @returns undefined if it has none, or only one that has expired
 */
async function repeatOwn(
  dependencies: LeaseDependencies,
  { trying, tried: { at, written } }: After,
  call: Call,
): Promise<OrAgain<Won> | undefined> {
  const { request } = trying;
  const { record } = written;
  await refuseEndedRequest(record, request);
  const own = entryOf(record, request.name);
  if (!own) return undefined;
  const isCurrent = own.expiresAt > at;
  if (isCurrent) refuseOtherWeight(request, own);
  // If the grant names an execution, each repeat records the time of its answer.
  if (!isFromLine(own) && own.execution === undefined)
    return isCurrent ? { won: true, record, repeated: true, ended: [] } : undefined;
  const repeated = await repeatGrant(dependencies, { request, record }, call);
  if (repeated) return repeated;
  // A duplicate call has changed the grant. The next write meets the grant as that call has left it.
  return ownOf(record, request.name, dependencies.clock.now()) && meetsAgain(trying) ? 'again' : undefined;
}

/** Whether the grant came from the line. Then its call may be about to notify a task, or its caller has not claimed it yet. */
const isFromLine = ({ ticket, claimTtlMs }: HolderEntry): boolean => ticket !== undefined || claimTtlMs !== undefined;

/** @throws HoldfastError LeaseLost if the request has had a grant, as far as the record remembers, or has one that is ending; Superseded */
async function refuseEndedRequest(record: KeyRecord, { name }: GrantRequest): Promise<void> {
  if (!ending(record, name)) return;
  const { refusalOf } = await import('../line/lock.ts');
  throw refusalOf(record, name);
}

async function repeatGrant(
  dependencies: LeaseDependencies,
  { request, record }: { request: GrantRequest; record: KeyRecord },
  call: Call,
): Promise<Won | undefined> {
  const { Lock } = await import('../line/lock.ts');
  const { claim } = await import('../line/claim.ts');
  const at = { dependencies, lock: new Lock(dependencies, request, call), call };
  const claimed = await claim(at, { record, maxConflicts: 1 });
  return claimed && { ...claimed, won: true };
}

/** Hands off what is free to the callers and tasks that came before. */
async function serveLine(
  dependencies: LeaseDependencies,
  { trying, record }: { trying: Trying; record: KeyRecord },
  call: Call,
): Promise<OrAgain<TryOutcome>> {
  const { clock, clockSkewMs } = dependencies;
  const { request } = trying;
  const isFree = toEnd(record, request, { now: clock.now(), clockSkewMs }) !== undefined;
  const gave = isFree && !trying.wasLineEmpty ? await handOffIfAny(dependencies, record, call) : { record };
  if (gave === 'empty') {
    trying.wasLineEmpty = true;
    return 'again';
  }
  const { record: after, isAsleep = false } = gave;
  // The line may have served an earlier waiter of the request, or a duplicate call may have a grant.
  await refuseEndedRequest(after, request);
  const granted = ownOf(after, request.name, clock.now());
  const isUnclaimed = granted?.claimTtlMs !== undefined;
  const claimed = isUnclaimed && (await repeatGrant(dependencies, { request, record: after }, call));
  if (claimed) return claimed;
  return granted && meetsAgain(trying) ? 'again' : { won: false, record: after, isAsleep };
}

/** @returns `empty` if the line is. Otherwise the record that keeps the request out, and whether the key is left free for callers that sleep */
async function handOffIfAny(
  dependencies: LeaseDependencies,
  record: KeyRecord,
  call: Call,
): Promise<Pick<HandedOff, 'record' | 'isAsleep'> | 'empty'> {
  const { handOff, isHandedOff } = await import('../line/hand-off.ts');
  if (isHandedOff(record, dependencies.clock.now())) return { record };
  const handed = await handOff(dependencies, { record }, call);
  const { end, granted, record: current } = handed;
  const isTaken = granted.length > 0 && current.entries.some(({ path }) => path === ALONE);
  return end === 'empty' && !isTaken ? 'empty' : handed;
}

/** Finds the expired holders that the next write replaces, or refuses the request. */
function takeOver(
  dependencies: LeaseDependencies,
  { trying, tried: { at, before, ended, written } }: After,
): OrAgain<TryOutcome> {
  const { request } = trying;
  const { won, record } = written;
  const isAlone = isAloneIn(request);
  const latest = latestRelease(dependencies, { seen: before, now: at });
  const isSameCap = before?.capAt === record.capAt;
  const isInTime = isSameCap && (record.freedAt ?? 0) <= latest && !(isAlone && isHigher(record, before, at));
  const hadRoom = ended.length === 0 && toName(dependencies, { request, record, now: at })?.length === 0;
  // With the fence, the release and the cap as seen, nothing but an attribute of a wrong type can refuse such a write.
  if (before && hadRoom && (isInTime || record.malformed !== undefined))
    throw unusable(record, pathOf(request.name, isAlone));
  if (!won) trying.tries++;
  const next = toName(dependencies, { request, record, now: dependencies.clock.now() });
  if (!next || trying.tries > MAX_TAKE_OVER_TRIES) return { won: false, record };
  trying.ended = next;
  return 'again';
}

/** As `toEnd`, without an expired exclusive holder if the request is exclusive: that write replaces it without naming it. */
function toName(
  { clockSkewMs }: LeaseDependencies,
  { request, record, now }: { request: GrantRequest; record: KeyRecord; now: number },
): HolderEntry[] | undefined {
  const ended = toEnd(record, request, { now, clockSkewMs });
  return isAloneIn(request) ? ended?.filter(({ path }) => path !== ALONE) : ended;
}

/** Whether the fence on record is not below the one of the try. */
const isHigher = ({ fence = 0 }: KeyRecord, before: KeyRecord | undefined, triedAt: number): boolean =>
  fence >= Math.max((before?.fence ?? 0) + 1, triedAt);

/**
 * The grant that this call has written. If the write is late, and met no fence or an expired grant that may have been late too, raises the fence first. It does so
 * too after a lost answer, because then nothing shows what the write met.
 * @returns undefined if another call has changed the grant
 * @throws HoldfastError OutcomeUnknown if the fence could not be raised, because this call may be the only one that has the request id
 */
async function settle(
  dependencies: LeaseDependencies,
  { tried: { at, ended, written }, own }: { tried: Tried; own: HolderEntry },
  call: Call,
): Promise<Won | undefined> {
  const { won, record, before } = written;
  const previous = before && previousAlone(before, at);
  const granted = { won: true, record, repeated: !won, ended, previous } as const;
  const isFirst = before ? before.fence === undefined : own.fence === at;
  const isSafe = won && !isFirst && ended.length === 0 && (before?.entries.length ?? 0) === 0;
  if (isSafe || !isLate(at, dependencies.clock.now())) return granted;
  const { raiseFence } = await import('../line/lock.ts');
  try {
    const raised = await raiseFence(dependencies, { key: record.key, entry: own }, call);
    return raised.won ? { ...granted, record: raised.record } : undefined;
  } catch (error) {
    throw error instanceof HoldfastError ? outcomeUnknown(writing(`table ${dependencies.table}`), error) : error;
  }
}
