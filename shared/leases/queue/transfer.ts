import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { grantUnchanged, isBelow, queueUnchanged } from '../conditions.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ENDED_ATTRIBUTES, type Ended, endedItem } from '../ended.ts';
import { grantItem, newGrant } from '../grant.ts';
import type { LeaseRecord } from '../record.ts';
import { isLeased } from '../rules.ts';
import { updateLease, type Written } from '../write.ts';
import type { Ending } from './line.ts';
import { isCounter, raising } from './marks.ts';
import { shortName } from './pace.ts';
import { isTask, type Ticket } from './tickets.ts';

/** How long a caller has to claim its grant. */
export const WINDOW_SECONDS = 2;

/** So many of those in line are told their places. */
const MAX_HINTED = 8;

/** Attributes that the previous grant may have left, and that a new grant need not have. */
const OPTIONAL = [
  ...['principal', 'data', 'execution', 'target', 'released_at', 'broken_at'],
  ...['ended_by', 'claim_ttl_ms', 'next_ticket', 'next_tickets'],
  ...ENDED_ATTRIBUTES,
];

/**
 * Moves the lease from one holder to the next, or from nobody, in one write, so that nobody comes in between
 * (docs/protocols/queue.md#hand-off). Replaces or removes all of the previous grant: its execution, left behind, would free
 * the successor's lease when it ends.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function transfer(
  dependencies: LeaseDependencies,
  { from, how, ticket, others, next, following, previous }: Transfer,
  call: Call,
): Promise<Written> {
  const { ttlSeconds } = ticket;
  const asked = isTask(ticket) ? ticket : { ...ticket, ttlSeconds: WINDOW_SECONDS, claimTtlSeconds: ttlSeconds };
  const grant = newGrant(dependencies, asked, from);
  const { key, version } = grant;
  const keepsCounting = others && isCounter(from);
  const unchanged = keepsCounting ? grantUnchanged(from) : all(grantUnchanged(from), queueUnchanged(from));
  const hints = others && next ? hintsOf({ from, how, next, following }, grant.acquiredAt) : {};
  const kept = { ...(previous && endedItem(previous)), ...hints };
  const replacement = replacing({ ...grantItem(grant), ...kept }, others ? raising(from) : undefined);
  const condition = all(unchanged, isBelow(grant.fence));
  return updateLease(dependencies, { key, version, condition, ...replacement }, call);
}

interface Transfer {
  /** The record as it was last seen, and how its grant ends. */
  from: LeaseRecord;
  how: Ending;
  ticket: Ticket;
  /** Whether others are in line. If none are, the mark goes, on condition that nobody has joined since. */
  others: boolean;
  /** The first of them. */
  next: Ticket | undefined;
  /** Those after the new holder, as far as they were read. */
  following: readonly Ticket[];
  /** The holder before. */
  previous: Ended | undefined;
}

/** When the others in line should look again (pace.ts). Nothing but time rests on it. */
function hintsOf(
  { from, how, next, following }: Pick<Transfer, 'from' | 'how' | 'following'> & { next: Ticket },
  now: number,
): Item {
  const wasHeld =
    how === 'released' && isLeased(from) && from.claimTtlMs === undefined && from.acquiredAt !== undefined;
  return {
    next_ticket: text(next.ticket),
    next_tickets: text(
      following
        .slice(0, MAX_HINTED)
        .map(({ ticket }) => shortName(ticket))
        .join(' '),
    ),
    ...(wasHeld && { turn_ms: integer(Math.max(0, now - Number(from.acquiredAt))) }),
  };
}

/** All names have aliases, because some of them are reserved words. */
function replacing(item: Item, raised: ReturnType<typeof raising> | undefined) {
  const { key: _, ...attributes } = item;
  const set = Object.keys(attributes);
  const removed = OPTIONAL.filter((name) => !set.includes(name));
  return {
    expression:
      `SET ${set.map((name) => `#${name} = :${name}`).join(', ')}${raised ? `, ${raised.expression}` : ''} ` +
      `REMOVE ${removed.map((name) => `#${name}`).join(', ')}${raised ? '' : ', waiters, turn_ms'}`,
    names: Object.fromEntries([...set, ...removed].map((name) => [`#${name}`, name])),
    values: {
      ...Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`:${name}`, value])),
      ...raised?.values,
    },
  };
}
