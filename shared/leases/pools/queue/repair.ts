import { integer } from '../../../aws/attributes.ts';
import type { Call } from '../../../aws/call.ts';
import { deleteOver, leaveLine } from '../../queue/caller-tickets.ts';
import { deleteTicket, isTask, isWaiting, lineOf, type Ticket, ticketsOf } from '../../queue/tickets.ts';
import { isUnmarked } from '../conditions.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { requestName } from '../names.ts';
import { readPool } from '../read.ts';
import { entryOf, type PoolRecord } from '../record.ts';
import { advance } from './advance.ts';
import { tellGrant } from './deliver.ts';
import { endPermitOfDead } from './execution-ended.ts';
import { endTask, heldFor } from './line.ts';
import { raiseMark } from './mark.ts';

/** The call that wrote a grant notifies its task within moments, or never. */
const NOTIFIED_AFTER_MS = 10_000;

/** A task with the documented timeout has ended this long after its deadline. Each try renews its permit. */
const MAX_PAST_DEADLINE_MS = 180_000;

/** The most that one run does for one pool. */
const MAX_ADVANCES = 10;
const MAX_OVERDUE = 100;
const MAX_LATE = 100;

/** As a rule, one key takes no longer. */
const LAST_KEY_MS = 5000;

/** What the run has done so far (../../queue/repair.ts). */
interface Counts {
  granted: number;
  told: number;
  unanswered: number;
}

interface Repair {
  record: PoolRecord;
  repaired: Counts;
}

/**
 * Finishes what a call on a pool that died half way left behind, and gives the places of holders that disappeared to the line
 * (docs/protocols/pools.md#repair).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairPool(
  dependencies: PoolDependencies,
  { key, repaired }: { key: string; repaired: Counts },
  call: Call,
): Promise<void> {
  let record = await readPool(dependencies, key, call);
  await failAllOverdue(dependencies, { record, repaired }, call);
  if (record.waiters === undefined && (await isSomebodyWaiting(dependencies, record, call)))
    record = (await raiseMark(dependencies, { key, condition: isUnmarked }, call)).standing;
  for (let tries = 0; tries < MAX_ADVANCES && call.timeLeftMs() >= LAST_KEY_MS; tries++) {
    const { granted, end, standing } = await advance(dependencies, { record }, call);
    repaired.granted += granted.length;
    record = standing;
    if (end !== 'left') break;
  }
  await notifyLate(dependencies, { record, repaired }, call);
}

/** Rows of callers that have left do not count, nor do those that have their permits. */
async function isSomebodyWaiting(dependencies: PoolDependencies, record: PoolRecord, call: Call): Promise<boolean> {
  for await (const ticket of ticketsOf(dependencies, { key: lineOf(record.key), firstPage: 10 }, call))
    if (isWaiting(ticket, dependencies.clock.now()) && !isGranted(record, ticket)) return true;
  return false;
}

const isGranted = (record: PoolRecord, ticket: Ticket): boolean =>
  entryOf(record, requestName(ticket))?.ticket === ticket.ticket;

/** Fails overdue tasks of a full pool, too. Otherwise TTL would delete such a ticket, and its task would wait for ever. */
async function failAllOverdue(dependencies: PoolDependencies, { record, repaired }: Repair, call: Call): Promise<void> {
  const { clock } = dependencies;
  const overdue = {
    key: lineOf(record.key),
    FilterExpression: 'deadline <= :now',
    ExpressionAttributeValues: { ':now': integer(clock.now()) },
  };
  let tries = 0;
  for await (const ticket of ticketsOf(dependencies, overdue, call)) {
    const isKept = !isTask(ticket) && ticket.keepUntil > clock.now();
    if (isKept || isGranted(record, ticket)) continue;
    if (tries++ === MAX_OVERDUE) return;
    if (!isTask(ticket)) await deleteOver(dependencies, ticket, call);
    else if (
      (await endTask(dependencies, { ticket, error: heldFor(dependencies, { record, ticket }) }, call)) === 'undecided'
    )
      repaired.unanswered++;
  }
}

/** The ticket of a grant is still there, so perhaps its task was never notified. Notifies it, under a new version. */
async function notifyLate(dependencies: PoolDependencies, { record, repaired }: Repair, call: Call): Promise<void> {
  const { clock } = dependencies;
  let read = 0;
  for await (const ticket of ticketsOf(dependencies, { key: lineOf(record.key), firstPage: MAX_LATE }, call)) {
    if (read++ === MAX_LATE || call.timeLeftMs() < LAST_KEY_MS) return;
    const entry = entryOf(record, requestName(ticket));
    const isLate = entry !== undefined && entry.acquiredAt + NOTIFIED_AFTER_MS <= clock.now();
    if (!isLate || entry.ticket !== ticket.ticket || entry.expiresAt <= clock.now()) continue;
    if (!isTask(ticket)) {
      // The grant was claimed, and its call died before it deleted the row.
      if (entry.claimTtlMs === undefined) await leaveLine(dependencies, ticket, call);
      continue;
    }
    if (ticket.deadline + MAX_PAST_DEADLINE_MS <= clock.now()) continue; // the permit then ends at its expiry
    const grant = { ticket, record, entry, repeated: false, isOurs: false };
    const { outcome } = await tellGrant(dependencies, grant, call);
    if (outcome === 'unanswered') repaired.unanswered++;
    if (outcome === 'delivered') repaired.told++;
    if (outcome === 'delivered' || outcome === 'gone') await deleteTicket(dependencies, ticket, call);
    // Perhaps it was notified before, and the answer was lost: only the end of its execution or its expiry ends the permit.
    if (outcome === 'gone')
      repaired.granted += await endPermitOfDead(dependencies, { key: record.key, execution: entry.execution }, call);
  }
}
