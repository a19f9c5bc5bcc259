import { duration, nameOf } from '../cli/src/verbs/texts.ts';
import { parkedAtOf } from '../shared/locks/line/waiters.ts';

/** An event in the history of a key. Fields that no log line names are null. */
export interface KeyEvent {
  /** ISO 8601. */
  at: string;
  event: 'granted' | 'released' | 'ending' | 'broken' | 'expired' | 'executionEnded' | 'withdrawn' | 'cancelled';
  holder: string | null;
  fence: number | null;
  by: string | null;
}

/** A line that a function has logged. */
interface Line {
  message: string;
  timestamp: string;
  key: string;
  function?: string;
  holder?: string | null;
  fence?: number;
  ticket?: string;
  /** Logged by acquire: how long the call waited from its arrival. */
  WaitedMs?: number;
  previous?: {
    holder: string;
    fence: number;
    ended: 'released' | 'broken' | 'expired' | 'executionEnded';
    at: string;
    by?: string;
  } | null;
  released?: boolean;
  cancelled?: boolean;
  ended?: boolean;
  caller?: string;
}

/** The outputs of the stack that name the functions which log grants and their ends. Functions that operators call have a log group of their own. */
export const LOGGING_FUNCTION_OUTPUTS = ['Acquire', 'Release', 'Withdraw', 'RepairQueues', 'ExecutionEnded'].map(
  (name) => `${name}FunctionName`,
);

/** The CloudWatch Logs Insights query for the lines of a key. */
export const queryOf = (key: string, max: number): string =>
  [
    'fields @timestamp, @message',
    `filter key = ${JSON.stringify(key)} and message in ["granted", "answered"]`,
    'sort @timestamp desc',
    `limit ${max}`,
  ].join(' | ');

/** What happened to a key, in the order of the fences. @param messages lines of the log, in any order */
export function historyOf(key: string, messages: readonly string[]): KeyEvent[] {
  const lines = messages
    .flatMap((text) => lineIn(text, key))
    .toSorted((one, other) => compare(one.timestamp, other.timestamp));
  const events = new Map<string, KeyEvent>();
  for (const event of lines.flatMap((line) => [...eventsWithFence(line)])) {
    const name = `${event.fence} ${event.event}`;
    const known = events.get(name);
    // A grant may be logged twice: by the hand-off, and by the call that claims it.
    events.set(name, { ...event, ...known, by: known?.by ?? event.by });
  }
  const all = [...events.values()];
  const ends = all.filter(({ event }) => /^(released|broken)$/.test(event)).map(({ at }) => Date.parse(at));
  const others = lines
    .flatMap(withoutFence)
    .filter(({ event, at }) => event !== 'released' || !removeEndNear(ends, at));
  return [...all, ...others].toSorted(inOrder);
}

function lineIn(text: string, key: string): Line[] {
  try {
    const line = JSON.parse(text) as Line;
    return line.key === key && typeof line.timestamp === 'string' ? [line] : [];
  } catch {
    return []; // a line that Lambda has cut
  }
}

/** A line can show a grant with the end of the grant before it, or the break of a grant. */
function* eventsWithFence({
  message,
  timestamp: at,
  function: name,
  holder = null,
  fence,
  previous,
  ...line
}: Line): Generator<KeyEvent> {
  if (fence === undefined) return;
  if (message !== 'granted' && name === 'breakLease')
    yield { at, event: line.ended ? 'broken' : 'ending', holder, fence, by: line.caller ?? null };
  if (message !== 'granted' && name !== 'acquire') return;
  yield { at, event: 'granted', holder, fence, by: waitText({ at, ...line }) };
  if (!previous) return;
  const by = previous.ended === 'expired' ? `seen by ${nameOf(holder ?? '')}` : (previous.by ?? null);
  yield { at: previous.at, event: previous.ended, holder: previous.holder, fence: previous.fence, by };
}

/** How long a holder waited. Counts from the ticket if the log has it, because a caller that sleeps sends several calls. */
function waitText({ at, ticket, WaitedMs = 0 }: Pick<Line, 'ticket' | 'WaitedMs'> & { at: string }): string | null {
  const waitedMs = ticket === undefined ? WaitedMs : Date.parse(at) - parkedAtOf(ticket);
  return waitedMs >= 1000 ? `waited ${duration(waitedMs)}` : null;
}

/** Events whose lines lack a fence: a holder that releases sends only its lease id, which is not logged, and a waiter does not have a fence yet. */
function withoutFence({ timestamp: at, function: name = '', holder, caller, ...line }: Line): KeyEvent[] {
  const event = ENDS[name];
  if (!event || !(line.released || line.cancelled)) return [];
  return [{ at, event, holder: holder ?? null, fence: null, by: caller ?? null }];
}

const ENDS: Record<string, KeyEvent['event']> = {
  release: 'released',
  withdraw: 'withdrawn',
  cancelWaiter: 'cancelled',
};

/** The next grant names the instant of a release, but the line of the release is logged a moment later. */
const NEAR_MS = 1000;

/** True if the line of the next grant already reported this end. Removes it from `ends`, so that it matches only one line. */
function removeEndNear(ends: number[], at: string): boolean {
  const found = ends.findIndex((end) => Math.abs(Date.parse(at) - end) < NEAR_MS);
  if (found >= 0) ends.splice(found, 1);
  return found >= 0;
}

/** Fences follow the clock, so the instant of an event without a fence can be compared with them. */
const rank = ({ fence, at }: KeyEvent): number => fence ?? Date.parse(at);
const inOrder = (one: KeyEvent, other: KeyEvent): number => rank(one) - rank(other) || compare(one.at, other.at);

const compare = (one: string, other: string): number => (one < other ? -1 : Number(one > other));
