import { integer, text } from '../../../aws/attributes.ts';
import type { Call } from '../../../aws/call.ts';
import { type Deliverable, deliver, type Notified } from '../../queue/delivery.ts';
import type { TaskTicket } from '../../queue/tickets.ts';
import { previousView } from '../../views.ts';
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
    ...{ acquiredAt: own.acquiredAt, expiresAt: own.expiresAt, ttlMs: own.ttlMs },
    output: (now) => ({
      ...permitGrant(standing.key, own, now),
      previous: previousView(own.previous),
      ...permitTerms(own, { used: standing.used, limit: ticket.permit?.limit ?? null }),
    }),
    renewed: async () => {
      const extending = { key: record.key, entry: own, claimTtlMs: own.claimTtlMs };
      const { won, standing: after, entry: next } = await extend(dependencies, extending, call);
      // The write of a claim forgets the holder before.
      const { previous } = own;
      return won && next ? deliverable(after, { ...next, previous }) : { overtaken: after };
    },
  });
  return deliver(dependencies, { ...message, ticket, grant: deliverable(record, entry) }, call);
}

interface Extending {
  key: string;
  /** As it was last seen. */
  entry: PoolEntry;
  /** The ttl that a caller asked for. The permit becomes whole: by its claim, or because a task of the request is told of it. */
  claimTtlMs?: number | undefined;
}

/**
 * Gives a permit its whole ttl from now on, and a new version, so that no call that has seen it before can end it or hand it on.
 * @returns with the entry as it stands
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function extend(
  dependencies: PoolDependencies,
  { key, entry, claimTtlMs }: Extending,
  call: Call,
): Promise<Written & { entry: PoolEntry | undefined }> {
  const now = dependencies.clock.now();
  const version = dependencies.ids.uuid();
  const isClaim = claimTtlMs !== undefined;
  const ttlMs = claimTtlMs ?? entry.ttlMs;
  const expiresAt = Math.max(now + ttlMs, isClaim ? 0 : entry.expiresAt);
  const written = await updatePool(
    dependencies,
    {
      key,
      now,
      set: ['#h.v = :version', '#h.b = :beat', '#h.e = :expires', ...(isClaim ? ['#h.t = :ttlMs', '#h.a = :now'] : [])],
      remove: isClaim ? ['#h.c', '#h.q'] : [],
      condition: isStill(entry),
      values: {
        ':version': text(version),
        // Never earlier than the beat that set the expiry. Otherwise a heartbeat by a clock that is behind would shorten the permit.
        ':beat': integer(expiresAt - ttlMs),
        ':expires': integer(expiresAt),
        ...(isClaim && { ':now': integer(now), ':ttlMs': integer(ttlMs) }),
      },
    },
    call,
  );
  const standing = entryOf(written.standing, entry.name);
  // A try of the SDK may have landed before the one that lost.
  return { ...written, won: written.won || standing?.version === version, entry: standing };
}
