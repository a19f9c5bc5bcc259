import type { WorldFacts } from './caller.ts';
import { BEGIN } from './clocks.ts';
import type { Entry } from './history.ts';
import type { Landed } from './landed.ts';

/** The world of the histories that the tests of the checkers make by hand. */
export const facts: WorldFacts = {
  withinBound: true,
  spreadMs: 490,
  protocol: 'dynamo',
  foreignLeases: false,
  foreignCommits: false,
  foreignRetries: false,
  sweeps: false,
};

/** A millisecond of the history, as an instant in an answer. */
export const at = (ms: number): string => new Date(BEGIN + ms).toISOString();

/** What a request did at its millisecond. It was sent then too, unless `sent` says when. */
export type Effect = Landed extends infer One
  ? One extends Landed
    ? Omit<One, 'sent' | 'moment' | 'key'> & { sent?: number }
    : never
  : never;
export const landedOn = (key: string, ...effects: Effect[]): Landed[] =>
  effects.map((effect) => ({ key, sent: effect.ms, moment: effect.ms, ...effect }) as Landed);

/** A call and its answer, each at a millisecond. A call without `answered` has no answer. */
export function entry(
  call: string,
  input: Record<string, unknown>,
  [called, answered]: [number, number?],
  outcome?: string,
  body: Record<string, unknown> = {},
  more: Partial<Entry> = {},
): Entry {
  const instant = (ms: number) => ({ ms, moment: ms });
  return {
    id: called,
    actor: 'caller',
    foreign: false,
    call,
    input,
    calledAt: instant(called),
    ...(answered !== undefined && { answeredAt: instant(answered), outcome: outcome ?? 'ok', body }),
    faults: [],
    strays: 0,
    ...more,
  };
}

export const promises = (violations: { promise: string }[]) => [...new Set(violations.map(({ promise }) => promise))];
