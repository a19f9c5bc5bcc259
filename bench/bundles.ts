import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { bundle } from '../build/bundle.ts';
import { sizeOf } from '../build/sizes.ts';
import { readService } from '../infrastructure/read.ts';
import { createTables } from '../local/dynamodb.ts';
import { startEventBus } from '../local/event-bus.ts';
import { freePort } from '../local/ports.ts';
import { createBuckets, startS3 } from '../local/s3.ts';
import { coldCases, WITHOUT_CLIENTS } from './cold.cases.ts';
import { limitCpu } from './cpu-limit.ts';
import { lambdaEnvironment } from './environment.ts';
import { gatewayEvent } from './functions.ts';
import {
  type Bar,
  each,
  type Figure,
  type Measurement,
  median,
  milliseconds,
  type Options,
  ratio,
  shuffle,
} from './measurement.ts';

export interface Contest {
  name: string;
  built: string;
  /** The folder with a bundle of the SDK alone. */
  bare: string;
}

const LINE: Bar['excuse'] = {
  upTo: 1.55,
  why: 'the zip of acquire contains the line and both kinds of lock, and a plain acquire does not load most of them',
};

const size: Measurement = {
  name: 'size',
  title: 'Bundle size, and its ratio to the clients alone with the same commands',
  method:
    'Minified, with the same build options. *Loaded*: the files that importing index.mjs loads, with their gzip size in brackets. *All*: the whole zip, uncompressed',
  run: () =>
    withContests(async (contests) => {
      const figures = contests.map(async ({ name, built, bare }): Promise<Figure[]> => {
        const [ours, alone] = [await sizeOf(built), await sizeOf(bare)];
        const kilobytes = (bytes: number) => (bytes / 1000).toFixed(0);
        const value = `${kilobytes(ours.loaded)} (${kilobytes(ours.loadedGzip)}) / ${kilobytes(ours.all)} kB`;
        return [
          { what: `${name}, loaded / all`, value, median: ours.loaded / 1000, unit: 'kB', n: 1 },
          ratio(`${name} loaded ratio`, [ours.loaded / alone.loaded], { max: 1.45 }),
          ratio(`${name} all ratio`, [ours.all / alone.all], {
            max: 1.45,
            ...(name === 'acquire' && { excuse: LINE }),
          }),
        ];
      });
      return (await Promise.all(figures)).flat();
    }),
};

/** These functions of the nameservice may start more slowly than others. */
const NAMESERVICE_STARTS: Record<string, Bar['excuse']> = {
  publish: {
    upTo: 1.5,
    why: 'the function loads the schemas and rules of eleven operations. One function for each would be eleven to deploy',
  },
  repairNames: {
    upTo: 1.5,
    why: 'the schemas and rules of the nameservice add a third to the 184 kB of the clients alone',
  },
};

const coldStart: Measurement = {
  name: 'cold',
  title: 'Cold start: import, and import with the first answer, next to the clients alone with the same commands',
  method:
    'In fresh Node processes, in pairs of random order. *Import* ends after import() of index.mjs, *first answer* after the answer to a first API Gateway event. The clients alone send the same requests. Ratios are medians of the pairs',
  run: (options) => withContests((contests) => withStores(options, (env) => coldFigures(contests, env, options))),
};

interface Start {
  importMs: number;
  answerMs: number;
  /** The largest resident set of the process after its answer, in KiB. */
  peakKb: number;
}
export type Side = 'built' | 'bare';

async function coldFigures(contests: Contest[], env: Environment, { quick, progress }: Options): Promise<Figure[]> {
  const rounds = quick ? 1 : 21;
  const samples = contests.map((contest) => ({ contest, pairs: [] as Record<Side, Start>[] }));
  for (let round = 1; round <= rounds; round++) {
    progress(`cold start: round ${round} of ${rounds}`);
    for (const { contest, pairs } of shuffle([...samples])) {
      const pair: Partial<Record<Side, Start>> = {};
      for (const side of shuffle<Side>(['built', 'bare'])) pair[side] = await timeStart(contest, side, { env });
      pairs.push(pair as Record<Side, Start>);
    }
  }
  return samples.flatMap(({ contest: { name }, pairs }) => {
    const excuse = NAMESERVICE_STARTS[name];
    return [
      ...compared(`${name} import`, pairs, { of: 'importMs', bar: { max: 1.3, ...(excuse && { excuse }) } }),
      ...compared(`${name} first answer`, pairs, { of: 'answerMs', bar: { max: 1.25, ...(excuse && { excuse }) } }),
    ];
  });
}

