import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type GrantOfRequest, type Judging, judge } from '../line/judge.ts';
import { canNotify, type Delivery } from '../line/message.ts';
import { failTask, type Notified } from '../line/notify.ts';
import { WINDOW_MS } from '../line/times.ts';
import {
  deleteWaiter,
  expiredRowLimit,
  isInLine,
  isTask,
  MAX_EXPIRED_ROWS_IN_HAND_OFF,
  type Waiter,
  type WaitingTask,
} from '../line/waiters.ts';
import { otherTerms } from './bound.ts';
import { notifyPermit } from './deliver.ts';
import { requestName } from './identity.ts';
import { EXCLUSIVE_WEIGHT } from './modes.ts';
import type { Going } from './previous.ts';
import { readPool } from './read.ts';
import type { LineReading } from './reading.ts';
import type { NewPermit } from './record.ts';
import { ending, entryOf, type PoolEntry, type PoolRecord } from './record.ts';
import { weightInUse, weightOf } from './room.ts';
import { permitLost, poolHeld } from './views.ts';

/** One write grants up to this many permits: DynamoDB limits an expression to 4 KB. */
const BATCH = 5;

/** The hints name up to this many waiters. */
export const MOST_NAMED = 24;

/** A ticket that receives a permit. */
export interface Head {
  waiter: Waiter;
  permit: NewPermit;
}

export interface PoolLine {
  /** The tickets that the next write grants permits, in the order of the line. */
  heads: Head[];
  /** Whether others are in line, or may be. */
  others: boolean;
  /** The ticket of the first of them, as far as it was looked for. */
  next: string | undefined;
  /** The tickets of the first of them, with that one, as far as the page shows. */
  first?: string[];
  /** The rows that are in line and receive nothing by the next write, as far as they were read. */
  inLine: Waiter[];
  /** What that one asks for. */
  behind: NewPermit | undefined;
  /** The same ticket, if it does not fit. */
  blocked?: Waiter;
  /** Whether a task waits behind them. */
  taskWaits: boolean;
  /** The tickets of tasks that took the message that their wait has ended. */
  refused: string[];
}

interface Look {
  record: PoolRecord;
  reading: LineReading;
  ending: readonly Going[];
  /** Tickets to which this call has granted permits. */
  granted: readonly string[];
  /** How many expired rows this call still clears away. */
  budget: { over: number };
  /** The ticket of the call in line that hands off. That call is alive, so it receives its whole ttl and need not claim it. */
  own?: string | undefined;
}

/**
 * Finds the next to receive permits: the oldest, as long as each fits. None passes the first that does not fit. Deletes expired rows
 * (docs/protocols/queue.md#hand-off).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function findNext(dependencies: LeaseDependencies, look: Look, call: Call): Promise<PoolLine> {
  const { record, reading, ending } = look;
  const line: PoolLine = {
    ...{ heads: [], others: false, next: undefined, inLine: [], behind: undefined, taskWaits: false, refused: [] },
  };
  const rows = judging(dependencies, look, call);
  const reachesLimit = expiredRowLimit(dependencies.clock.now(), MAX_EXPIRED_ROWS_IN_HAND_OFF);
  const now = dependencies.clock.now();
  let used =
    weightInUse(record, { now, clockSkewMs: dependencies.clockSkewMs }) - weightOf(ending.map(({ entry }) => entry));
  for await (const waiter of reading.rows()) {
    const judgement = await judge(dependencies, { waiter, line: rows }, call);
    if (judgement === 'undecided') line.others = true;
    if (judgement === 'gone' || judgement === 'refused') reading.drop(waiter);
    if (judgement === 'refused') line.refused.push(waiter.ticket);
    if (judgement === 'granted') reading.sawGranted(waiter);
    if (judgement === 'passed' && isInLine(waiter, dependencies.clock.now())) line.inLine.push(waiter);
    if (reachesLimit(waiter)) return { ...line, others: true }; // another waiter may be behind it
    if (judgement !== 'waits') continue;
    // By a clock that is ahead, the caller may have left, and a task behind it does not look by itself.
    const mayLeave = !isTask(waiter) && waiter.deadline <= now + dependencies.clockSkewMs && waiter.ticket !== look.own;
    if (mayLeave && (await reading.behind(waiter)).some(isTask)) {
      line.inLine.push(waiter);
      line.others = true;
      continue;
    }
    const permit = permitOf(waiter, look.own);
    // A second row of a request waits for the outcome of the first row, and keeps no caller out.
    if (line.heads.some((head) => head.permit.name === permit.name)) {
      line.taskWaits ||= isTask(waiter);
      line.inLine.push(waiter);
      continue;
    }
    // The schedule grants a permit to a task that this process cannot notify, and those behind it wait for their turn.
    if (isTask(waiter) && !(await canNotify(dependencies, waiter)))
      return { ...line, others: true, next: waiter.ticket, taskWaits: true };
    if (used > permit.room || line.heads.length === BATCH) {
      const behind = await reading.behind(waiter);
      return {
        ...line,
        others: true,
        next: waiter.ticket,
        ...(!isTask(waiter) && { first: [waiter, ...behind].slice(0, MOST_NAMED).map(({ ticket }) => ticket) }),
        behind: permit,
        ...(used > permit.room && { blocked: waiter }),
        taskWaits: line.taskWaits || isTask(waiter) || behind.some(isTask),
      };
    }
    line.heads.push({ waiter, permit });
    used += permit.weight;
  }
  return line;
}

/** What a ticket asks for. A caller receives only the window, until it claims its permit. @param own the ticket of the call that grants it */
export function permitOf(waiter: Waiter, own?: string): NewPermit {
  const { holder, ttlSeconds, data, execution, target, graceSeconds = 0, bound } = waiter;
  const { permit = { weight: EXCLUSIVE_WEIGHT, limit: null } } = waiter;
  const { limit, weight } = permit;
  const [ttlMs, graceMs] = [ttlSeconds * 1000, graceSeconds * 1000];
  return {
    ...{ name: requestName(waiter), holder, data, limit, weight, ticket: waiter.ticket },
    ...{ execution, target, graceMs, bound },
    room: limit === null || weight >= EXCLUSIVE_WEIGHT ? 0 : limit - weight,
    ...(isTask(waiter) || waiter.ticket === own ? { ttlMs } : { ttlMs: WINDOW_MS, claimTtlMs: ttlMs }),
  };
}

