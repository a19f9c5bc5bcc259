import type { Cap } from '../locks/record/capped.ts';
import type { Rate } from './charge.ts';

// The client's in-memory service loads this file, so the file may only import what that service can load.

export type NamedRate = Pick<Rate, 'name' | 'limit' | 'per'>;

/**
 * What operators have set on the rates of a key: a pause, capped rates, or both. Each has a reason and an end of its
 * own.
 */
export interface RateCap {
  /** While there is a pause, no caller can reserve. */
  pause?: Cap | undefined;
  /** The rates that count as if each call had named them. */
  capped?: (Cap & { rates: NamedRate[] }) | undefined;
  /** When the last command came. Each command sets a later instant, so the instant identifies the command. */
  at: number;
}

/** A command of an operator. Instants are epoch milliseconds. */
export interface RateCapCommand {
  /** The parts that change. `paused: false` lifts the pause, and `rates: null` the capped rates. */
  change: { paused?: boolean | undefined; rates?: readonly NamedRate[] | null | undefined };
  /** The reason, which only a command that lifts may leave out. */
  reason?: string | undefined;
  by?: string | undefined;
  until?: number | undefined;
}

/** The cap after a command. A part that the command does not change keeps its own reason and end. */
export function capAfter(
  before: RateCap | undefined,
  { change, ...command }: RateCapCommand,
  at: number,
): RateCap | undefined {
  const { reason = '', by, until } = command;
  const part = { limit: 0, at, by, reason, until };
  const pause = change.paused === undefined ? before?.pause : change.paused ? part : undefined;
  const { rates } = change;
  const capped = rates === undefined ? before?.capped : rates ? { ...part, rates: [...rates] } : undefined;
  return pause || capped ? { pause, capped, at } : undefined;
}

export function capWhere(cap: RateCap | undefined, counts: (part: Pick<Cap, 'until'>) => boolean): RateCap | undefined {
  if (!cap) return undefined;
  const [pause, capped] = [cap.pause && counts(cap.pause), cap.capped && counts(cap.capped)];
  return pause || capped
    ? { pause: pause ? cap.pause : undefined, capped: capped ? cap.capped : undefined, at: cap.at }
    : undefined;
}
