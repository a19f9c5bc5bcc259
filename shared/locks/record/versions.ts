import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import type { HoldfastError } from '../../errors.ts';
import { previousView } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { otherEnd } from '../executions/questions.ts';
import { type Deliverable, deliver, measureHandOff, type Notified } from '../line/notify.ts';
import type { WaitingTask } from '../line/waiters.ts';
import { isStill } from './conditions.ts';
import { ALONE, fencePathOf } from './identity.ts';
import { grantView, sharedTerms } from './outcomes.ts';
import { entryOf, type HolderEntry, isBound, type KeyRecord } from './record.ts';
import { executionAt, secondsOf, ttlOf, updateKey, type Written } from './requests.ts';
import type { GrantRequest } from './room.ts';

interface Message {
  waiter: WaitingTask;
  record: KeyRecord;
  entry: HolderEntry;
  /** Whether the request had this grant before. */
  repeated: boolean;
  /** Whether this call wrote the version on record. */
  isOurs: boolean;
}

/** Notifies a task of its grant, as acquire would have answered. @throws as `deliver` */
export async function notifyHolder(
  dependencies: LeaseDependencies,
  { waiter, record, entry, ...message }: Message,
  call: Call,
): Promise<Notified<KeyRecord>> {
  const deliverable = (current: KeyRecord, own: HolderEntry): Deliverable<KeyRecord> => ({
    record: current,
    expiresAt: own.expiresAt,
    ttlMs: isBound(own) ? 0 : own.ttlMs,
    output: (now) => ({
      ...grantView(current.key, own, now),
      previous: previousView(own.previous),
      ...(own.path !== ALONE &&
        sharedTerms(own, { used: current.used, limit: waiter.permit?.limit ?? null, limitBefore: own.limitBefore })),
    }),
    renewed: async () => {
      const {
        won,
        record: after,
        entry: next,
      } = await extend(dependencies, { key: record.key, entry: own, isRepeated: message.repeated }, call);
      return won && next ? deliverable(after, next) : { overtaken: after };
    },
  });
  const notified = await deliver(dependencies, { ...message, waiter, grant: deliverable(record, entry) }, call);
  const received = entryOf(notified.record, entry.name);
  if (notified.outcome === 'delivered' && !message.repeated && received)
    measureHandOff(received, dependencies.clock.now(), call);
  return notified;
}

/** With the current entry. */
type Extended = Written & { entry: HolderEntry | undefined };

interface OnRecord {
  key: string;
  /** As it was last seen. */
  entry: HolderEntry;
}

interface Extending extends OnRecord {
  /** Whether the request received this grant before. Its execution may have been redriven since, so the time is recorded. */
  isRepeated?: boolean;
  /** What a caller asked for that claims its grant. */
  claim?: { ttlMs: number; paceMs?: number | undefined };
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
  { key, entry, waiter }: OnRecord & { waiter: WaitingTask },
  call: Call,
): Promise<Extended> {
  const isOfTask = entry.claimTtlMs !== undefined || isRedriven(entry, waiter);
  const more = isOfTask ? ofTask(entry.path, waiter) : undefined;
  const fullTtlMs = isOfTask ? waiter.ttlSeconds * 1000 : undefined;
  return writeVersion(dependencies, { key, entry, more, fullTtlMs, isAnswered: !isOfTask }, call);
}

/** What makes the grant that of the task: no call has claimed it, or its execution was redriven. */
function ofTask(path: string, { ticket, execution, target, graceSeconds, bound }: WaitingTask): More {
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
export async function answer(dependencies: LeaseDependencies, { key, entry }: OnRecord, call: Call): Promise<Extended> {
  const { clock, ids } = dependencies;
  const version = ids.uuid();
  const parts = setting({ v: text(version), r: integer(clock.now()) });
  const written = await updateKey(dependencies, { key, ...parts, condition: isStill(entry) }, call);
  const after = entryOf(written.record, entry.name);
  // An earlier try of the SDK may have won before the try that lost.
  return { ...written, won: written.won || after?.version === version, entry: after };
}

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
  const { ttlMs: fullTtlMs, paceMs } = claim;
  const isPaced = paceMs !== undefined;
  // The write of the hand-off may have been late, and no call has answered with the grant yet.
  const raised = entry.metNoFence ? risen(entry, dependencies.clock.now()) : undefined;
  const more = {
    set: [...(isPaced ? ['pace_ms = :pace'] : []), ...(raised?.set ?? [])],
    remove: ['#h.c', ...(entry.path === ALONE ? [] : ['#h.q']), ...(raised?.remove ?? [])],
    ...(raised && { names: raised.names }),
    values: { ...(isPaced && { ':pace': integer(paceMs) }), ...raised?.values },
  };
  return writeVersion(dependencies, { key, entry, more, fullTtlMs, isAnswered: true }, call);
}

