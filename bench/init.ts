import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle } from '../build/bundle.ts';
import { sizeOf } from '../build/sizes.ts';
import { readService } from '../infrastructure/read.ts';
import { type Contest, type Side, timeStart, withContests, withStores } from './bundles.ts';
import { type Figure, type Measurement, median, type Options, ratio, shuffle } from './measurement.ts';
import { largestParts } from './parts.ts';

/** With 1,769 MB, Lambda gives a function a whole processor, and with less memory a proportional part. */
const WHOLE_MB = 1769;
const SIZES_MB = [128, 512, WHOLE_MB];
const named = (size: number) => `${size.toLocaleString('en')} MB`;
export const MEMORY_SIZES = SIZES_MB.map(named);

const MAX_INIT_RATIO = 1.1;
const MAX_BYTES = 1_000_000;
const LARGEST = 3;

/** Half of the time that a function takes beyond the bare clients depends on its bytes, which `size` limits to 1.45 times those of the clients. */
const SCHEMAS = {
  upTo: 1.5,
  why: 'besides the clients, a function loads zod (18 to 27 kB) and 25 to 60 kB of rules, which Node compiles in 2 to 4 ms. It builds the schema of its requests in 1 to 3 ms. With few samples, the ratio also varies by 0.2 between runs',
};

const init: Measurement = {
  name: 'init',
  title: 'Init time by the memory of the function, peak memory, and the largest parts of each bundle',
  method: `The import of index.mjs in fresh Node processes, next to the clients alone, in pairs of random order. A control group gives the process the processor time of a function with ${MEMORY_SIZES.join(', ')}. The start of Node does not count. In AWS, the download of the zip and the start of the runtime are added. *Peak* is the resident set of the process, with Node, after its first answer. *Parts* are bytes of the whole zip before it is minified`,
  run: async (options) =>
    withContests(
      (contests) =>
        withStores(options, async (env) => [
          ...(await startFigures({ contests, env }, options)),
          ...(await bundleFigures(options)),
        ]),
      options.quick ? 1 : undefined,
    ),
};

type Pair = Record<Side, { importMs: number; peakKb: number }>;

async function startFigures(
  { contests, env }: { contests: Contest[]; env: Record<string, string> },
  { quick, progress }: Options,
): Promise<Figure[]> {
  const rounds = quick ? 1 : 5;
  const samples = contests.flatMap((contest) => SIZES_MB.map((size) => ({ contest, size, pairs: [] as Pair[] })));
  for (let round = 1; round <= rounds; round++) {
    progress(`init: round ${round} of ${rounds}`);
    for (const { contest, size, pairs } of shuffle([...samples])) {
      const pair: Partial<Pair> = {};
      for (const side of shuffle<Side>(['built', 'bare']))
        pair[side] = await timeStart(contest, side, { env, cores: size / WHOLE_MB });
      pairs.push(pair as Pair);
    }
  }
  return samples.flatMap(({ contest: { name }, size, pairs }) => {
    const memory = `${name}, ${named(size)}`;
    const figures = [initFigure(`init, ${memory}`, pairs), ...ratioFigure(`init ratio, ${memory}`, pairs, quick)];
    return size === WHOLE_MB ? [...figures, peakFigure(`peak memory, ${name}`, pairs)] : figures;
  });
}

function initFigure(what: string, pairs: Pair[]): Figure {
  const [own, alone] = [
    median(pairs.map(({ built }) => built.importMs)),
    median(pairs.map(({ bare }) => bare.importMs)),
  ];
  const value = `${own.toFixed(0)} ms / ${alone.toFixed(0)} alone`;
  return { what, value, unit: 'ms', n: pairs.length, median: own };
}

/** A single pair is too little to judge by. */
function ratioFigure(what: string, pairs: Pair[], quick: boolean): Figure[] {
  const ratios = pairs.map(({ built, bare }) => built.importMs / bare.importMs);
  return [ratio(what, ratios, quick ? undefined : { max: MAX_INIT_RATIO, excuse: SCHEMAS })];
}

function peakFigure(what: string, pairs: Pair[]): Figure {
  const megabytes = (side: Side) => pairs.map((pair) => pair[side].peakKb / 1024);
  const [own, alone] = [median(megabytes('built')), median(megabytes('bare'))];
  const value = `${own.toFixed(0)} MiB / ${alone.toFixed(0)} alone`;
  return { what, value, unit: 'MiB', n: pairs.length, median: own };
}

/** Bundles the function again as the build does, to list its parts. */
async function bundleFigures({ quick }: Options): Promise<Figure[]> {
  const { functions } = await readService();
  const root = await mkdtemp(join(tmpdir(), 'holdfast-bench-parts-'));
  try {
    const figures = (quick ? functions.slice(0, 1) : functions).map(
      async ({ name, source, bundle: built }): Promise<Figure> => {
        const { all } = await sizeOf(built);
        const inputs = await bundle(source, join(root, name));
        const parts = largestParts(inputs, LARGEST).map(({ part, bytes }) => `${part} ${(bytes / 1000).toFixed(0)}`);
        return {
          ...{ what: `bundle, ${name}`, value: `${(all / 1000).toFixed(0)} kB: ${parts.join(', ')}` },
          ...{ unit: 'kB', n: 1, median: all / 1000, bar: { measured: all / 1000, max: MAX_BYTES / 1000 } },
        };
      },
    );
    return await Promise.all(figures);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

export const initMeasurements: Measurement[] = [init];
