import type { Call } from '../../aws/call.ts';
import type { LeaseRecord } from '../record.ts';
import { parkedAtOf } from './tickets.ts';

/**
 * Measures how long a lease took from its end to the holder that was next in line. An expiry tells of no end that anybody wrote, and before a holder that came
 * later than that end the lease stood free.
 * @param record the grant from the queue, whose holder has just heard of it
 */
export function measureHandOff({ previous, ticket }: LeaseRecord, now: number, call: Call): void {
  if (!previous || previous.ended === 'expired' || ticket === undefined || previous.at < parkedAtOf(ticket)) return;
  call.measure?.('HandOffMs', Math.max(0, now - previous.at)); // the two instants may be of two clocks
}
