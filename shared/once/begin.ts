import type { Json } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { addRetryWith } from '../aws/send.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import { durations, type LeaseGrant, type Previous, previousView } from '../locks/calls/types.ts';
import { deadlineOf, type LeaseDependencies } from '../locks/dependencies.ts';
import { ANY_EXECUTION, refuseForeignExecutions } from '../locks/executions/allowed.ts';
import { pollItem } from '../locks/line/wait.ts';
import { EXCLUSIVE_WEIGHT, nameOfRequest } from '../locks/record/identity.ts';
import { grantView } from '../locks/record/outcomes.ts';
import { entryOf, type HolderEntry, unusable } from '../locks/record/record.ts';
import { leaseHeld } from '../locks/record/refusals.ts';
import { previousOfExclusive } from '../locks/record/room.ts';
import type { BeginInput } from './inputs.ts';
import { judgeSlot } from './judge-slot.ts';
import { newOnceGrant, type OnceGrant, type OnceRequest, onceItem } from './once-grant.ts';
import { type Done, type OnceRecord, parseOnce, runOf } from './record.ts';
import { onceRowOf, withKey, withRunId } from './row-key.ts';
import { isAfterAllPeriods } from './slots.ts';
import { keepSecondsOf, slotOf } from './terms.ts';
import { writeGrant } from './write.ts';

/** The caller has the run of the slot, and works until `complete` or until `remainingMs` are over. */
export interface Run extends Omit<LeaseGrant, 'bound'> {
  outcome: 'run';
  slot: string;
  /** How long the call took, from its arrival to the answer. */
  waitedMs: number;
  /** Whether an earlier try of this request received the grant. */
  repeated: boolean;
  /**
   * The former worker, if it did not complete and so may have left work half done. Null if there is no such worker, or
   * an earlier try of the call got no answer.
   */
  previous: Previous | null;
}

interface DoneBy {
  doneBy: string | null;
  /** When the result was stored, in ISO 8601. */
  doneAt: string;
  fence: number | null;
}

export interface AlreadyDone extends DoneBy {
  outcome: 'done';
  key: string;
  slot: string;
  result: Json;
}

/** A later slot is done, so the caller's slot is no longer wanted. */
export interface Superseded extends DoneBy {
  outcome: 'superseded';
  key: string;
  slot: string;
  doneSlot: string;
}

export type Begun = Run | AlreadyDone | Superseded;

/** The shortest pause between two polls of a waiting call, in milliseconds. */
const MIN_PAUSE_MS = 100;
const PAUSE_RANGE_MS = 150;

/**
 * How often a call tries to begin. A try loses if the record was written since it was read, or if its
 * fence or `keep_until` is ahead of this clock.
 */
const MAX_BEGIN_TRIES = 5;

/**
 * Begins the work for a slot with one conditional UpdateItem, or answers with the stored result
 * (docs/protocols/once.md#begin). With `waitSeconds`, the call polls the record while another caller works. With `per`,
 * an error after which the caller may ask again names the slot in `retryWith`, so that the next call works for the same
 * period.
 * @throws HoldfastError LeaseHeld (another caller works), LeaseLost (the grant of this request has ended), Conflict
 *   (the slot is done with another input, or a slot is done that sorts after all periods), InvalidRequest (execution),
 *   Throttled, Unavailable, OutcomeUnknown
 */
export function beginOnce(dependencies: LeaseDependencies) {
  const { clock } = dependencies;
  return async (input: BeginInput, call: Call): Promise<Begun> => {
    const { key, execution } = input;
    refuseForeignExecutions(dependencies.executions ?? ANY_EXECUTION, { execution }, call);
    const arrivedAt = clock.now();
    const request = requestOf(dependencies, input, call);
    const { slot, period } = request;
    if (period && isAfterAllPeriods(slot, clock.now() + dependencies.clockSkewMs, period))
      throw invalidRequest([{ path: 'slot', message: 'must be a period that has begun' }]);
    const retryFields = period && { slot };
    const outcome = await tryThenPoll(dependencies, { request, arrivedAt, waitSeconds: input.waitSeconds }, call)
      .catch(addRetryWith({ requestId: request.requestId, ...retryFields }))
      .catch(withKey(key));
    if ('heldBy' in outcome)
      throw heldError(dependencies, { request, record: { ...outcome.heldBy, key } }, retryFields);
    if ('run' in outcome) return runView(key, outcome, { since: arrivedAt, now: clock.now() });
    return doneAnswer(key, slot, outcome);
  };
}

function requestOf({ clock, ids }: LeaseDependencies, input: BeginInput, { principal }: Call): OnceRequest {
  const { key, holder, per, zone, ttlSeconds, inputHash, execution, data, requestId = ids.uuid() } = input;
  const name = nameOfRequest({ holder, requestId, principal });
  return {
    ...{ key: onceRowOf(key), name, requestId, holder, ttlSeconds, inputHash, execution },
    // The schema has checked that data is JSON.
    data: data as Json | undefined,
    ...{ slot: slotOf(input, clock.now()), keepSeconds: keepSecondsOf(input) },
    period: per === undefined ? undefined : { per, zone },
  };
}

type GrantedRun = { run: HolderEntry; slot: string | undefined; repeated: boolean; previous: Previous | null };
type BeginOutcome = GrantedRun | { done: Done; meaning: 'done' | 'superseded' } | { heldBy: OnceRecord };

