import type { Call } from '../../aws/call.ts';
import { canTellTasks, type Delivery, failTask } from '../../line/notify.ts';
import { WINDOW_MS } from '../../line/times.ts';
import {
  type CallTicket,
  deleteTicket,
  isOverdue,
  isTask,
  isWaiting,
  PILE_IN_HAND_OFF,
  pileMet,
  type TaskTicket,
  type Ticket,
} from '../../line/waiters.ts';
import { deleteOver } from '../../line/waiting-calls.ts';
import type { PoolDependencies } from '../dependencies.ts';
import type { NewPermit } from '../grants.ts';
import { EXCLUSIVE_WEIGHT } from '../modes.ts';
import { requestName } from '../names.ts';
import type { Going } from '../previous.ts';
import { readPool } from '../read.ts';
import { ending, entryOf, type PoolRecord } from '../record.ts';
import { weightOf } from '../room.ts';
import { permitLost, poolHeld } from '../views.ts';
import type { LineReading } from './reading.ts';

/** One write grants so many permits at most: DynamoDB limits an expression to 4 KB. */
const BATCH = 5;

/** A ticket that receives a permit. */
export interface Head {
  ticket: Ticket;
  permit: NewPermit;
}

export interface PoolLine {
  /** The tickets that the next write grants permits, in the order of the line. */
  heads: Head[];
  /** Whether others are in line, or may be. */
  others: boolean;
  /** The ticket of the first of them, as far as it was looked for. */
  next: string | undefined;
  /** What that one asks for. */
  behind: NewPermit | undefined;
  /** Whether a task waits behind them. */
  taskWaits: boolean;
}

interface Look {
  record: PoolRecord;
  reading: LineReading;
  going: readonly Going[];
  /** Tickets to which this call has granted permits. */
  granted: readonly string[];
  /** How many rows that are over this call still clears away. */
  budget: { over: number };
}

/**
 * Finds the next to receive permits: the oldest, as long as each fits. None passes the first that does not fit. Clears away what is over
 * (docs/protocols/pools.md#advance).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function lookAtLine(dependencies: PoolDependencies, look: Look, call: Call): Promise<PoolLine> {
  const { record, reading, going } = look;
  const line: PoolLine = { heads: [], others: false, next: undefined, behind: undefined, taskWaits: false };
  const isPile = pileMet(dependencies.clock.now(), PILE_IN_HAND_OFF);
  let used = record.used - weightOf(going.map(({ entry }) => entry));
  for await (const ticket of reading.rows()) {
    const place = isTask(ticket)
      ? await judgeTask(dependencies, { ticket, look }, call)
      : await judgeCall(dependencies, { ticket, look }, call);
    if (place === 'undecided') line.others = true;
    if (place === 'gone') reading.drop(ticket);
    if (place === 'granted') reading.sawGranted(ticket);
    if (isPile(ticket)) return { ...line, others: true }; // somebody may wait behind it
    if (place !== 'waits') continue;
    // The schedule grants a permit to a task that this process cannot notify, and those behind it wait for their turn.
    if (isTask(ticket) && !(await canTellTasks(dependencies)))
      return { ...line, others: true, next: ticket.ticket, taskWaits: true };
    const permit = permitOf(ticket);
    const isSecond = line.heads.some((head) => head.permit.name === permit.name);
    if (used > permit.room || line.heads.length === BATCH || isSecond)
      return { ...line, others: true, next: ticket.ticket, behind: permit, taskWaits: isTask(ticket) };
    line.heads.push({ ticket, permit });
    used += permit.weight;
  }
  return line;
}

/** What a ticket asks for. A caller receives only the window, until it claims its permit. */
function permitOf(ticket: Ticket): NewPermit {
  const { holder, ttlSeconds, data, execution, target, graceSeconds = 0 } = ticket;
  const { permit = { weight: 1, limit: 1 } } = ticket;
  const { limit, weight } = permit;
  const [ttlMs, graceMs] = [ttlSeconds * 1000, graceSeconds * 1000];
  return {
    ...{ name: requestName(ticket), holder, data, limit, weight, ticket: ticket.ticket },
    ...{ execution, target, graceMs },
    room: limit === null || weight >= EXCLUSIVE_WEIGHT ? 0 : limit - weight,
    ...(isTask(ticket) ? { ttlMs } : { ttlMs: WINDOW_MS, claimTtlMs: ttlMs }),
  };
}

