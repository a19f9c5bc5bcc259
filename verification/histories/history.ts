import type { Landed } from './landed.ts';

/** What a history records of one call: what was asked, when, and what came back. */
export interface Entry {
  id: number;
  /** Who called: `client 1`, `rust 0`, `operator`. A client that crashed and began again is the same caller. */
  actor: string;
  /** Whether it is a third-party client, which goes to the tables itself. */
  foreign: boolean;
  /** The call: `acquire`, `commit`, `publish`. */
  call: string;
  input: Readonly<Record<string, unknown>>;
  calledAt: Instant;
  /** Undefined if no answer came, because the caller crashed or stopped waiting. */
  answeredAt?: Instant;
  /** `ok` or the error's code. */
  outcome?: string;
  /** The result, or the problem. */
  body?: Readonly<Record<string, unknown>>;
  /** The faults that struck the call, in their order. */
  faults: string[];
  /** How many of its requests reached a store, or may have, after the client had given them up. */
  strays: number;
  /** What its requests did to records and lines. */
  landed?: Landed[];
}

export interface Instant {
  /** Orders all calls and answers, even those of the same millisecond. */
  moment: number;
  /** Simulated milliseconds since the beginning. */
  ms: number;
}

/** Whether the call may or may not have taken effect. */
export const isUnknown = ({ outcome }: Entry): boolean =>
  outcome === undefined || outcome === 'OutcomeUnknown' || outcome === 'Error';

/** Whether the answer does not say anything about the state. */
export const saysNothing = ({ outcome }: Entry): boolean => outcome === 'Throttled' || outcome === 'Unavailable';

/** The entry with the moments that the checker orders by. */
export const timed = (entry: Entry) => ({
  calledAt: entry.calledAt.moment,
  answeredAt: isUnknown(entry) ? Number.POSITIVE_INFINITY : (entry.answeredAt?.moment ?? Number.POSITIVE_INFINITY),
});

/** A promise that a history breaks. */
export interface Violation {
  /** In the words of docs/safety.md. */
  promise: string;
  detail: string;
  /** The calls that show the break. */
  entries: Entry[];
}

/** A history as a table for people: a line for each call, in the order in which they were made. */
export function table(entries: readonly Entry[], marked: ReadonlySet<number> = new Set()): string {
  const rows = entries
    .toSorted((a, b) => a.calledAt.moment - b.calledAt.moment)
    .map((entry) => [
      marked.has(entry.id) ? `> ${entry.id}` : `  ${entry.id}`,
      entry.actor,
      seconds(entry.calledAt),
      entry.answeredAt ? seconds(entry.answeredAt) : 'never',
      entry.call,
      brief(entry.input),
      `${entry.outcome ?? 'no answer'} ${brief(answerOf(entry))}`.trim(),
      entry.faults.join(', '),
    ]);
  const all = [['   #', 'who', 'called', 'answered', 'call', 'asked', 'answer', 'faults'], ...rows];
  const widths = (all[0] ?? []).map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const seconds = ({ ms }: Instant) => `${(ms / 1000).toFixed(3)}`;

/** Fields of an answer that the table leaves out. */
const DULL = new Set(['type', 'title', 'status', 'code', 'detail', 'traceId', 'version', 'acquiredAt', 'waitedMs']);

const answerOf = ({ body = {} }: Entry) => Object.fromEntries(Object.entries(body).filter(([name]) => !DULL.has(name)));

function brief(value: unknown): string {
  if (typeof value === 'string') return /^[0-9a-f-]{36}$/.test(value) ? value.slice(0, 8) : value;
  if (typeof value !== 'object' || value === null) return String(value);
  const members = Object.entries(value).map(([name, member]) => `${name}=${brief(member)}`);
  return Array.isArray(value) ? `[${value.map(brief).join(' ')}]` : members.join(' ');
}
