import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { previousView } from '../../line/calls.ts';
import { type Deliverable, deliver, type Notified } from '../../line/notify.ts';
import type { TaskTicket } from '../../line/waiters.ts';
import { isStill } from '../conditions.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { entryOf, type PoolEntry, type PoolRecord } from '../record.ts';
import { permitGrant, permitTerms } from '../views.ts';
import { updatePool, type Written } from '../write.ts';

interface Message {
  ticket: TaskTicket;
  record: PoolRecord;
  entry: PoolEntry;
  /** Whether the request had this permit before. */
  repeated: boolean;
  /** Whether this call wrote the version on record. */
  isOurs: boolean;
}

/** Wakes a task with its permit, as acquire would have answered. @throws as `deliver` */
export function tellGrant(
  dependencies: PoolDependencies,
  { ticket, record, entry, ...message }: Message,
  call: Call,
): Promise<Notified<PoolRecord>> {
  const deliverable = (standing: PoolRecord, own: PoolEntry): Deliverable<PoolRecord> => ({
    standing,
    expiresAt: own.expiresAt,
    ttlMs: own.ttlMs,
    output: (now) => ({
      ...permitGrant(standing.key, own, now),
      previous: previousView(own.previous),
      ...permitTerms(own, { used: standing.used, limit: ticket.permit?.limit ?? null }),
    }),
    renewed: async () => {
      const { won, standing: after, entry: next } = await extend(dependencies, { key: record.key, entry: own }, call);
      return won && next ? deliverable(after, next) : { overtaken: after };
    },
  });
  return deliver(dependencies, { ...message, ticket, grant: deliverable(record, entry) }, call);
}

/** With the entry as it stands. */
type Extended = Written & { entry: PoolEntry | undefined };

interface OnRecord {
  key: string;
  /** As it was last seen. */
  entry: PoolEntry;
}

interface Extending extends OnRecord {
  /** The ttl that a caller asked for, which claims its permit. */
  claimTtlMs?: number | undefined;
}

/**
 * Passes a permit that no call has claimed to a task of the same request, whole. From now on it is that of the task's ticket, so that the schedule
 * notifies the task if this call dies, and that of its execution.
 * @returns as `extend`
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function passToTask(
  dependencies: PoolDependencies,
  { key, entry, ticket }: OnRecord & { ticket: TaskTicket },
  call: Call,
): Promise<Extended> {
  const { ttlSeconds, execution, target, graceSeconds } = ticket;
  const parts: Item = {
    k: text(ticket.ticket),
    ...(execution !== undefined && { x: text(execution) }),
    ...(target !== undefined && { y: text(target) }),
    ...(graceSeconds && { n: integer(graceSeconds * 1000) }),
  };
  const whole = {
    ttlMs: ttlSeconds * 1000,
    set: Object.keys(parts).map((part) => `#h.${part} = :${part}`),
    values: Object.fromEntries(Object.entries(parts).map(([part, value]) => [`:${part}`, value])),
    remove: ['#h.c', ...(execution !== undefined && !graceSeconds ? ['#h.n'] : [])],
  };
  return writeAnew(dependencies, { key, entry, whole }, call);
}

/**
 * Gives a permit its whole ttl from now on, and a new version, so that no call that has seen it before can end it or hand it on.
 * @returns with the entry as it stands
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function extend(
  dependencies: PoolDependencies,
  { key, entry, claimTtlMs }: Extending,
  call: Call,
): Promise<Extended> {
  const whole = claimTtlMs === undefined ? undefined : { ttlMs: claimTtlMs, remove: ['#h.c', '#h.q'] };
  return writeAnew(dependencies, { key, entry, whole }, call);
}

interface Anew extends OnRecord {
  /** Of a permit that was granted for the window: what it becomes, and what the write sets and removes besides. */
  whole?: { ttlMs: number; set?: string[]; values?: Item; remove: string[] } | undefined;
}

async function writeAnew(dependencies: PoolDependencies, { key, entry, whole }: Anew, call: Call): Promise<Extended> {
  const now = dependencies.clock.now();
  const version = dependencies.ids.uuid();
  const ttlMs = whole?.ttlMs ?? entry.ttlMs;
  const expiresAt = Math.max(now + ttlMs, whole ? 0 : entry.expiresAt);
  const written = await updatePool(
    dependencies,
    {
      key,
      now,
      set: [
        ...['#h.v = :version', '#h.b = :beat', '#h.e = :expires'],
        ...(whole ? ['#h.t = :ttlMs', '#h.a = :now', ...(whole.set ?? [])] : []),
      ],
      remove: whole?.remove ?? [],
      condition: isStill(entry),
      values: {
        ':version': text(version),
        // Never earlier than the beat that set the expiry. Otherwise a heartbeat by a clock that is behind would shorten the permit.
        ':beat': integer(expiresAt - ttlMs),
        ':expires': integer(expiresAt),
        ...(whole && { ':now': integer(now), ':ttlMs': integer(ttlMs), ...whole.values }),
      },
    },
    call,
  );
  const standing = entryOf(written.standing, entry.name);
  // A try of the SDK may have landed before the one that lost.
  return { ...written, won: written.won || standing?.version === version, entry: standing };
}
