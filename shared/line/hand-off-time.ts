import type { Call } from '../aws/call.ts';
import type { Ended } from './ended.ts';
import { parkedAtOf } from './waiters.ts';

interface Granted {
  previous?: Ended | undefined;
  ticket?: string | undefined;
}

/**
 * Measures how long a lease took from its end to the holder that was next in line. It measures no expiry, because no call wrote its time, and no
 * holder that came after the end, because the lease stood free for a while.
 * @param record the grant from the line that its holder has just received
 */
export function measureHandOff({ previous, ticket }: Granted, now: number, call: Call): void {
  if (!previous || previous.ended === 'expired' || ticket === undefined || previous.at < parkedAtOf(ticket)) return;
  call.measure?.('HandOffMs', Math.max(0, now - previous.at)); // the two instants may be of two clocks
}
