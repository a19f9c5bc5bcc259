import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { findEnd } from '../line/executions/state.ts';
import type { Counts, Looking } from '../line/repair/looking.ts';
import { failAllOverdue, isLate, isSomebodyWaiting, isStillTold, LAST_KEY_MS } from '../line/repair/overdue.ts';
import { endUnnotified } from '../line/unnotified.ts';
import { deleteTicket, getTicket, isTask, type TaskTicket, type Ticket, ticketsOf } from '../line/waiters.ts';
import { leaveLine } from '../line/waiting-calls.ts';
import { notifyGranted } from './deliver.ts';
import { endDeadHolder, releaseHeldByEnded } from './execution-ended.ts';
import { handOff } from './hand-off.ts';
import { markAgain } from './marks.ts';
import { failOverdue } from './next.ts';
import { readRecord } from './read-record.ts';
import type { LeaseRecord } from './record.ts';
import { canBeHad, isEnding, isLeased } from './rules.ts';
import { leaseLost } from './views.ts';
import { repairAgainAtTheEnd } from './watch.ts';

/** One run does no more for one key, because a queue of dead tickets must not cost the other keys their turn. */
const MAX_HAND_OFFS = 10;

/** The line of a busy key of foreign clients is looked at again in the same run while its newest ticket is younger than this. */
const YOUNG_MS = 600_000;

/**
 * Finishes what a call on a lease that died half way left behind, and hands on the lease of a holder that disappeared (docs/protocols/queue.md#repair).
 * @param fence of the grant that a message is about
 * @returns whether to look at the key again in this run
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairLease(
  dependencies: LeaseDependencies,
  { key, fence, repaired, spareMs, questions }: Looking & { fence: number | undefined },
  call: Call,
): Promise<boolean> {
  const record = await readRecord(dependencies, key, call);
  // The grant that the message is about has ended. Another one that stands has messages of its own.
  if (fence !== undefined && record.fence !== fence && !canBeHad(record, dependencies)) return false;
  const isGranted = ({ ticket }: Ticket) => ticket === record.ticket;
  const fail = (ticket: TaskTicket) => failOverdue(dependencies, { ticket, record }, call);
  repaired.unanswered += await failAllOverdue(dependencies, { key, isGranted, fail, spareMs }, call);
  const standing = await handOnOrMark(dependencies, { record, repaired }, call);
  await notifyLate(dependencies, { record: standing, repaired }, call);
  if (fence !== undefined && standing.fence === fence) await repairAgainAtTheEnd(dependencies, standing, call);
  repaired.granted += await endDeadHolder(dependencies, { record: standing, questions }, call);
  return isForeign(standing) && hasYoungTicket(dependencies, key, call);
}

async function hasYoungTicket(dependencies: LeaseDependencies, key: string, call: Call): Promise<boolean> {
  const newestFirst = ticketsOf(dependencies, { key, firstPage: 1, ScanIndexForward: false }, call);
  const { value: newest } = await newestFirst.next();
  return newest !== undefined && newest.parkedAt + YOUNG_MS > dependencies.clock.now();
}

/** The same for a lease that a foreign client held when the run came to its key. @returns whether such a client still holds it */
export async function repairLeaseAgain(
  dependencies: LeaseDependencies,
  { key, repaired }: Pick<Looking, 'key' | 'repaired'>,
  call: Call,
): Promise<boolean> {
  const record = await readRecord(dependencies, key, call);
  return isForeign(await handOnOrMark(dependencies, { record, repaired }, call));
}

/** Leased by a client that writes the Rust crate's attributes alone. */
const isForeign = (record: LeaseRecord): boolean => isLeased(record) && record.leaseId === undefined;

/** The lease as it was last seen, and what the run has done so far. */
interface Repair {
  record: LeaseRecord;
  repaired: Counts;
}

/**
 * Hands on a lease that is free or expired, and puts a lost mark back on one that runs.
 * @returns the record as it was last seen
 */
async function handOnOrMark(
  dependencies: LeaseDependencies,
  { record: seen, repaired }: Repair,
  call: Call,
): Promise<LeaseRecord> {
  const { key } = seen;
  let record = seen;
  for (let tries = 0; canBeHad(record, dependencies); record = await readRecord(dependencies, key, call)) {
    const ending = isLeased(record) ? 'expired' : 'free';
    const { end, standing } = await handOff(dependencies, { record, ending }, call);
    if (end === 'granted') repaired.granted++;
    if (end !== 'left' || ++tries === MAX_HAND_OFFS || call.timeLeftMs() < LAST_KEY_MS) return standing;
  }
  if (record.waiters !== undefined || !(await isSomebodyWaiting(dependencies, { key, isGranted: () => false }, call)))
    return record;
  return (await markAgain(dependencies, { record }, call)).standing;
}

/** The ticket of the grant is still there, so perhaps its task was never notified. Notifies it, under a new version. */
async function notifyLate(dependencies: LeaseDependencies, { record, repaired }: Repair, call: Call): Promise<void> {
  const { key, ticket } = record;
  if (!isLeased(record) || ticket === undefined || !isLate(record, dependencies.clock.now())) return;
  const row = await getTicket(dependencies, { key, ticket }, call);
  if (row && !isTask(row)) {
    // The grant was claimed, and its call died before it deleted the row.
    if (record.claimTtlMs === undefined) await leaveLine(dependencies, row, call);
    return;
  }
  if (!row || !isStillTold(row, dependencies.clock.now())) return;
  if (isEnding(record)) {
    // The break that marked it died before it looked at the ticket.
    const ending = { ticket: row, error: leaseLost(key, 'broken', undefined) };
    const delivery = await endUnnotified(dependencies, ending, call);
    if (delivery === 'unanswered') repaired.unanswered++;
    if (delivery !== 'delivered') return;
    const { end } = await handOff(dependencies, { record, ending: 'broken' }, call);
    if (end === 'granted') repaired.granted++;
    return;
  }
  const grant = { ticket: row, record, repeated: false, isOurs: false };
  const { outcome, standing } = await notifyGranted(dependencies, grant, call);
  if (outcome === 'overtaken') return;
  if (outcome === 'unanswered') {
    repaired.unanswered++;
    return;
  }
  await deleteTicket(dependencies, row, call);
  if (outcome === 'delivered') repaired.told++;
  // Perhaps the task was notified before, and the answer was lost: only the end of its execution or its expiry moves the lease.
  const { execution } = standing;
  if (outcome === 'delivered' || execution === undefined) return;
  const found = await findEnd(dependencies, { execution, orMissing: true }, call);
  if (found) repaired.granted += await releaseHeldByEnded(dependencies, { ...found, key, ticket }, call);
}
