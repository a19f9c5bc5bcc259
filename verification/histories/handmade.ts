import type { WorldFacts } from './caller.ts';
import type { Entry } from './history.ts';

/** Of the world of the histories that the tests of the checkers make by hand. */
export const facts: WorldFacts = {
  withinBound: true,
  spreadMs: 490,
  protocol: 'dynamo',
  foreignLeases: false,
  foreignCommits: false,
  foreignRetries: false,
  foreignQueue: false,
  sweeps: false,
};

/** A call with its answer, at milliseconds; without `answered` there was no answer. */
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
