import { placeKeyOf } from '../../../shared/locks/line/waiters.ts';
import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { termsUnder } from './caps.model.ts';
import { eventsOf, nameOf } from './line.model.ts';

import { stateAt, weightOf, writesOn } from './record.model.ts';

// A caller that does not wait must receive the key if no waiter in line can be granted the key.

const FREE_IS_HAD = 'any caller takes a free lease with its first call';
const ROOM_BESIDE_LINE = 'a plain caller is refused only if a caller or task waits';
const DEAD_TASK_COSTS_NOTHING = 'a dead task costs the line minutes at most';

/** How long a caller that has left keeps its position. */
const KEEPS_PLACE_MS = 5000;
/** How many rows one hand-off deletes. */
const MAX_CLEARED = 10;
/** After this time the schedule must have found that a task is dead. */
const DEAD_FOR_MS = 180_000;

interface Row {
  ticket: string;
  request: string;
  deadline: number;
  /** The call that put the row. */
  entry: Entry;
}

const isTask = ({ entry }: Row) => entry.input.taskToken !== undefined;

/** The rows of a line at a moment. */
function rowsAt(history: readonly Entry[], key: string, moment: number): Row[] {
  const rows = new Map<string, Row>();
  for (const event of eventsOf(history, key)) {
    if (event.moment > moment) break;
    const row = 'ticket' in event && event.ticket !== undefined ? rows.get(event.ticket) : undefined;
    if (event.what === 'row') rows.set(event.ticket, { ...event });
    placed(rows, event);
    if (event.what === 'deadline' && row) row.deadline = event.deadline;
    if (event.what === 'deletion' || event.what === 'flag') rows.delete(event.ticket);
  }
  return [...rows.values()];
}

/** The place of a caller that sleeps. It keeps others out while it is live. */
function placed(rows: Map<string, Row>, event: ReturnType<typeof eventsOf>[number]): void {
  if (event.what === 'place')
    rows.set(placeKeyOf(event.ticket), {
      ...{ ticket: event.ticket, request: event.request, entry: event.entry, deadline: event.keepUntil },
    });
  const place = 'ticket' in event && event.ticket !== undefined ? rows.get(placeKeyOf(event.ticket)) : undefined;
  if (event.what === 'extension' && place) place.deadline = event.keepUntil;
  if (event.what === 'placeDeletion' || event.what === 'placeFlag') rows.delete(placeKeyOf(event.ticket));
}

/** Whether the row still counts by some clock. */
const isPresent = (row: Row, atMs: number, spreadMs: number): boolean =>
  row.deadline - BEGIN + (isTask(row) ? 0 : KEEPS_PLACE_MS) + CLOCK_SKEW_MS + spreadMs >= atMs;

/** Refused calls on a key that did not wait, without a fault, and without a write of others while they lasted. */
const plainRefusals = (history: readonly Entry[], key: string): Entry[] => {
  const events = eventsOf(history, key);
  return history.filter(({ call, input, outcome, faults, calledAt, answeredAt }) => {
    const isPlain = call === 'acquire' && input.key === key && !input.waitSeconds && !input.taskToken;
    if (!isPlain || outcome !== 'LeaseHeld' || faults.length > 0 || !answeredAt) return false;
    return !events.some(({ moment, what }) => {
      const isWrite = what !== 'query' && what !== 'deletion' && what !== 'end';
      return isWrite && moment > calledAt.moment && moment < answeredAt.moment;
    });
  });
};

/** A plain caller receives a free lease. It is excused if more rows are in front than one hand-off deletes, until the schedule has deleted them. */
export function freeLeaseIsHad(
  history: readonly Entry[],
  key: string,
  { spreadMs }: Pick<WorldFacts, 'spreadMs'>,
): Violation[] {
  const writes = writesOn(history, key);
  return plainRefusals(history, key).flatMap((entry) => {
    const { calledAt, body } = entry;
    // free, or held by a third-party client
    if (body?.expiresAt !== null) return [];
    if (termsUnder(stateAt(writes, calledAt.moment), entry, { ms: calledAt.ms, spreadMs }).limit < 0) return [];
    const rows = rowsAt(history, key, calledAt.moment);
    if (rows.length > MAX_CLEARED || rows.some((row) => isPresent(row, calledAt.ms, spreadMs))) return [];
    const detail = `${entry.actor} was refused a free lease, with ${rows.length} rows in line that are over`;
    return [{ promise: FREE_IS_HAD, detail, entries: [entry] }];
  });
}

/** A caller with room beside it receives a permit even if the key has a mark. Waiters that are overdue, or whose request has its permit, do not count. */
export function roomBesideLine(
  history: readonly Entry[],
  key: string,
  { spreadMs }: Pick<WorldFacts, 'spreadMs'>,
): Violation[] {
  const writes = writesOn(history, key);
  return plainRefusals(history, key).flatMap((entry) => {
    const { calledAt } = entry;
    const { entries, isMarked, isForeign, cap } = stateAt(writes, calledAt.moment);
    const standing = entries.filter(({ expiresAt }) => expiresAt - BEGIN + CLOCK_SKEW_MS + spreadMs >= calledAt.ms);
    const { weight, limit } = termsUnder({ cap }, entry, { ms: calledAt.ms, spreadMs });
    const isOwn = standing.some(({ name }) => name === nameOf(entry));
    if (!isMarked || isForeign || isOwn || weightOf(standing) + weight > limit) return [];
    const rows = rowsAt(history, key, calledAt.moment);
    const hasPermit = (row: Row) => standing.some(({ name }) => name === row.request);
    if (rows.length > MAX_CLEARED || rows.some((row) => isPresent(row, calledAt.ms, spreadMs) && !hasPermit(row)))
      return [];
    const detail = `${entry.actor} was refused with ${weightOf(standing)} of ${limit} in use, and no caller waits`;
    return [{ promise: ROOM_BESIDE_LINE, detail, entries: [entry] }];
  });
}

/** A caller with room beside it receives a permit if only tasks are in line that have been dead for minutes. */
export function deadTaskCostsNothing(
  history: readonly Entry[],
  key: string,
  { spreadMs }: Pick<WorldFacts, 'spreadMs'>,
): Violation[] {
  const writes = writesOn(history, key);
  const tasks = history.filter(({ call, input }) => call === 'task' && input.key === key);
  const isDead = (row: Row, atMs: number) => {
    const task = tasks.find(({ input }) => input.token === row.entry.input.taskToken);
    return isTask(row) && Number(task?.input.closedMs) + DEAD_FOR_MS < atMs;
  };
  return plainRefusals(history, key).flatMap((entry) => {
    const { calledAt } = entry;
    const { entries, isForeign, cap } = stateAt(writes, calledAt.moment);
    const standing = entries.filter(({ expiresAt }) => expiresAt - BEGIN + CLOCK_SKEW_MS + spreadMs >= calledAt.ms);
    const { weight, limit } = termsUnder({ cap }, entry, { ms: calledAt.ms, spreadMs });
    const rows = rowsAt(history, key, calledAt.moment).filter((row) => isPresent(row, calledAt.ms, spreadMs));
    const isOwn = standing.some(({ name }) => name === nameOf(entry));
    if (isForeign || isOwn || weightOf(standing) + weight > limit || rows.length === 0) return [];
    if (!rows.every((row) => isDead(row, calledAt.ms))) return [];
    const detail = `${entry.actor} was refused with ${weightOf(standing)} of ${limit} in use, behind ${rows.length} dead tasks`;
    return [{ promise: DEAD_TASK_COSTS_NOTHING, detail, entries: [entry, rows[0]?.entry as Entry] }];
  });
}