/** What the record of a pool shows about the request of each row. */
const judging = (dependencies: LeaseDependencies, look: Look, call: Call): Judging => ({
  budget: look.budget,
  grantOf: (waiter) => grantOf(dependencies, look, waiter),
  lost: (how) => permitLost(look.record.key, how),
  failOverdue: (waiter) => failOverdue(dependencies, { waiter, record: look.record }, call),
  repeat: (waiter) => repeat(dependencies, { waiter, look }, call),
});

function grantOf(
  { clock }: LeaseDependencies,
  { record, reading, ending: leaving, granted }: Look,
  waiter: Waiter,
): GrantOfRequest {
  if (granted.includes(waiter.ticket)) return 'own';
  const name = requestName(waiter);
  const gone = leaving.find(({ entry }) => entry.name === name || entry.ticket === waiter.ticket);
  // A call that knows the request may have ended the grant before its task was notified.
  if (gone?.how === 'released' || gone?.how === 'broken') return gone.entry.isEnding ? 'broken' : gone.how;
  if (gone && gone.entry.ticket !== waiter.ticket) return 'none';
  if (gone) return gone.how === 'expired' || !isTask(waiter) ? 'lapsed' : 'own';
  const how = ending(record, name);
  const entry = entryOf(record, name);
  // Another call notifies its task, even if the permit has ended since.
  if (entry ? entry.ticket === waiter.ticket : how && reading.wasGranted(waiter)) return 'own';
  if (how) return how;
  if (!entry) return 'none';
  return isShared(entry, permitOf(waiter)) && entry.expiresAt > clock.now() ? 'shared' : 'other';
}

/** Whether a row is answered with the permit that its request has by another row, or by a plain call. */
const isShared = (entry: PoolEntry, { ticket, weight }: NewPermit): boolean =>
  entry.ticket !== ticket && entry.weight === weight && entry.claimTtlMs === undefined && !entry.isEnding;

/**
 * Sends a task the permit that the request has by another ticket, or InvalidRequest if the task expects another end of the permit. Each message
 * gives the permit a new version. The look keeps the record with that version, because the next row may be of the same request.
 */
async function repeat(
  dependencies: LeaseDependencies,
  { waiter, look }: { waiter: WaitingTask; look: Look },
  call: Call,
): Promise<Notified<unknown>['outcome']> {
  const { record } = look;
  const entry = entryOf(record, requestName(waiter));
  if (!entry) return 'overtaken';
  const error = otherTerms(entry, waiter);
  if (error) return failTask(dependencies, { waiter, error }, call);
  const grant = { waiter, record, entry, repeated: true, isOurs: false };
  const { outcome, record: current } = await notifyPermit(dependencies, grant, call);
  look.record = current;
  if (outcome === 'delivered' || outcome === 'gone') await deleteWaiter(dependencies, waiter, call);
  return outcome;
}

/**
 * Ends an overdue task. The record that was passed may be older than its ticket, so this reads the record again, as for a lease.
 * @returns `overtaken`: nothing was sent, because the task has a permit that the record did not show, or its request has one by another row
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function failOverdue(
  dependencies: LeaseDependencies,
  { waiter, record: seen }: { waiter: WaitingTask; record: PoolRecord },
  call: Call,
): Promise<Delivery | 'overtaken'> {
  const { clock, clockSkewMs } = dependencies;
  const record = await readPool(dependencies, seen.key, call);
  const asked = permitOf(waiter);
  const now = clock.now();
  const entry = entryOf(record, asked.name);
  const isNew = entry?.ticket === waiter.ticket && entry.fence !== entryOf(seen, asked.name)?.fence;
  if (entry && entry.expiresAt > now && (isNew || isShared(entry, asked))) return 'overtaken';
  return failTask(dependencies, { waiter, error: poolHeld(record, { asked, now, clockSkewMs }) }, call);
}
