import { setTimeout as work } from 'node:timers/promises';
import { Holdfast, isHoldfastError } from 'holdfast-client';

const [, , endpoint = 'http://127.0.0.1:3000'] = process.argv;

const SHARDS = 3;
const LIMIT = 2; // for each shard, so 6 in all

async function acquireAny(holdfast, key, options) {
  const first = Math.floor(Math.random() * SHARDS);
  const shards = Array.from({ length: SHARDS }, (_, at) => `${key}-${(first + at) % SHARDS}`);
  for (;;) {
    // Try each shard without waiting. If all are full, wait some seconds in the line of the first one.
    for (const [shard, waitMs] of [...shards.map((one) => [one, 0]), [shards[0], 5000]]) {
      try {
        return await holdfast.acquire(shard, { ...options, limit: LIMIT, waitMs });
      } catch (error) {
        if (!isHoldfastError(error, 'LeaseHeld')) throw error;
      }
    }
  }
}

let turns = 0;
let atWork = 0;
let most = 0;
async function caller(name) {
  const holdfast = new Holdfast({ endpoint, holder: name });
  const permit = await acquireAny(holdfast, 'examples/sharded', { ttlSeconds: 60 });
  most = Math.max(most, ++atWork);
  await work(100);
  atWork--;
  turns++;
  await permit.release();
}
await Promise.all(Array.from({ length: 12 }, (_, at) => caller(`caller-${at}`)));
console.log(`callers that had their turn: ${turns}`);
console.log(`ever more at work than the limit: ${most > SHARDS * LIMIT}`);
