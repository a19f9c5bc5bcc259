import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { type HoldfastError, invalidRequest } from '../../errors.ts';
import { nameWithin } from '../../namespace.ts';
import { durations, previousView } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { canNotify, logGrant, measureHandOff, NOTIFY_MS, type Notified, sendMessage } from '../line/notify.ts';
import type { WaitingTask } from '../line/waiters.ts';
import { isStill } from './conditions.ts';
import { ALONE, fencePathOf } from './identity.ts';
import { grantView, sharedTerms } from './outcomes.ts';
import { entryOf, type HolderEntry, isBound, isUnnotified, type KeyRecord } from './record.ts';
import {
  executionAt,
  type KeyUpdate,
  secondsOf,
  ttlOfRecord,
  updateKey,
  type WritePart,
  type Written,
} from './requests.ts';
import type { GrantRequest } from './room.ts';

/** If Step Functions or Lambda throttled a message, the task was not notified. The message is sent again after each of these pauses, in milliseconds. */
const NOTIFY_PAUSES_MS = [100, 200, 400];

/** A task measures its work by the ttl. So Holdfast sends no grant whose remaining time is shorter than its ttl by more than this. */
const MAX_SHORTFALL_MS = 500;

/** Each renewal may be slow again. After this many renewals, a grant that is still short is left to the schedule. */
const MAX_RENEWALS = 3;

interface GrantMessage {
  waiter: WaitingTask;
  record: KeyRecord;
  entry: HolderEntry;
  /** Whether the request had this grant before. */
  repeated: boolean;
  /** Whether this call wrote the version on record. */
  isOurs: boolean;
  /** The grant before this call noted that the task receives it, if the note is older than this message. */
  before?: HolderEntry | undefined;
}

/**
 * Notifies a task of its grant, as acquire would have answered, with the whole ttl left (docs/protocols/tasks.md#notify). The response to a write
 * may be late, so the clock is read again after each write. Sends a message again only if it was throttled (aws/step-functions.ts).
 * Sends no message if the grant stays short of its ttl: the outcome is then `unanswered`.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown of a renewal
 */
export async function notifyHolder(
  dependencies: LeaseDependencies,
  message: GrantMessage,
  call: Call,
): Promise<Notified> {
  const { outcome, record, entry } = await sendGrant(dependencies, message, call);
  if (outcome !== 'gone' || !message.repeated) return { outcome, record };
  const { before = message.entry } = message;
  return { outcome, record: await takeBackAnswer(dependencies, { record, entry, before }, call) };
}

async function sendGrant(
  dependencies: LeaseDependencies,
  { waiter, repeated, ...message }: GrantMessage,
  call: Call,
): Promise<Notified & { entry: HolderEntry }> {
  const { clock } = dependencies;
  await canNotify(dependencies, waiter); // making the client takes time, which must not come off the ttl
  let { record, entry, isOurs } = message;
  const pauses = NOTIFY_PAUSES_MS.values();
  for (let renewals = 0; ; ) {
    const now = clock.now();
    if (isOurs && !isShort(entry, now)) {
      const times = durations({ since: waiter.parkedAt, expiresAt: entry.expiresAt, now });
      const output = JSON.stringify({ ...answerFor(waiter, { record, entry, now }), ...times, repeated });
      logGrant(record.key, entry, call); // before the message, because this call may end at any moment after that
      const outcome = await sendMessage(dependencies, { waiter, message: { output } }, call);
      const { value: pauseMs } = outcome === 'throttled' ? pauses.next() : { value: undefined };
      if (pauseMs !== undefined && call.timeLeftMs() > pauseMs + NOTIFY_MS) {
        await clock.sleep(pauseMs);
        continue;
      }
      if (outcome === 'accepted' && !repeated) {
        call.measure?.('ParkedMs', times.waitedMs);
        measureHandOff(entry, clock.now(), call);
      }
      return { outcome: outcome === 'throttled' ? 'unanswered' : outcome, record, entry };
    }
    if (renewals++ === MAX_RENEWALS) return { outcome: 'unanswered', record, entry };
    const renewed = await extend(dependencies, { key: record.key, entry, isRepeated: repeated }, call);
    if (!renewed.won || !renewed.entry) return { outcome: 'overtaken', record: renewed.record, entry };
    ({ record, entry } = renewed);
    isOurs = true;
  }
}

/**
 * A task that is gone has not received the grant that its request had, so the record forgets that it did. Otherwise the next task of the execution would
 * wait behind a bound grant that no task has (docs/protocols/bound.md#a-grant-that-reached-no-task).
 */
async function takeBackAnswer(
  dependencies: LeaseDependencies,
  { record, entry, before }: { record: KeyRecord; entry: HolderEntry; before: HolderEntry },
  call: Call,
): Promise<KeyRecord> {
  if (!isBound(entry) || entry.version === before.version) return record;
  const { answeredAt } = before;
  const parts = {
    ...(answeredAt !== undefined && { r: integer(answeredAt) }),
    ...(isUnnotified(before) && { j: text(entry.version) }),
  };
  const update = {
    ...setting(parts),
    ...(answeredAt === undefined && { remove: ['#h.r'] }),
    condition: isStill(entry),
  };
  return (await updateKey(dependencies, { key: record.key, ...update }, call)).record;
}

