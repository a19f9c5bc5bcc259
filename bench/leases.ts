import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from '../build/bundle.ts';
import type { OverheadResult, OverheadTask } from './leases.overhead.ts';
import { type Figure, type Measurement, median, milliseconds } from './measurement.ts';
import { inWorker } from './worker.ts';

const CALLS = ['acquire', 'release'] as const;

const overhead: Measurement = {
  name: 'overhead',
  title: 'Acquire and release: what the service adds to the bare SDK',
  method:
    'the bare SDK, the domain functions and API Gateway events into dist/, each sending the same PutItem and UpdateItem; one process, one emulator, blocks of ten pairs in random order; ratios are of the medians',
  run: async (options) => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bare-'));
    const bundled = async (source: string) => {
      await bundle(fileURLToPath(new URL(source, import.meta.url)), join(folder, source));
      return join(folder, source, 'index.mjs');
    };
    try {
      const task: OverheadTask = {
        bareSdk: await bundled('bare-sdk.ts'),
        domain: await bundled('leases.domain.ts'),
        repetitions: options.quick ? 3 : 15,
        pairs: options.quick ? 100 : 400,
      };
      const script = new URL('leases.overhead.ts', import.meta.url);
      return overheadFigures(await inWorker<OverheadTask, OverheadResult>(script, task, options));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** At most so many times the floor's time. */
const MOST = { domain: 1.1, built: 1.25 };
const NAMES = { bare: 'bare SDK', domain: 'domain', built: 'built function' };

function overheadFigures(repetitions: OverheadResult): Figure[] {
  return CALLS.flatMap((call) =>
    (['bare', 'domain', 'built'] as const).map((name): Figure => {
      const figure = milliseconds(`${call}, ${NAMES[name]}`, repetitions.map((one) => one[name][call])); // biome-ignore format: one line
      if (name === 'bare') return figure;
      // Of each repetition, so that what else the machine did weighs on both.
      const toFloor = median(repetitions.map((one) => median(one[name][call]) / median(one.bare[call])));
      return { ...figure, toFloor, bar: { measured: toFloor, most: MOST[name] } };
    }),
  );
}

export const leaseMeasurements: Measurement[] = [overhead];