/** `granted`: its permit stands. `gone`: its row was deleted. `undecided`: its task or call may still wait, and cannot receive a permit now. */
type Place = 'waits' | 'passed' | 'granted' | 'gone' | 'undecided';

async function judgeTask(
  dependencies: PoolDependencies,
  { ticket, look }: { ticket: TaskTicket; look: Look },
  call: Call,
): Promise<Place> {
  const { record, reading, going, granted, budget } = look;
  if (granted.includes(ticket.ticket)) return 'passed';
  const { name } = permitOf(ticket);
  const gone = going.find(({ entry }) => entry.name === name);
  const entry = entryOf(record, name);
  if (entry && !gone) return entry.ticket === ticket.ticket ? 'granted' : 'undecided';
  // The task of a permit that expired may never have been notified, so it keeps its place.
  if (gone && gone.how !== 'expired' && gone.entry.ticket === ticket.ticket) return 'passed';
  const how = entry ? undefined : ending(record, name);
  const failed = async (delivery: Promise<Delivery | 'overtaken'>) =>
    ['delivered', 'gone'].includes(await delivery) ? 'gone' : 'undecided';
  if (how && reading.wasGranted(ticket)) return 'passed';
  if (how) return failed(failTask(dependencies, { ticket, error: permitLost(record.key, how) }, call));
  if (!isOverdue(ticket, dependencies.clock.now())) return 'waits';
  if (budget.over-- <= 0) return 'undecided';
  return failed(failOverdue(dependencies, { record, ticket }, call));
}

/**
 * Ends a task whose time is over. The record that was passed may be older than its ticket, so this reads it anew (leases/in-line/next.ts).
 * @returns `overtaken`: the task has a permit that the record did not show, and nothing was sent
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function failOverdue(
  dependencies: PoolDependencies,
  { ticket, record: seen }: { ticket: TaskTicket; record: PoolRecord },
  call: Call,
): Promise<Delivery | 'overtaken'> {
  const { clock, clockSkewMs } = dependencies;
  const record = await readPool(dependencies, seen.key, call);
  const asked = permitOf(ticket);
  const now = clock.now();
  const entry = entryOf(record, asked.name);
  const isNew = entry?.ticket === ticket.ticket && entry.fence !== entryOf(seen, asked.name)?.fence;
  if (isNew && entry.expiresAt > now) return 'overtaken';
  return failTask(dependencies, { ticket, error: poolHeld(record, { asked, now, clockSkewMs }) }, call);
}

async function judgeCall(
  dependencies: PoolDependencies,
  { ticket, look: { record, going, granted, budget } }: { ticket: CallTicket; look: Look },
  call: Call,
): Promise<Place> {
  const now = dependencies.clock.now();
  if (granted.includes(ticket.ticket)) return 'passed';
  if (ticket.keepUntil <= now && budget.over-- > 0) {
    return (await deleteOver(dependencies, ticket, call)) ? 'gone' : 'undecided';
  }
  if (!isWaiting(ticket, now)) return 'passed'; // the call of a withdrawn ticket must see that
  const { name } = permitOf(ticket);
  const gone = going.find(({ entry }) => entry.name === name);
  if (gone?.entry.ticket === ticket.ticket) {
    await deleteTicket(dependencies, ticket, call); // it did not claim its permit in time
    return 'gone';
  }
  const entry = entryOf(record, name);
  if (entry && !gone) return entry.ticket === ticket.ticket ? 'granted' : 'undecided';
  return !entry && ending(record, name) ? 'passed' : 'waits';
}
