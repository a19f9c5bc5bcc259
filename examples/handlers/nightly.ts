/** A nightly job on ECS. Its schedule may start it twice. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isHoldfastError } from 'holdfast-client';
import { holdfast } from './client.ts';

/** ECS sends SIGTERM, and then SIGKILL after the stopTimeout of the container, by default 30 seconds. */
const stopped = new AbortController();
process.once('SIGTERM', () => stopped.abort(new Error('the task is stopped')));

const STEPS = Number(process.env.STEPS ?? 3);

async function writeReport(signal: AbortSignal, fence: number): Promise<void> {
  console.log(`writes the report, with a fence: ${fence > 0}`);
  for (let step = 0; step < STEPS; step++) await sleep(100, undefined, { signal });
}

try {
  await holdfast.withLease('nightly-report', { signal: stopped.signal, maxHoldMs: 3_600_000 }, (lease) =>
    writeReport(lease.signal, lease.fence),
  );
  console.log('the report is written');
} catch (error) {
  if (isHoldfastError(error, 'LeaseHeld')) console.log(`${error.holder} is at it already`);
  else if (stopped.signal.aborted) console.log('stopped, and the lease is released');
  else throw error;
}