/** Raises the fence of a grant that met none, before any call answers with the grant (docs/protocols/locks.md#late-grants). */
function risen({ path, fence }: HolderEntry, now: number): Required<More> {
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
  { key, entry }: OnRecord,
  call: Call,
): Promise<Extended> {
  const version = dependencies.ids.uuid();
  const { set, ...more } = risen(entry, dependencies.clock.now());
  const written = await updateKey(
    dependencies,
    {
      key,
      set: ['#h.v = :version', ...set],
      condition: all(isStill(entry), {
        expression: 'fence = :seenFence',
        values: { ':seenFence': integer(entry.fence) },
      }),
      ...more,
      values: { ':version': text(version), ...more.values },
    },
    call,
  );
  const after = entryOf(written.record, entry.name);
  return { ...written, won: written.won || after?.version === version, entry: after };
}

/** What a write on a grant sets and removes besides. */
interface More {
  set: string[];
  names?: Record<string, string>;
  values?: Item;
  remove: string[];
}

interface Anew extends OnRecord {
  /** Of a grant that was made for the window: the ttl that it has from now on. */
  fullTtlMs?: number | undefined;
  /** Whether a call is answered with the grant, or a task receives what its request already had. */
  isAnswered?: boolean;
  more?: More | undefined;
}

async function writeVersion(
  dependencies: LeaseDependencies,
  { key, entry, fullTtlMs, isAnswered = false, more }: Anew,
  call: Call,
): Promise<Extended> {
  const now = dependencies.clock.now();
  const version = dependencies.ids.uuid();
  const isFull = fullTtlMs !== undefined;
  const isAlone = entry.path === ALONE;
  const ttlMs = fullTtlMs ?? entry.ttlMs;
  const expiresAt = Math.max(now + ttlMs, isFull ? 0 : entry.expiresAt);
  // Only a heartbeat changes the times of a bound grant. So the times show whether the holder knows of the grant.
  const isLonger = isFull || !isBound(entry);
  const written = await updateKey(
    dependencies,
    {
      key,
      set: [
        '#h.v = :version',
        ...(isLonger ? ['#h.b = :beat', '#h.e = :expires'] : []),
        ...(isFull ? ['#h.t = :ttlMs', '#h.a = :now'] : []),
        ...(isFull && isAlone ? ['#h.u = :ttlSeconds'] : []),
        ...(isAnswered ? ['#h.r = :now'] : []),
        ...(more?.set ?? []),
      ],
      remove: more?.remove ?? [],
      condition: isStill(entry),
      names: more?.names ?? {},
      values: {
        ':version': text(version),
        // Never earlier than the beat that set the expiry. Otherwise a heartbeat by a clock that is behind would shorten the grant.
        ...(isLonger && { ':beat': integer(expiresAt - ttlMs), ':expires': integer(expiresAt) }),
        ...(isFull && { ':ttlMs': integer(ttlMs) }),
        ...(isFull && isAlone && { ':ttlSeconds': secondsOf(ttlMs) }),
        ...((isFull || isAnswered) && { ':now': integer(now) }),
        ...more?.values,
      },
      ttl: ttlOf(entry.path, { now, expiresAt }),
    },
    call,
  );
  const record = entryOf(written.record, entry.name);
  // A try of the SDK may have landed before the one that lost.
  return { ...written, won: written.won || record?.version === version, entry: record };
}

/** The part of an update that sets parts of an entry. */
export function setting(parts: Item): { set: string[]; values: Item } {
  const names = Object.keys(parts);
  return {
    set: names.map((part) => `#h.${part} = :${part}`),
    values: Object.fromEntries(names.map((part) => [`:${part}`, parts[part]])) as Item,
  };
}

type Terms = Pick<GrantRequest, 'bound' | 'execution'>;

/** Whether a grant goes on for the grace of the execution that asks again for a bound one, because it was redriven. */
const isRedriven = (entry: HolderEntry, { bound, execution }: Terms): boolean =>
  bound === true && entry.execution === undefined && entry.endedExecution === execution && execution !== undefined;

/** The error for a request that has a grant which ends otherwise than this call asks for. */
export const otherTerms = (entry: HolderEntry, asked: Terms): HoldfastError | undefined =>
  isRedriven(entry, asked) ? undefined : otherEnd(asked, isBound(entry) ? entry.execution : undefined);
