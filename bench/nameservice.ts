import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from '../build/bundle.ts';
import { type Figure, inParts, type Measurement, median, milliseconds } from './measurement.ts';
import type { NameserviceResult, NameserviceTask } from './nameservice.worker.ts';
import { inWorker } from './worker.ts';

const nameservice: Measurement = {
  name: 'nameservice',
  title: 'Nameservice: publishCommit through the built function and by the bare SDK, lookup, and a long listing',
  method:
    'API Gateway events into dist/, and a bundle with only the SDK that sends the same UpdateItem, in blocks as for `overhead`',
  run: async (options) => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bare-'));
    try {
      await bundle(fileURLToPath(new URL('nameservice.bare.ts', import.meta.url)), folder);
      const counts = options.quick
        ? { samples: 100, aliases: 100, warmUp: 10 }
        : { samples: 6000, aliases: 5000, warmUp: 600 };
      const task: NameserviceTask = { bareSdk: join(folder, 'index.mjs'), ...counts };
      const script = new URL('nameservice.worker.ts', import.meta.url);
      return figures(task, await inWorker<NameserviceTask, NameserviceResult>(script, task, options));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

function figures({ aliases }: NameserviceTask, { built, bare, reads, list }: NameserviceResult): Figure[] {
  const [ofBuilt, ofBare] = [inParts(built), inParts(bare)];
  const alone = milliseconds('publishCommit, bare SDK', ofBare);
  const ours = milliseconds('publishCommit, built function', ofBuilt);
  const toFloor = median(ofBuilt.map((part, at) => median(part) / median(ofBare[at] ?? [])));
  return [
    { ...alone, toFloor: 1 },
    { ...ours, toFloor, bar: { measured: toFloor, max: 1.25 } },
    milliseconds('lookup', inParts(reads)),
    milliseconds(`listing of ${aliases} aliases`, [[list]]),
  ];
}

export const nameserviceMeasurements: Measurement[] = [nameservice];
