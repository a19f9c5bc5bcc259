import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import { grantUnchanged, isBelow, queueUnchanged } from '../conditions.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { type Grant, grantItem, newGrant } from '../grant.ts';
import type { LeaseRecord } from '../record.ts';
import { updateLease, type Written } from '../write.ts';
import { isCounter, raising } from './marks.ts';
import type { Ticket } from './tickets.ts';

/** Attributes that the previous grant may have left, and that a new grant need not have. */
const OPTIONAL = ['principal', 'data', 'execution', 'target', 'released_at', 'broken_at'];

/**
 * Moves the lease from one holder to the next, or from nobody, in one write, so that nobody comes in between
 * (docs/protocols/queue.md#hand-off). Replaces or removes all of the previous grant: its execution, left behind, would free
 * the successor's lease when it ends.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function transfer(
  dependencies: LeaseDependencies,
  { from, ticket, others }: Transfer,
  call: Call,
): Promise<Written> {
  const grant = newGrant(dependencies, ticket, from);
  const { key, version } = grant;
  const keepsCounting = others && isCounter(from);
  const unchanged = keepsCounting ? grantUnchanged(from) : all(grantUnchanged(from), queueUnchanged(from));
  const replacement = replacing(grant, others ? raising(from) : undefined);
  const condition = all(unchanged, isBelow(grant.fence));
  return updateLease(dependencies, { key, version, condition, ...replacement }, call);
}

interface Transfer {
  /** The record as it was last seen. */
  from: LeaseRecord;
  ticket: Ticket;
  /** Whether more tasks are parked. If none are, the mark goes, on condition that no task has parked since. */
  others: boolean;
}

/** All names have aliases, because some of them are reserved words. */
function replacing(grant: Grant, raised: ReturnType<typeof raising> | undefined) {
  const { key: _, ...attributes } = grantItem(grant);
  const set = Object.keys(attributes);
  const removed = OPTIONAL.filter((name) => !set.includes(name));
  return {
    expression:
      `SET ${set.map((name) => `#${name} = :${name}`).join(', ')}${raised ? `, ${raised.expression}` : ''} ` +
      `REMOVE ${removed.map((name) => `#${name}`).join(', ')}${raised ? '' : ', waiters'}`,
    names: Object.fromEntries([...set, ...removed].map((name) => [`#${name}`, name])),
    values: {
      ...Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`:${name}`, value])),
      ...raised?.values,
    },
  };
}