/** A bound grant has no ttl, and so is never short. */
const isShort = (entry: HolderEntry, now: number): boolean =>
  entry.expiresAt - now < (isBound(entry) ? 0 : entry.ttlMs) - MAX_SHORTFALL_MS;

/** The answer of acquire, without the durations and `repeated`. */
const answerFor = (
  { key, namespace, permit }: WaitingTask,
  { record: { used }, entry, now }: { record: KeyRecord; entry: HolderEntry; now: number },
) => ({
  ...grantView(nameWithin(namespace, key), entry, now),
  previous: previousView(entry.previous),
  ...(entry.path !== ALONE &&
    sharedTerms(entry, { used, limit: permit?.limit ?? null, limitBefore: entry.limitBefore })),
});

/** With the current entry. */
type Extended = Written & { entry: HolderEntry | undefined };

interface EntryOnRecord {
  key: string;
  /** As it was last seen. */
  entry: HolderEntry;
}

interface Extending extends EntryOnRecord {
  /** Whether the request received this grant before. Its execution may have been redriven since, so the time is recorded. */
  isRepeated?: boolean;
  /** What a caller asked for that claims its grant. */
  claim?: { ttlMs: number; hints: Record<string, number> } | undefined;
}

/**
 * Passes the grant of a request to a task of that request, with its whole ttl from now on (docs/protocols/tasks.md#park). A grant that no call has
 * claimed becomes that of the task's ticket and execution, and takes the ttl of the task. Every other grant keeps its own and is never shortened:
 * another call or task of the request may work under it, and the end of another execution must not end it.
 * @returns as `extend`
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function passToTask(
  dependencies: LeaseDependencies,
  { key, entry, waiter }: EntryOnRecord & { waiter: WaitingTask },
  call: Call,
): Promise<Extended> {
  const isOfTask = entry.claimTtlMs !== undefined || isRedriven(entry, waiter);
  const more = isOfTask ? ofTask(entry.path, waiter) : undefined;
  const fullTtlMs = isOfTask ? waiter.ttlSeconds * 1000 : undefined;
  return writeVersion(dependencies, { key, entry, more, fullTtlMs, isAnswered: !isOfTask }, call);
}

/** What makes the grant that of the task: no call has claimed it, or its execution was redriven. */
function ofTask(path: string, { ticket, execution, target, graceSeconds, bound }: WaitingTask): Partial<WritePart> {
  const parts: Item = {
    k: text(ticket),
    ...(target !== undefined && { y: text(target) }),
    ...(graceSeconds && { n: integer(graceSeconds * 1000) }),
    ...(bound && { z: { BOOL: true } }),
  };
  const { set, values } = setting(parts);
  const isWithoutGrace = execution !== undefined && !graceSeconds;
  const remove = ['#h.c', '#h.g', ...(bound ? [] : ['#h.z']), ...(isWithoutGrace ? ['#h.n'] : [])];
  if (execution === undefined) return { set, values, remove };
  const at = executionAt(path);
  return { set: [...set, `${at} = :execution`], values: { ...values, ':execution': text(execution) }, remove };
}

/** Does not extend the grant. The new version keeps each call that saw an earlier version from handing the grant off. @returns as `extend` */
export const answer = (dependencies: LeaseDependencies, { key, entry }: EntryOnRecord, call: Call): Promise<Extended> =>
  writeAnew(dependencies, { key, entry, ...setting({ r: integer(dependencies.clock.now()) }) }, call);

/**
 * Gives a grant its whole ttl from now on, and a new version, so that no call that has seen it before can end it or hand it off.
 * @returns with the entry as it stands
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function extend(
  dependencies: LeaseDependencies,
  { key, entry, claim, isRepeated = false }: Extending,
  call: Call,
): Promise<Extended> {
  if (!claim) return writeVersion(dependencies, { key, entry, isAnswered: isRepeated }, call);
  const { ttlMs: fullTtlMs, hints } = claim;
  const names = Object.keys(hints);
  // The write of the hand-off may have been late, and no call has answered with the grant yet.
  const raised = entry.metNoFence ? risen(entry, dependencies.clock.now()) : undefined;
  const more = {
    set: [...names.map((name) => `${name} = :${name}`), ...(raised?.set ?? [])],
    remove: ['#h.c', ...(entry.path === ALONE ? [] : ['#h.q']), ...(raised?.remove ?? [])],
    ...(raised && { names: raised.names }),
    values: { ...Object.fromEntries(names.map((name) => [`:${name}`, integer(hints[name] ?? 0)])), ...raised?.values },
  };
  return writeVersion(dependencies, { key, entry, more, fullTtlMs, isAnswered: true }, call);
}

/** Raises the fence of a grant that met none, before any call answers with the grant (docs/protocols/locks.md#late-grants). */
function risen({ path, fence }: HolderEntry, now: number): WritePart {
  const isAlone = path === ALONE;
  return {
    set: ['fence = :fence', ...(isAlone ? [] : ['#f = :fence'])],
    remove: ['#h.f'],
    names: isAlone ? {} : { '#f': fencePathOf(path) },
    values: { ':fence': integer(Math.max(fence + 1, now)) },
  };
}

