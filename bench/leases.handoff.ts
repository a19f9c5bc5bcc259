import { setTimeout as delay } from 'node:timers/promises';
import { builtFunction } from './functions.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface HandoffTask {
  repetitions: number;
  atATime: number;
}

const { repetitions, atATime } = await receiveTask<HandoffTask>();
const acquire = await builtFunction('leases/acquire');
const release = await builtFunction('leases/release');

const waits: number[] = [];
while (waits.length < repetitions) {
  sendProgress(`hand-off: ${waits.length} of ${repetitions}`);
  const batch = Array.from({ length: atATime }, (_, at) => handoff(`hand-off ${waits.length + at}`));
  waits.push(...(await Promise.all(batch)));
}
sendResult(waits.slice(0, repetitions));

/** @returns milliseconds from sending the release to the waiting caller's grant */
async function handoff(key: string): Promise<number> {
  const { leaseId } = await acquire<{ leaseId: string }>({ key, holder: 'first', ttlSeconds: 60 });
  const granted = acquire<{ waitedMs: number }>({ key, holder: 'second', waitSeconds: 15 }).then(() =>
    performance.now(),
  );
  // At any moment between two looks of the waiter, which are at most a quarter of a second apart.
  await delay(3000 + Math.random() * 250);
  const releasedAt = performance.now();
  await release({ key, leaseId });
  return (await granted) - releasedAt;
}