interface BeginAttempt {
  request: OnceRequest;
  arrivedAt: number;
  waitSeconds: number;
}

/** Tries to begin. While another caller works, polls the record, and tries again when the run has ended. */
async function tryThenPoll(
  dependencies: LeaseDependencies,
  { request, arrivedAt, waitSeconds }: BeginAttempt,
  call: Call,
): Promise<BeginOutcome> {
  const { clock, ids } = dependencies;
  const first = await tryToBegin(dependencies, request, call);
  const deadline = deadlineOf(dependencies, { waitSeconds, arrivedAt, now: clock.now() }, call);
  if (!('heldBy' in first) || deadline <= clock.now()) return first;
  const parse = parserOf(request);
  const poll = async (): Promise<BeginOutcome> => {
    let outcome: BeginOutcome = first;
    while ('heldBy' in outcome) {
      const leftMs = deadline - clock.now();
      if (leftMs <= 0) return outcome;
      await clock.sleep(Math.min(leftMs, MIN_PAUSE_MS + Math.round(ids.random() * PAUSE_RANGE_MS)));
      const record = parse(await pollItem(dependencies, request.key, call));
      const verdict = judgeSlot(dependencies, request, record);
      if ('done' in verdict) return verdict;
      outcome = verdict.meaning === 'held' ? { heldBy: record } : await tryToBegin(dependencies, request, call);
    }
    return outcome;
  };
  const { inSeat } = await import('../locks/line/held-calls.ts');
  const polled = await inSeat(dependencies, { reason: 'cannotSleep', deadline }, { wait: poll, call });
  return polled ? polled.result : first;
}

/** The error LeaseHeld. @param retryFields the fields that the caller adds to its next call */
function heldError(
  { clock, clockSkewMs }: LeaseDependencies,
  { request: { name }, record }: { request: OnceRequest; record: OnceRecord },
  retryFields: object | undefined,
) {
  const exclusiveRequest = { name, weight: EXCLUSIVE_WEIGHT, room: 0, limit: null };
  const { code, message, context } = leaseHeld(record, { request: exclusiveRequest, now: clock.now(), clockSkewMs });
  return new HoldfastError(code, message, { ...context, ...(retryFields && { retryWith: retryFields }) });
}

const parserOf =
  ({ key }: OnceRequest) =>
  (item: Parameters<typeof parseOnce>[1]) =>
    parseOnce(key, item);

/**
 * Tries to begin, usually with one write. Writes again if the fence or `keep_until` on record is
 * ahead, or to repeat a run that names an execution.
 */
async function tryToBegin(dependencies: LeaseDependencies, request: OnceRequest, call: Call): Promise<BeginOutcome> {
  let before: OnceRecord | undefined;
  for (let tries = 1; ; tries++) {
    const grant = newOnceGrant(dependencies, request, before);
    const outcome = await writeGrant(dependencies, grant, call);
    if (outcome.won) return granted(grant, parseOnce(request.key, outcome.item));
    const record = parseOnce(request.key, outcome.old);
    const { slot } = record;
    const ownEntry = entryOf(record, request.name);
    if (ownEntry?.id === grant.id) return { run: ownEntry, slot, repeated: true, previous: null };
    const verdict = judgeSlot(dependencies, request, record);
    if ('done' in verdict) return verdict;
    const run =
      verdict.meaning === 'own' && ownEntry
        ? await repeatRun(dependencies, ownEntry, { key: request.key, call })
        : undefined;
    if (run) return { run, slot, repeated: true, previous: null };
    if (verdict.meaning === 'held' || tries === MAX_BEGIN_TRIES) return { heldBy: record };
    if (record.malformed !== undefined) throw unusable(record);
    before = record;
  }
}

/**
 * Answers with the run that the request has. Records that if the run names an execution.
 * @returns undefined if the grant has changed
 */
async function repeatRun(
  dependencies: LeaseDependencies,
  entry: HolderEntry,
  { key, call }: { key: string; call: Call },
): Promise<HolderEntry | undefined> {
  if (entry.execution === undefined) return entry;
  const { recordAnswer } = await import('../locks/record/continuing-grants.ts');
  const { won, entry: current } = await recordAnswer(dependencies, { key, entry }, call);
  return won ? current : undefined;
}

function granted(grant: OnceGrant, before: OnceRecord): GrantedRun {
  const run = runOf(parseOnce(grant.key, onceItem(grant))) as HolderEntry;
  const wasCompleted = !runOf(before) && before.doneFence !== undefined && before.doneFence === before.fence;
  const ended = wasCompleted ? undefined : previousOfExclusive(before, grant.acquiredAt);
  return { run, slot: grant.slot, repeated: false, previous: previousView(ended) };
}

function runView(
  key: string,
  { run, slot = '', repeated, previous }: GrantedRun,
  { since, now }: { since: number; now: number },
): Run {
  const times = durations({ since, expiresAt: run.expiresAt, now });
  return withRunId({ outcome: 'run' as const, slot, ...grantView(key, run, now), repeated, previous, ...times });
}

function doneAnswer(key: string, slot: string, { done, meaning }: { done: Done; meaning: 'done' | 'superseded' }) {
  const { holder = null, fence = null, at, result } = done;
  const by = { doneBy: holder, doneAt: new Date(at).toISOString(), fence };
  return meaning === 'done'
    ? { outcome: meaning, key, slot, result, ...by }
    : { outcome: meaning, key, slot, doneSlot: done.slot, ...by };
}
