import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from '../build/bundle.ts';
import type { NamespaceName, NamespaceResult, NamespaceTask } from './leases.namespace.ts';
import type { Bundles, OverheadResult, OverheadTask } from './leases.overhead.ts';
import { type Figure, type Measurement, mean, median, milliseconds, type Options } from './measurement.ts';
import { inWorker } from './worker.ts';

const CALLS = ['acquire', 'release'] as const;

const COMPARED =
  'The bare SDK, the domain functions and the built functions (API Gateway events into dist/) send the same PutItem and UpdateItem. Each call has its own bundle and SDK, as a function has. One process, one emulator, blocks of ten pairs in random order';

const overhead: Measurement = {
  name: 'overhead',
  title: 'Acquire and release: what the service adds to the bare SDK (`overhead`)',
  method: `${COMPARED}. Ratios are of the medians`,
  run: async (options) => overheadFigures(await compare(options, LEASES), { middle: median, max: MAX_TO_FLOOR }),
};

/** The part of a core. Lambda gives a function of 512 MB a little less. */
const THIRD = 1 / 3;

const throttled: Measurement = {
  name: 'throttled',
  title: 'Acquire and release on a third of a core',
  method:
    'As for `overhead`, but a control group lets the process run for a third of every 20 ms. The emulator has a core. Ratios are of the means, because the control group stops few calls, but each for long',
  run: async (options) =>
    overheadFigures(await compare(options, { ...LEASES, cores: THIRD }), { middle: mean, max: MAX_TO_FLOOR }),
};

/** The options of `playPairs`. */
const samplesOf = ({ quick }: Options) =>
  quick ? { repetitions: 1, pairs: 10, warmUp: 10 } : { repetitions: 9, pairs: 400, warmUp: 600 };

interface Compared {
  bareSdk: string;
  domain: string;
  terms: OverheadTask['terms'];
  cores?: number;
}

const LEASES: Compared = { bareSdk: 'bare-sdk.ts', domain: 'locks.domain.ts', terms: {} };

export async function compare(options: Options, { bareSdk, domain, terms, cores }: Compared): Promise<OverheadResult> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bare-'));
  const bundled = async (source: string): Promise<Bundles> => {
    const [acquire = '', release = ''] = CALLS.map((call) => join(folder, call, source));
    for (const target of [acquire, release]) await bundle(fileURLToPath(new URL(source, import.meta.url)), target);
    return { acquire: join(acquire, 'index.mjs'), release: join(release, 'index.mjs') };
  };
  try {
    const task: OverheadTask = {
      terms,
      bareSdk: await bundled(bareSdk),
      domain: await bundled(domain),
      ...samplesOf(options),
    };
    const script = new URL('leases.overhead.ts', import.meta.url);
    const conditions = cores === undefined ? {} : { cores };
    return await inWorker<OverheadTask, OverheadResult>(script, task, { ...options, ...conditions });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The service may take at most this many times the time of the bare SDK. */
const MAX_TO_FLOOR = { domain: 1.1, built: 1.2 };
const NAMES = { bare: 'bare SDK', domain: 'domain', built: 'built function' };

interface Judged {
  middle(samples: number[]): number;
  max: Partial<typeof MAX_TO_FLOOR>;
}

export function overheadFigures(repetitions: OverheadResult, { middle, max }: Judged): Figure[] {
  return CALLS.flatMap((call) =>
    (['bare', 'domain', 'built'] as const).map((name): Figure => {
      const figure = milliseconds(`${call}, ${NAMES[name]}`, repetitions.map((one) => one[name][call])); // biome-ignore format: one line
      if (name === 'bare') return figure;
      // The ratio of each repetition, so that other work of the machine affects both sides.
      const toFloor = median(repetitions.map((one) => middle(one[name][call]) / middle(one.bare[call])));
      const limit = max[name];
      return { ...figure, toFloor, ...(limit !== undefined && { bar: { measured: toFloor, max: limit } }) };
    }),
  );
}

/** How much a namespace may add to a call, in milliseconds. */
const MAX_OF_NAMESPACE_MS = 0.05;
const ROUTES: Record<NamespaceName, string> = {
  whole: 'route of the whole deployment, IAM',
  namespace: 'route of a namespace, IAM',
  token: 'route of a namespace, JWT with a list in its claim',
};

const namespaced: Measurement = {
  name: 'namespace',
  title: 'Acquire and release: what a namespace adds',
  method:
    'API Gateway events into dist/. On every route, a call is one PutItem or UpdateItem. Pairs as for `overhead`. A route adds the median, over all repetitions, of the difference of the medians',
  run: async (options) => {
    const script = new URL('leases.namespace.ts', import.meta.url);
    return namespaceFigures(await inWorker<NamespaceTask, NamespaceResult>(script, samplesOf(options), options));
  },
};

function namespaceFigures(repetitions: NamespaceResult): Figure[] {
  return CALLS.flatMap((call) =>
    (['whole', 'namespace', 'token'] as const).map((name): Figure => {
      const figure = milliseconds(`${call}, ${ROUTES[name]}`, repetitions.map((one) => one[name][call])); // biome-ignore format: one line
      if (name === 'whole') return figure;
      const added = median(repetitions.map((one) => median(one[name][call]) - median(one.whole[call])));
      const measured = Number(added.toFixed(3));
      return {
        ...figure,
        value: `${figure.value}, ${measured} ms more`,
        bar: { measured, max: MAX_OF_NAMESPACE_MS },
      };
    }),
  );
}

export const leaseMeasurements: Measurement[] = [overhead, throttled, namespaced];
