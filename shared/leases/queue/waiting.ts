import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { LeaseRecord } from '../record.ts';
import { isLeased } from '../rules.ts';
import { ticketsOf } from './tickets.ts';

/** What every caller may see of a parked task. The token is not in it. */
export interface WaiterView {
  ticket: string;
  holder: string;
  execution: string | null;
  parkedAt: string;
  deadline: string;
}

/** A read of one key must not cost more with each task that parks, so longer queues are not counted to their end. */
const MAX_COUNTED = 100;

const LISTED = 'ticket, holder, execution, parked_at, deadline';

interface Asked {
  record: LeaseRecord;
  /** How many are listed, the oldest first. */
  limit: number;
}

/**
 * The tasks that are parked for the key of a record, without the one that has the lease.
 * @returns `waiting`: how many there are, counted up to 100, or up to `limit` where that is more
 */
export async function readWaiting(
  dependencies: LeaseDependencies,
  { record, limit }: Asked,
  call: Call,
): Promise<{ waiting: number; waiters: WaiterView[] }> {
  const counted = Math.max(MAX_COUNTED, limit);
  const waiters: WaiterView[] = [];
  let waiting = 0;
  // One more, because the ticket of the holder may be among them.
  const query = { key: record.key, firstPage: counted + 1, ProjectionExpression: LISTED };
  for await (const row of ticketsOf(dependencies, query, call)) {
    const { ticket, holder, execution = null, parkedAt, deadline } = row;
    if (isLeased(record) && record.ticket === ticket) continue;
    const [parkedIso = '', deadlineIso = ''] = [parkedAt, deadline].map((at) => new Date(at).toISOString());
    if (waiters.length < limit) waiters.push({ ticket, holder, execution, parkedAt: parkedIso, deadline: deadlineIso });
    if (++waiting === counted) break;
  }
  return { waiting, waiters };
}
