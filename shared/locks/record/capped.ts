import { integer, number } from '../../aws/attributes.ts';
import type { Condition } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { instant, isInstant } from '../../surroundings/clock.ts';
import type { CapView } from '../calls/types.ts';

// The cap that an operator sets on a key, whatever limit a caller names (docs/protocols/cap.md).

/** A cap of an operator. Instants are epoch milliseconds. */
export interface Cap {
  /** The weight that may be in use at once. 0 pauses the key. */
  limit: number;
  /** When the command came. Each command sets a later instant, so the instant identifies the command. */
  at: number;
  by: string | undefined;
  reason: string;
  /** Absent if the cap lasts until an operator lifts it. */
  until: number | undefined;
}

export function parseCap(item: Item): Cap | undefined {
  const [limit, at] = [number(item, 'cap'), number(item, 'cap_at')];
  if (limit === undefined || at === undefined || !isInstant(at)) return undefined;
  return { limit, at, by: item.cap_by?.S, reason: item.cap_reason?.S ?? '', until: number(item, 'cap_until') };
}

/** The cap as readers and refused callers see it. */
export const capView = ({ limit, at, by, reason, until }: Cap): CapView => ({
  ...{ limit, rates: null, reason, by: by ?? null, since: instant(at) },
  until: until !== undefined && isInstant(until) ? instant(until) : null,
});

type CapEnd = Pick<Cap, 'until'>;

/**
 * When a cap no longer counts. It counts for the margin too, because the clock of the call that set it may be behind.
 */
export const capEndsAt = ({ until = Number.POSITIVE_INFINITY }: CapEnd, clockSkewMs: number): number =>
  until + clockSkewMs + 1;

/** The cap, if it still counts at this instant. */
export const capAt = <SomeCap extends CapEnd>(
  { cap }: { cap?: SomeCap | undefined },
  { now, clockSkewMs }: { now: number; clockSkewMs: number },
): SomeCap | undefined => (cap && capEndsAt(cap, clockSkewMs) > now ? cap : undefined);

/**
 * No cap counts now. A condition on the rows of rates and of `once`.
 * @param cut now minus the clock skew margin, in epoch milliseconds
 */
export const hasNoCurrentCap = (cut: number): Condition => ({
  expression: 'attribute_not_exists(cap) OR cap_until < :cut',
  values: { ':cut': integer(cut) },
});

/** The record has no cap, not even one that has ended. */
export const hasNoCapOnRecord: Condition = { expression: 'attribute_not_exists(cap)' };

/** The limit of a request, or null if it wants the key alone. */
type Limited = { limit: number | null };

/** The lowest cap that does not change the room of a request. */
const coverOf = ({ limit }: Limited): number => limit ?? 1;

/** Whether the cap gives these requests less room than they ask for. */
export const isBinding = ({ limit }: Cap, grants: readonly Limited[]): boolean =>
  grants.some((grant) => limit < coverOf(grant));

/**
 * The cap on record leaves these grants the room that the call computed for them. If the call read a cap that gives
 * them less room than they ask for, even one that has ended, the cap must be that of the same command.
 * @param seen the cap that the call has read. Undefined if it has not read the record, or the record had no cap
 */
export function isUnderCap(seen: Cap | undefined, grants: readonly Limited[]): Condition {
  if (seen && isBinding(seen, grants)) return { expression: 'cap_at = :capAt', values: { ':capAt': integer(seen.at) } };
  return {
    expression: 'attribute_not_exists(cap) OR cap >= :cover',
    values: { ':cover': integer(Math.max(...grants.map(coverOf))) },
  };
}
