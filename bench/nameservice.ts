import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle } from '../build/bundle.ts';
import { type Figure, type Measurement, percentile, ratio } from './measurement.ts';
import type { NameserviceResult, NameserviceTask } from './nameservice.worker.ts';
import { inWorker } from './worker.ts';

const ALIASES = 5000;

const nameservice: Measurement = {
  name: 'nameservice',
  title: 'Nameservice: publishCommit through the built function and by the bare SDK, lookup, and a long listing',
  method:
    'API Gateway events into dist/, and a bundle of the SDK alone sending the same UpdateItem; one process, one emulator, blocks of ten in random order',
  run: async (options) => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bare-'));
    try {
      await bundle(new URL('nameservice.bare.ts', import.meta.url).pathname, folder);
      const samples = options.quick ? 1000 : 6000;
      const task: NameserviceTask = { bareSdk: join(folder, 'index.mjs'), samples, aliases: ALIASES };
      const script = new URL('nameservice.worker.ts', import.meta.url);
      return figures(await inWorker<NameserviceTask, NameserviceResult>(script, task, options));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

function figures({ built, bare, lookUps, list }: NameserviceResult): Figure[] {
  const [p50, bareP50, p99, bareP99] = [0.5, 0.99].flatMap((at) => [percentile(built, at), percentile(bare, at)]);
  return [
    { what: 'publishCommit p50, built / bare', value: `${ms(p50)} / ${ms(bareP50)}` },
    { what: 'publishCommit p99, built / bare', value: `${ms(p99)} / ${ms(bareP99)}` },
    ratio('publishCommit p50 ratio', (p50 ?? Number.NaN) / (bareP50 ?? Number.NaN), 1.25),
    { what: 'lookup p50', value: ms(percentile(lookUps, 0.5)) },
    { what: `listing of ${ALIASES} aliases`, value: ms(list) },
  ];
}

const ms = (value = Number.NaN) => `${value.toFixed(2)} ms`;

export const nameserviceMeasurements: Measurement[] = [nameservice];
