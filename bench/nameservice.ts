import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle } from '../build/bundle.ts';
import { type Figure, type Measurement, median, milliseconds } from './measurement.ts';
import type { NameserviceResult, NameserviceTask } from './nameservice.worker.ts';
import { inWorker } from './worker.ts';

const nameservice: Measurement = {
  name: 'nameservice',
  title: 'Nameservice: publishCommit through the built function and by the bare SDK, lookup, and a long listing',
  method:
    'API Gateway events into dist/, and a bundle of the SDK alone sending the same UpdateItem; one process, one emulator, blocks of ten in random order',
  run: async (options) => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bare-'));
    try {
      await bundle(join(import.meta.dirname, 'nameservice.bare.ts'), folder);
      const [samples, aliases] = options.quick ? [1000, 1000] : [6000, 5000];
      const task: NameserviceTask = { bareSdk: join(folder, 'index.mjs'), samples, aliases };
      const script = new URL('nameservice.worker.ts', import.meta.url);
      return figures(task, await inWorker<NameserviceTask, NameserviceResult>(script, task, options));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

function figures({ aliases }: NameserviceTask, { built, bare, lookUps, list }: NameserviceResult): Figure[] {
  const alone = milliseconds('publishCommit, bare SDK', parts(bare));
  const ours = milliseconds('publishCommit, built function', parts(built));
  const toFloor = median(parts(built).map((part, at) => median(part) / median(parts(bare)[at] ?? [])));
  return [
    { ...alone, toFloor: 1 },
    { ...ours, toFloor, bar: { measured: toFloor, most: 1.25 } },
    milliseconds('lookup', parts(lookUps)),
    milliseconds(`listing of ${aliases} aliases`, [[list]]),
  ];
}

/** Ten, one after the other, that the spread can be told. */
function parts(values: number[]): number[][] {
  const size = values.length / 10;
  return Array.from({ length: 10 }, (_, at) => values.slice(at * size, (at + 1) * size));
}

export const nameserviceMeasurements: Measurement[] = [nameservice];