function compared(
  what: string,
  pairs: Record<Side, Start>[],
  { of, bar }: { of: 'importMs' | 'answerMs'; bar: Omit<Bar, 'measured'> },
): Figure[] {
  const figure = milliseconds(what, each(pairs.map(({ built }) => built[of])));
  const alone = median(pairs.map(({ bare }) => bare[of]));
  // Compares neighbours in time, so that other work of the machine affects both.
  const ratios = pairs.map(({ built, bare }) => built[of] / bare[of]);
  return [{ ...figure, value: `${figure.value} / ${alone.toFixed(1)} alone` }, ratio(`${what} ratio`, ratios, bar)];
}

/** The program that --eval runs. It begins when standard input ends. It answers on standard error, because functions log to standard output. */
const COLD_START = `
  import { readFileSync, readSync } from 'node:fs';
  console.error('ready');
  readSync(0, Buffer.alloc(1));
  const [bundle, event] = process.argv.slice(1);
  const context = { functionName: 'bench', invokedFunctionArn: 'arn:aws:lambda:us-east-1:000000000000:function:bench:HTTP', awsRequestId: 'bench', getRemainingTimeInMillis: () => 10_000 };
  const given = JSON.parse(event);
  const startedAt = performance.now();
  const { handler, first } = await import(bundle);
  const importedAt = performance.now();
  await (handler ? handler(given, context) : first());
  const answeredAt = performance.now();
  // Not with getrusage, which also counts the memory of the parent process at the fork.
  const [, peakKb] = /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'));
  console.error(JSON.stringify({ importMs: importedAt - startedAt, answerMs: answeredAt - startedAt, peakKb: Number(peakKb) }));
  process.exit(0);
`;

type Environment = Record<string, string>;

/** @param cores how much processor time the import gets. Node.js starts with a whole core, because its start is the same for both sides */
export async function timeStart(
  contest: Contest,
  side: Side,
  { env, cores }: { env: Environment; cores?: number },
): Promise<Start> {
  const { payload, method } = coldCases(`cold-${randomUUID()}`)[contest.name] ?? { payload: {} };
  const event = JSON.stringify(gatewayEvent(contest.name, payload, method));
  const bundle = join(contest[side], 'index.mjs');
  const args = ['--input-type=module', '--eval', COLD_START, bundle, event];
  const running = promisify(execFile)(process.execPath, args, { env });
  const { child } = running;
  const isReady = once(child.stderr as Readable, 'data');
  await Promise.race([isReady, running]);
  const unlimited = cores === undefined ? undefined : limitCpu(child.pid as number, cores);
  child.stdin?.end();
  try {
    const { stderr } = await running;
    return JSON.parse(stderr.trim().split('\n').at(-1) ?? '');
  } finally {
    unlimited?.();
  }
}

/** Creates the tables and the bucket of serverless.yml. @returns the environment of a function that uses them */
export async function withStores<T>(
  { dynamodbEndpoint }: Options,
  measure: (env: Environment) => Promise<T>,
): Promise<T> {
  const { environment, tables, buckets } = await readService('bench');
  await createTables(dynamodbEndpoint, tables);
  const objects = await startS3(await freePort());
  const bus = await startEventBus(() => {});
  try {
    await createBuckets(objects.endpoint, buckets);
    return await measure({
      ...environment,
      ...lambdaEnvironment(dynamodbEndpoint),
      AWS_ENDPOINT_URL_S3: objects.endpoint,
      AWS_ENDPOINT_URL_EVENTBRIDGE: bus.endpoint,
    });
  } finally {
    await bus.stop();
    await objects.stop();
  }
}

/** Builds the bundles that the functions are compared with, and deletes them after `measure`. @param maxCount how many functions, by default all */
export async function withContests(
  measure: (contests: Contest[]) => Promise<Figure[]>,
  maxCount = Number.POSITIVE_INFINITY,
): Promise<Figure[]> {
  const { functions } = await readService();
  const root = await mkdtemp(join(resolve('dist'), 'bare-')); // inside the project, so that modules are found
  try {
    const cases = coldCases('');
    const compared = functions.filter(({ name }) => !WITHOUT_CLIENTS.includes(name)).slice(0, maxCount);
    const contests = compared.map(async ({ name, bundle: built }): Promise<Contest> => {
      const { bare, later } = cases[name] ?? {};
      if (!bare) throw new Error(`bench/cold.cases.ts does not know which commands ${name} sends`);
      return { name, built: resolve(built), bare: await bareBundle(root, name, { source: bare, later }) };
    });
    return await measure(await Promise.all(contests));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

interface Sources {
  source: string;
  /** What the function loads later. */
  later?: string | undefined;
}

async function bareBundle(root: string, name: string, { source, later }: Sources): Promise<string> {
  const folder = join(root, name);
  if (later) await writeFile(`${folder}.later.ts`, later);
  const loads = later ? `export const later = () => import('./${name}.later.ts');\n` : '';
  await writeFile(`${folder}.ts`, source + loads);
  await bundle(`${folder}.ts`, folder);
  return folder;
}

export const bundleMeasurements: Measurement[] = [size, coldStart];
