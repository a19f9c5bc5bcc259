import { openSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Holdfast, isHoldfastError } from '../../clients/typescript/src/index.ts';
import { systemSurroundings } from '../../clients/typescript/src/surroundings.ts';
import { seededRandom } from '../../test/support/chance/seed.ts';
import type { Line } from './check.ts';
import { SHARED } from './others.ts';

/** A process of the chaos: it does several pieces of work at once, each under a lease, until SIGTERM. Then it must end. */
const [, , endpoint = '', holder = '', log = '', keys = '', atOnce = '', seed = ''] = process.argv;
const random = seededRandom(Number(seed));
const names = JSON.parse(keys) as string[];

const file = openSync(log, 'a');
const write = (line: Line) => writeSync(file, `${JSON.stringify(line)}\n`);
/** A clock that every process of this machine shares. */
const nowMs = () => Number(process.hrtime.bigint() / 1000n) / 1000;
const below = (limit: number) => Math.floor(random() * limit);

let stopping = false;
process.on('SIGTERM', () => {
  stopping = true;
});
process.stdout.write('ready'); // before this, SIGTERM would end the process half way

const holdfast = new Holdfast({ endpoint, holder, surroundings: { ...systemSurroundings, random } });
await Promise.all(Array.from({ length: Number(atOnce) }, loop));
write({ type: 'done', holder, at: nowMs() });

async function loop(): Promise<void> {
  while (!stopping) {
    const key = names[below(names.length)] as string;
    try {
      await piece(key);
      write({ type: 'success', holder });
    } catch (error) {
      const code = isHoldfastError(error) ? error.code : (error as Error).name;
      const reason = isHoldfastError(error, 'LeaseLost') ? error.reason : undefined;
      write({ type: 'failure', holder, code, ...(reason && { reason }), detail: String(error) });
      if (code === 'LeaseHeld') await delay(below(500));
    }
  }
}

function piece(key: string): Promise<void> {
  const options = {
    // Longer than the grant window, so that an unclaimed grant is recognized by its ttl.
    ttlSeconds: 3 + below(2),
    waitMs: below(6000),
    timeoutMs: 15_000,
    // The clients of the Rust crate do not get a lease while a caller is in line.
    ...(key.startsWith(SHARED) && { fair: false }),
    ...(below(10) === 0 && { maxHoldMs: 1500 }),
    ...(below(10) === 0 && { signal: AbortSignal.timeout(below(4000)) }),
  };
  return holdfast.withLease(key, options, async (lease) => {
    const endsAt = nowMs() + below(4000);
    do {
      // The clock is read before the question: what is held then was held at this moment.
      const at = nowMs();
      if (!lease.held) return;
      write({ type: 'step', key, fence: lease.fence, holder, at });
      if (below(40) === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300 + below(2500));
      else await delay(20 + below(60));
    } while (nowMs() < endsAt && !stopping);
  });
}
