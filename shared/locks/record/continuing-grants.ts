import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { type HoldfastError, invalidRequest } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { WaitingTask } from '../line/waiters.ts';
import { isEntryAsSeen } from './conditions.ts';
import { EXCLUSIVE_PATH, fencePathOf } from './identity.ts';
import { entryOf, type HolderEntry, isBound } from './record.ts';
import {
  executionAt,
  type KeyUpdate,
  secondsAttribute,
  ttlOfRecord,
  updateKey,
  type WritePart,
  type Written,
} from './requests.ts';
import type { GrantRequest } from './room.ts';

type Extended = Written & { entry: HolderEntry | undefined };

interface EntryOnRecord {
  key: string;
  entry: HolderEntry;
}

interface Renewal extends EntryOnRecord {
  /**
   * Whether the request has received this grant before. Its execution may have been redriven since, so the time of this
   * answer is recorded.
   */
  isRepeated?: boolean;
  /** The ttl and the hints of a call that claims its grant. */
  claim?: { ttlMs: number; hints: Record<string, number> } | undefined;
}

/**
 * Passes the grant of a request to a task of the same request, with the whole ttl from now on
 * (docs/protocols/tasks.md#park). A grant that no call has claimed takes the ticket, the execution and the ttl of the
 * task. Any other grant keeps its own terms and is never shortened: another call or task of the request may work under
 * it, and the end of this task's execution must not end it.
 * @returns as `renew`
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function passToTask(
  dependencies: LeaseDependencies,
  { key, entry, waiter }: EntryOnRecord & { waiter: WaitingTask },
  call: Call,
): Promise<Extended> {
  const takesTerms = entry.claimTtlMs !== undefined || isRedriven(entry, waiter);
  const more = takesTerms ? termsOfTask(entry.path, waiter) : undefined;
  const fullTtlMs = takesTerms ? waiter.ttlSeconds * 1000 : undefined;
  return extendUnderNewVersion(dependencies, { key, entry, more, fullTtlMs, isAnswered: !takesTerms }, call);
}

function termsOfTask(
  path: string,
  { ticket, execution, target, graceSeconds, bound }: WaitingTask,
): Partial<WritePart> {
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
  const attribute = executionAt(path);
  return { set: [...set, `${attribute} = :execution`], values: { ...values, ':execution': text(execution) }, remove };
}

/**
 * Records that a call answers with the grant, and does not extend it. The new version keeps each call that
 * read an earlier one from handing the grant off.
 * @returns as `renew`
 */
export const recordAnswer = (
  dependencies: LeaseDependencies,
  { key, entry }: EntryOnRecord,
  call: Call,
): Promise<Extended> =>
  writeNewVersion(dependencies, { key, entry, ...setting({ r: integer(dependencies.clock.now()) }) }, call);

/**
 * Gives a grant its whole ttl from now on. With `claim`, makes it a full grant.
 * @returns the entry as it is after the write, as another call may have left it
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function renew(
  dependencies: LeaseDependencies,
  { key, entry, claim, isRepeated = false }: Renewal,
  call: Call,
): Promise<Extended> {
  if (!claim) return extendUnderNewVersion(dependencies, { key, entry, isAnswered: isRepeated }, call);
  const { ttlMs: fullTtlMs, hints } = claim;
  const names = Object.keys(hints);
  // The write of the hand-off may have been late. No call has answered with the grant yet, so its fence may still rise.
  const raised = entry.metNoFence ? raisedFence(entry, dependencies.clock.now()) : undefined;
  const more = {
    set: [...names.map((name) => `${name} = :${name}`), ...(raised?.set ?? [])],
    remove: ['#h.c', ...(entry.path === EXCLUSIVE_PATH ? [] : ['#h.q']), ...(raised?.remove ?? [])],
    ...(raised && { names: raised.names }),
    values: { ...Object.fromEntries(names.map((name) => [`:${name}`, integer(hints[name] ?? 0)])), ...raised?.values },
  };
  return extendUnderNewVersion(dependencies, { key, entry, more, fullTtlMs, isAnswered: true }, call);
}

/**
 * The part of a write that raises the fence of a grant, before any call answers with the grant
 * (docs/protocols/locks.md#late-grants).
 */
function raisedFence({ path, fence }: HolderEntry, now: number): WritePart {
  const isExclusive = path === EXCLUSIVE_PATH;
  return {
    set: ['fence = :fence', ...(isExclusive ? [] : ['#f = :fence'])],
    remove: ['#h.f'],
    names: isExclusive ? {} : { '#f': fencePathOf(path) },
    values: { ':fence': integer(Math.max(fence + 1, now)) },
  };
}

