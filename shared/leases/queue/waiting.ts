import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { LeaseRecord } from '../record.ts';
import { isLeased } from '../rules.ts';
import { type Ticket, ticketsOf } from './tickets.ts';

/** What anybody may see of a parked task: not its token. */
export interface WaiterView {
  ticket: string;
  holder: string;
  execution: string | null;
  parkedAt: string;
  deadline: string;
}

/** How many are parked for the key of a record, the one that has the lease not among them. */
export async function countWaiting(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<number> {
  let count = 0;
  for await (const ticket of parked(dependencies, record, call, true)) if (ticket) count++;
  return count;
}

/** The oldest first. */
export async function listWaiting(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  limit: number,
  call: Call,
): Promise<WaiterView[]> {
  const waiters: WaiterView[] = [];
  for await (const { ticket, holder, execution = null, parkedAt, deadline } of parked(dependencies, record, call)) {
    if (waiters.length === limit) break;
    const [parkedIso, deadlineIso] = [parkedAt, deadline].map((at) => new Date(at).toISOString());
    waiters.push({ ticket, holder, execution, parkedAt: parkedIso ?? '', deadline: deadlineIso ?? '' });
  }
  return waiters;
}

async function* parked(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  call: Call,
  namesOnly = false,
): AsyncGenerator<Ticket> {
  const projection = { ProjectionExpression: namesOnly ? 'ticket' : LISTED };
  for await (const ticket of ticketsOf(dependencies, record.key, call, projection))
    if (!(isLeased(record) && record.ticket === ticket.ticket)) yield ticket;
}

const LISTED = 'ticket, holder, execution, parked_at, deadline';
