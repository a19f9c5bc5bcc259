import { readFileSync } from 'node:fs';

/**
 * The time of a clock that all processes of this machine share, in milliseconds. On Linux, this clock goes on while the machine sleeps, and is never set back.
 */
export const sharedClock = (): number =>
  process.platform === 'linux' ? Number.parseFloat(readFileSync('/proc/uptime', 'utf8')) * 1000 : Date.now();