/**
 * Raises the fence of a grant that this call has written late. Does nothing if another grant has been made since, which
 * has a higher fence.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function raiseFence(
  dependencies: LeaseDependencies,
  { key, entry }: EntryOnRecord,
  call: Call,
): Promise<Extended> {
  const isLast = { expression: 'fence = :seenFence', values: { ':seenFence': integer(entry.fence) } };
  const condition = all(isEntryAsSeen(entry), isLast);
  return writeNewVersion(
    dependencies,
    { key, entry, condition, ...raisedFence(entry, dependencies.clock.now()) },
    call,
  );
}

/**
 * Writes on a grant, unless another call has changed it since it was read. The new version keeps every call that read
 * the grant before from ending it or handing it off.
 * @returns the entry as it is after the write, as another call may have left it
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function writeNewVersion(
  dependencies: LeaseDependencies,
  { entry, set, values, ...update }: EntryOnRecord & Omit<KeyUpdate, 'condition'> & Partial<KeyUpdate>,
  call: Call,
): Promise<Extended> {
  const version = dependencies.ids.uuid();
  const written = await updateKey(
    dependencies,
    {
      ...{ condition: isEntryAsSeen(entry), ...update },
      set: ['#h.v = :version', ...set],
      values: { ':version': text(version), ...values },
    },
    call,
  );
  const current = entryOf(written.record, entry.name);
  // If the version is ours although the write lost, an earlier try of the SDK has won.
  return { ...written, won: written.won || current?.version === version, entry: current };
}

interface VersionWrite extends EntryOnRecord {
  /** The ttl that the grant has from now on, if the write makes it a full grant. */
  fullTtlMs?: number | undefined;
  /** Whether a call answers with the grant, or a task receives a grant that its request already had. */
  isAnswered?: boolean;
  more?: Partial<WritePart> | undefined;
}

function extendUnderNewVersion(
  dependencies: LeaseDependencies,
  { key, entry, fullTtlMs, isAnswered = false, more = {} }: VersionWrite,
  call: Call,
): Promise<Extended> {
  const now = dependencies.clock.now();
  const isFull = fullTtlMs !== undefined;
  const ttlMs = fullTtlMs ?? entry.ttlMs;
  const expiresAt = Math.max(now + ttlMs, isFull ? 0 : entry.expiresAt);
  const { set, values } = setting({
    // Only a heartbeat changes the times of a bound grant, so they show whether the holder knows of the grant. `b` is
    // never before the heartbeat that set the expiry. Otherwise a heartbeat by a clock that is behind would shorten the
    // grant.
    ...((isFull || !isBound(entry)) && { b: integer(expiresAt - ttlMs), e: integer(expiresAt) }),
    ...(isFull && { t: integer(ttlMs), a: integer(now) }),
    ...(isFull && entry.path === EXCLUSIVE_PATH && { u: secondsAttribute(ttlMs) }),
    ...(isAnswered && { r: integer(now) }),
  });
  const update = {
    ...{ key, entry, ...more, ttl: ttlOfRecord(entry.path, { now, expiresAt }) },
    ...{ set: [...set, ...(more.set ?? [])], values: { ...values, ...more.values } },
  };
  return writeNewVersion(dependencies, update, call);
}

export function setting(parts: Item): { set: string[]; values: Item } {
  const names = Object.keys(parts);
  return {
    set: names.map((part) => `#h.${part} = :${part}`),
    values: Object.fromEntries(names.map((part) => [`:${part}`, parts[part]])) as Item,
  };
}

type BoundTerms = Pick<GrantRequest, 'bound' | 'execution'>;

/** Whether the grant is in the grace of the same execution, which was redriven and asks for a bound grant again. */
const isRedriven = (entry: HolderEntry, { bound, execution }: BoundTerms): boolean =>
  bound === true && entry.execution === undefined && entry.endedExecution === execution && execution !== undefined;

/**
 * The error if the request has a grant that does not end as this call asks. An answer with that
 * grant would mislead the caller about its end.
 */
export function otherTermsError(entry: HolderEntry, terms: BoundTerms): HoldfastError | undefined {
  const boundTo = isBound(entry) ? entry.execution : undefined;
  if (isRedriven(entry, terms) || (terms.bound ? terms.execution : undefined) === boundTo) return undefined;
  const fault =
    boundTo === undefined
      ? 'has a grant with a ttl: send ttlSeconds in place of bound'
      : 'has a bound grant of another execution or with a ttl: send bound and that execution';
  return invalidRequest([{ path: 'requestId', message: `${fault}, or another requestId` }]);
}
