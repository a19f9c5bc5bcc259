import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import { HeadObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { readService, renamed } from '../infrastructure/read.ts';
import { createTables } from '../local/dynamodb.ts';
import type { LambdaHandler } from '../local/lambda.ts';
import { freePort } from '../local/ports.ts';
import { createBuckets, startS3 } from '../local/s3.ts';
import { s3Client } from '../shared/aws/s3.ts';
import { systemClock } from '../shared/surroundings/clock.ts';
import { post } from '../test/support/stack/adapters.ts';
import { ObjectStoreWriter } from '../test/support/worlds/object-store.ts';
import { each, type Figure, inParts, type Measurement, milliseconds, ratio, statistics } from './measurement.ts';

interface CommitsMeasured {
  /** The requests of one commit without contention, by service and command. */
  calls: Record<CommitKind, string[]>;
  /** The milliseconds of each commit. Each round has one commit of each kind, one after the other. */
  times: Record<CommitKind | 'barePut', number[]>;
  /** How many compare-and-swap commits won in each turn of a second, if 16 writers commit to one path. */
  contended: { ours: number[]; rust: number[] };
}

type CommitKind = (typeof KINDS)[number];
const KINDS = ['native create', 'native swap', 'dynamo create', 'dynamo swap'] as const;

interface Options {
  dynamodbEndpoint: string;
  s3Endpoint: string;
  /** How many commits of each kind. */
  rounds: number;
  /** How many turns each of the two contended writers gets. */
  turns: number;
}

const WRITERS = 16;
const TURN_MS = 1000;

/** Measures all kinds in one run, in turn. Sets the environment of this process. */
async function benchCommits(options: Options): Promise<CommitsMeasured> {
  const { tables, environment } = await readService('bench');
  Object.assign(process.env, environment, {
    AWS_ENDPOINT_URL_DYNAMODB: options.dynamodbEndpoint,
    AWS_ENDPOINT_URL_S3: options.s3Endpoint,
    LOG_LEVEL: 'SILENT',
    METRICS_NAMESPACE: '',
  });
  const suffix = crypto.randomUUID();
  const table = `bench-commits-${suffix}`;
  const bucket = `bench-${suffix}`;
  const ours = tables.filter(({ kind }) => kind === 'commits');
  await createTables(
    options.dynamodbEndpoint,
    ours.map((each) => renamed(each, table)),
  );
  await createBuckets(options.s3Endpoint, [bucket]);
  Object.assign(process.env, { COMMITS_TABLE: table, BUCKET: bucket });

  const s3 = s3Client();
  const handlers = { native: await handler('native'), dynamo: await handler('dynamo') };
  const bench: Bench = { s3, bucket, table, handlers };
  const calls = await countCalls(bench, new URL(options.s3Endpoint).host);
  const times = await latencies(bench, options.rounds);
  return { calls, times, contended: await contention(bench, options.turns) };
}

interface Bench {
  s3: S3Client;
  bucket: string;
  table: string;
  handlers: Record<'native' | 'dynamo', LambdaHandler>;
}

/** A function reads its environment only when it is loaded. Another query in the path loads it again. */
async function handler(protocol: 'native' | 'dynamo'): Promise<LambdaHandler> {
  process.env.COMMIT_PROTOCOL = protocol;
  const bundle = new URL(`../dist/commits/commit/index.mjs?${protocol}`, import.meta.url);
  return ((await import(bundle.href)) as { handler: LambdaHandler }).handler;
}

async function commit(
  { handlers }: Bench,
  kind: CommitKind,
  { path, etag, body }: { path: string; etag: string; body: string },
): Promise<string> {
  const [protocol, what] = kind.split(' ') as ['native' | 'dynamo', string];
  const condition = what === 'create' ? { ifNoneMatch: '*' } : { ifMatch: etag };
  const answer = await post(handlers[protocol], { path, ...condition, body });
  if (answer.outcome !== 'ok') throw new Error(`${kind}: ${JSON.stringify(answer.body)}`);
  return String(answer.body.etag);
}

async function barePut({ s3, bucket }: Bench, path: string): Promise<string> {
  const command = new PutObjectCommand({ Bucket: bucket, Key: path, Body: 'bare', IfNoneMatch: '*' });
  return (await s3.send(command)).ETag ?? '';
}

/** Counts requests in Node's own HTTP client, so that nothing stands between the function and the emulator. */
async function countCalls(bench: Bench, s3Host: string): Promise<CommitsMeasured['calls']> {
  const calls: Partial<CommitsMeasured['calls']> = {};
  for (const kind of KINDS) {
    const path = `calls/${kind}`;
    const etag = kind.endsWith('swap') ? await barePut(bench, path) : '';
    const seen: string[] = [];
    const note = (message: unknown) => {
      const { request } = message as { request: ClientRequest };
      const target = String(request.getHeader('x-amz-target') ?? '').replace(/.*\./, '');
      seen.push(request.getHeader('host') === s3Host ? `S3 ${request.method}` : `DynamoDB ${target}`);
    };
    subscribe('http.client.request.start', note);
    await commit(bench, kind, { path, etag, body: 'counted' });
    unsubscribe('http.client.request.start', note);
    calls[kind] = seen;
  }
  return calls as CommitsMeasured['calls'];
}

async function latencies(bench: Bench, rounds: number): Promise<CommitsMeasured['times']> {
  const times: Record<CommitKind | 'barePut', number[]> = {
    barePut: [],
    'native create': [],
    'native swap': [],
    'dynamo create': [],
    'dynamo swap': [],
  };
  const timed = async (kind: keyof typeof times, work: () => Promise<string>) => {
    const startedAt = performance.now();
    const etag = await work();
    times[kind].push(performance.now() - startedAt);
    return etag;
  };
  for (let round = 0; round < rounds; round++) {
    await timed('barePut', () => barePut(bench, `latency/bare/${round}`));
    for (const protocol of ['native', 'dynamo'] as const) {
      const path = `latency/${protocol}/${round}`;
      const etag = await timed(`${protocol} create`, () =>
        commit(bench, `${protocol} create`, { path, etag: '', body: 'one' }),
      );
      await timed(`${protocol} swap`, () => commit(bench, `${protocol} swap`, { path, etag, body: 'two' }));
    }
  }
  return times;
}

async function contention(bench: Bench, turns: number): Promise<CommitsMeasured['contended']> {
  const won = { ours: [] as number[], rust: [] as number[] };
  const { s3, bucket, table } = bench;
  const currentEtag = async (path: string) =>
    (await s3.send(new HeadObjectCommand({ Bucket: bucket, Key: path }))).ETag ?? '';
  const rust = new ObjectStoreWriter({ table, bucket, clock: systemClock });
  const writers = {
    ours: async (path: string, etag: string, body: string) =>
      (await post(bench.handlers.dynamo, { path, ifMatch: etag, body })).outcome === 'ok',
    rust: async (path: string, etag: string, body: string) => 'etag' in (await rust.update(path, body, etag)),
  };
  for (let turn = 0; turn < turns; turn++)
    for (const kind of ['ours', 'rust'] as const) {
      const path = `contended/${kind}/${turn}`;
      await barePut(bench, path);
      const endsAt = performance.now() + TURN_MS;
      let count = 0;
      await Promise.all(
        Array.from({ length: WRITERS }, async (_, writer) => {
          for (let tries = 0; performance.now() < endsAt; tries++)
            if (await writers[kind](path, await currentEtag(path), `${writer} ${tries}`)) count++;
        }),
      );
      won[kind].push(count);
    }
  return won;
}

const commits: Measurement = {
  name: 'commits',
  title: 'Commits: requests, latency next to a bare PutObject with If-None-Match, and one contended path',
  method:
    'The built function, whose log is silent, and the S3 emulator share a process, so latency is mostly the number of requests. Commits of each kind take turns. Contended: for a second at a time, 16 writers replace one object as fast as they can, in turns with as many of the Rust algorithm',
  run: async ({ quick, dynamodbEndpoint }) => {
    const objects = await startS3(await freePort());
    try {
      const endpoints = { dynamodbEndpoint, s3Endpoint: objects.endpoint };
      return figures(await benchCommits({ ...endpoints, rounds: quick ? 10 : 300, turns: quick ? 1 : 4 }));
    } finally {
      await objects.stop();
    }
  },
};

/** The most requests that a commit may send. */
const MAX_CALLS: Record<CommitKind, number> = {
  'native create': 1,
  'native swap': 2,
  'dynamo create': 3,
  'dynamo swap': 3,
};

function figures({ calls, times, contended }: CommitsMeasured): Figure[] {
  const bare = milliseconds('bare PutObject', inParts(times.barePut));
  const { ours, rust } = { ours: statistics(each(contended.ours)), rust: statistics(each(contended.rust)) };
  return [
    ...KINDS.map((kind) => ({
      what: `${kind}: requests`,
      value: String(calls[kind].length),
      unit: 'requests',
      n: 1,
      median: calls[kind].length,
      bar: { measured: calls[kind].length, max: MAX_CALLS[kind] },
    })),
    { ...bare, toFloor: 1 },
    ...KINDS.map((kind) => {
      const figure = milliseconds(kind, inParts(times[kind]));
      return { ...figure, toFloor: figure.median / bare.median };
    }),
    {
      ...{ what: 'contended, won in a second: built / Rust algorithm', unit: '/s' },
      ...{ value: `${ours.median} / ${rust.median}`, ...ours },
    },
    ratio(
      'contended ratio',
      contended.ours.map((won, turn) => won / Math.max(1, contended.rust[turn] ?? Number.NaN)),
    ),
  ];
}

export const commitMeasurements: Measurement[] = [commits];