/**
 * The same for a grant that this call has written late. Does nothing if another grant has come since, which has a higher fence.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function raiseFence(
  dependencies: LeaseDependencies,
  { key, entry }: EntryOnRecord,
  call: Call,
): Promise<Extended> {
  const isLast = { expression: 'fence = :seenFence', values: { ':seenFence': integer(entry.fence) } };
  const condition = all(isStill(entry), isLast);
  return writeAnew(dependencies, { key, entry, condition, ...risen(entry, dependencies.clock.now()) }, call);
}

/**
 * Writes on a grant that still has the version that was seen. The new version keeps every call that saw the grant before from ending it or handing it off.
 * @returns with the entry as it stands
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function writeAnew(
  dependencies: LeaseDependencies,
  { entry, set, values, ...update }: EntryOnRecord & Omit<KeyUpdate, 'condition'> & Partial<KeyUpdate>,
  call: Call,
): Promise<Extended> {
  const version = dependencies.ids.uuid();
  const written = await updateKey(
    dependencies,
    {
      ...{ condition: isStill(entry), ...update },
      set: ['#h.v = :version', ...set],
      values: { ':version': text(version), ...values },
    },
    call,
  );
  const after = entryOf(written.record, entry.name);
  // An earlier try of the SDK may have won before the try that lost.
  return { ...written, won: written.won || after?.version === version, entry: after };
}

interface Anew extends EntryOnRecord {
  /** Of a grant that was made for the window: the ttl that it has from now on. */
  fullTtlMs?: number | undefined;
  /** Whether a call is answered with the grant, or a task receives what its request already had. */
  isAnswered?: boolean;
  /** What the write sets and removes besides. */
  more?: Partial<WritePart> | undefined;
}

function writeVersion(
  dependencies: LeaseDependencies,
  { key, entry, fullTtlMs, isAnswered = false, more = {} }: Anew,
  call: Call,
): Promise<Extended> {
  const now = dependencies.clock.now();
  const isFull = fullTtlMs !== undefined;
  const ttlMs = fullTtlMs ?? entry.ttlMs;
  const expiresAt = Math.max(now + ttlMs, isFull ? 0 : entry.expiresAt);
  const { set, values } = setting({
    // Only a heartbeat changes the times of a bound grant. So the times show whether the holder knows of the grant.
    // Never earlier than the heartbeat that set the expiry. Otherwise a heartbeat by a clock that is behind would shorten the grant.
    ...((isFull || !isBound(entry)) && { b: integer(expiresAt - ttlMs), e: integer(expiresAt) }),
    ...(isFull && { t: integer(ttlMs), a: integer(now) }),
    ...(isFull && entry.path === ALONE && { u: secondsOf(ttlMs) }),
    ...(isAnswered && { r: integer(now) }),
  });
  const update = {
    ...{ key, entry, ...more, ttl: ttlOfRecord(entry.path, { now, expiresAt }) },
    ...{ set: [...set, ...(more.set ?? [])], values: { ...values, ...more.values } },
  };
  return writeAnew(dependencies, update, call);
}

/** The part of an update that sets parts of an entry. */
export function setting(parts: Item): { set: string[]; values: Item } {
  const names = Object.keys(parts);
  return {
    set: names.map((part) => `#h.${part} = :${part}`),
    values: Object.fromEntries(names.map((part) => [`:${part}`, parts[part]])) as Item,
  };
}

type BoundTerms = Pick<GrantRequest, 'bound' | 'execution'>;

/** Whether a grant goes on for the grace of the execution that asks again for a bound one, because it was redriven. */
const isRedriven = (entry: HolderEntry, { bound, execution }: BoundTerms): boolean =>
  bound === true && entry.execution === undefined && entry.endedExecution === execution && execution !== undefined;

/** The error for a request whose grant ends otherwise than this call asks for: an answer with the grant would mislead the caller about its end. */
export function otherTerms(entry: HolderEntry, asked: BoundTerms): HoldfastError | undefined {
  const boundTo = isBound(entry) ? entry.execution : undefined;
  if (isRedriven(entry, asked) || (asked.bound ? asked.execution : undefined) === boundTo) return undefined;
  const terms =
    boundTo === undefined
      ? 'has a grant with a ttl: send ttlSeconds in place of bound'
      : 'has a bound grant of another execution or with a ttl: send bound and that execution';
  return invalidRequest([{ path: 'requestId', message: `${terms}, or another requestId` }]);
}
