import { readFileSync } from 'node:fs';

/**
 * The time in milliseconds on a clock that two processes of this machine share. On Linux the clock goes on while the machine sleeps, and
 * never back.
 */
export const sharedClock = (): number =>
  process.platform === 'linux' ? Number.parseFloat(readFileSync('/proc/uptime', 'utf8')) * 1000 : Date.now();
