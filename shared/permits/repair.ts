import type { Call } from '../aws/call.ts';
import { endDeadHolders } from '../line/executions/questions.ts';
import { type Found, findEnd } from '../line/executions/state.ts';
import { dropDeadTask } from '../line/repair/dead-task.ts';
import type { Counts, Looking } from '../line/repair/looking.ts';
import { failAllOverdue, isLate, isSomebodyWaiting, isStillTold, LAST_KEY_MS } from '../line/repair/overdue.ts';
import { endUnnotified } from '../line/unnotified.ts';
import { deleteTicket, isTask, lineOf, type TaskTicket, type Ticket, ticketsOf } from '../line/waiters.ts';
import { leaveLine } from '../line/waiting-calls.ts';
import { isUnmarked } from './conditions.ts';
import { tellGrant } from './deliver.ts';
import type { PoolDependencies } from './dependencies.ts';
import { endPermitsOfEnded } from './execution-ended.ts';
import { advance } from './hand-off.ts';
import { raiseMark } from './marks.ts';
import { requestName } from './names.ts';
import { failOverdue } from './next.ts';
import { readPool } from './read.ts';
import { entryOf, type PoolEntry, type PoolRecord } from './record.ts';
import { giveBack, giveToLine } from './release.ts';
import { permitLost } from './views.ts';

/** The most that one run does for one pool. */
const MAX_ADVANCES = 10;
const MAX_LATE = 100;

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
  { key, repaired, spareMs, questions }: Looking,
  call: Call,
): Promise<void> {
  let record = await readPool(dependencies, key, call);
  const line = { key: lineOf(key), isGranted: (ticket: Ticket) => isGranted(record, ticket) };
  const fail = (ticket: TaskTicket) => failOverdue(dependencies, { ticket, record }, call);
  repaired.unanswered += await failAllOverdue(dependencies, { ...line, fail, spareMs }, call);
  const waiting = { key: line.key, isGranted: (ticket: Ticket) => hasPermit(dependencies, record, ticket) };
  if (record.waiters === undefined && (await isSomebodyWaiting(dependencies, waiting, call)))
    record = (await raiseMark(dependencies, { key, condition: isUnmarked, isAgain: true }, call)).standing;
  // Before the line is served: that may notify an older try of the task, and so give the permit a version that this call has not seen.
  await notifyLate(dependencies, { record, repaired }, call);
  for (let tries = 0; tries < MAX_ADVANCES && call.timeLeftMs() >= LAST_KEY_MS; tries++) {
    const { granted, end, standing, blocked } = await advance(dependencies, { record }, call);
    repaired.granted += granted.length;
    record = standing;
    if (blocked && (await dropDeadTask(dependencies, { ticket: blocked, questions }, call))) continue;
    if (end !== 'left') break;
  }
  if (record.waiters === undefined) return;
  const end = (found: Found) => endPermitsOfEnded(dependencies, { ...found, key }, call);
  repaired.granted += await endDeadHolders(dependencies, { grants: record.entries, questions, end }, call);
}

const isGranted = (record: PoolRecord, ticket: Ticket): boolean =>
  entryOf(record, requestName(ticket))?.ticket === ticket.ticket;

/** Whether the request of a row has a permit, by whichever row. */
const hasPermit = ({ clock }: PoolDependencies, record: PoolRecord, ticket: Ticket): boolean =>
  Number(entryOf(record, requestName(ticket))?.expiresAt) > clock.now();

/** The ticket of a grant is still there, so perhaps its task was never notified. Notifies it, under a new version. */
async function notifyLate(dependencies: PoolDependencies, { record, repaired }: Repair, call: Call): Promise<void> {
  const { clock } = dependencies;
  let read = 0;
  for await (const ticket of ticketsOf(dependencies, { key: lineOf(record.key), firstPage: MAX_LATE }, call)) {
    if (read++ === MAX_LATE || call.timeLeftMs() < LAST_KEY_MS) return;
    const entry = entryOf(record, requestName(ticket));
    if (!entry || !isLate(entry, clock.now())) continue;
    if (entry.ticket !== ticket.ticket || entry.expiresAt <= clock.now()) continue;
    if (!isTask(ticket)) {
      // The grant was claimed, and its call died before it deleted the row.
      if (entry.claimTtlMs === undefined) await leaveLine(dependencies, ticket, call);
      continue;
    }
    if (!isStillTold(ticket, clock.now())) continue;
    if (entry.isEnding) {
      await endMarked(dependencies, { record, entry, ticket, repaired }, call);
      continue;
    }
    const grant = { ticket, record, entry, repeated: false, isOurs: false };
    const { outcome } = await tellGrant(dependencies, grant, call);
    if (outcome === 'unanswered') repaired.unanswered++;
    if (outcome === 'delivered') repaired.told++;
    if (outcome === 'delivered' || outcome === 'gone') await deleteTicket(dependencies, ticket, call);
    // Perhaps it was notified before, and the answer was lost: only the end of its execution or its expiry ends the permit.
    if (outcome !== 'gone' || entry.execution === undefined) continue;
    const found = await findEnd(dependencies, { execution: entry.execution, orMissing: true }, call);
    if (found)
      repaired.granted += await endPermitsOfEnded(
        dependencies,
        { ...found, key: record.key, ticket: ticket.ticket },
        call,
      );
  }
}

interface Marked {
  entry: PoolEntry;
  ticket: TaskTicket;
}

/** The break that marked the permit died before it looked at the ticket. If the task takes the message, no holder works under the permit. */
async function endMarked(
  dependencies: PoolDependencies,
  { record: { key }, entry: { name, id, version, fence }, ticket, repaired }: Repair & Marked,
  call: Call,
): Promise<void> {
  const delivery = await endUnnotified(dependencies, { ticket, error: permitLost(key, 'broken') }, call);
  if (delivery === 'unanswered') repaired.unanswered++;
  if (delivery !== 'delivered') return;
  const ends = { key, proof: { name, id }, brokenFence: fence, seen: version };
  const { won, standing } = await giveBack(dependencies, ends, call);
  if (won) await giveToLine(dependencies, { record: standing }, call);
}
