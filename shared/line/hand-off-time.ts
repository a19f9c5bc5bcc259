import type { Call } from '../aws/call.ts';
import type { Ended } from './ended.ts';
import { parkedAtOf } from './waiters.ts';

interface Granted {
  previous?: Ended | undefined;
  ticket?: string | undefined;
}

/**
 * Measures the time from the end of a grant to the next holder, if that holder was in line. Does not measure after an expiry, because no call wrote
 * the time of the expiry. Does not measure a holder that joined after the end, because the lock was free until then.
 * @param record the grant from the line that its holder has just received
 */
export function measureHandOff({ previous, ticket }: Granted, now: number, call: Call): void {
  if (!previous || previous.ended === 'expired' || ticket === undefined || previous.at < parkedAtOf(ticket)) return;
  call.measure?.('HandOffMs', Math.max(0, now - previous.at)); // the two instants may be of two clocks
}
