import type { NamedRate, RateCap } from './record.ts';

// Imports nothing that the client's in-memory service could not load.

/** A command of an operator. Instants are epoch milliseconds. */
export interface Command {
  /** What is absent stays. `paused: false` and `rates: null` lift. */
  change: { paused?: boolean | undefined; rates?: readonly NamedRate[] | null | undefined };
  /** Needed unless the command only lifts. */
  reason?: string | undefined;
  by?: string | undefined;
  until?: number | undefined;
}

/** A cap has one reason and one end: those of the last command that has capped a part. */
export function capAfter(
  before: RateCap | undefined,
  { change, ...command }: Command,
  at: number,
): RateCap | undefined {
  const paused = change.paused ?? before?.paused ?? false;
  const rates = change.rates === undefined ? (before?.rates ?? []) : [...(change.rates ?? [])];
  const onlyLifts = change.paused !== true && !change.rates;
  const { reason = '', by, until } = (onlyLifts && before) || command;
  return paused || rates.length > 0 ? { paused, rates, reason, by, at, until } : undefined;
}
