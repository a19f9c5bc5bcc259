import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { bundle } from '../build/bundle.ts';
import { readService, type TableDefinition } from '../infrastructure/read.ts';
import { createTables } from '../local/dynamodb.ts';
import { endsWithUs } from './children.ts';
import type { Scenario, Scenarios } from './contestants/scenarios.ts';
import { lambdaEnvironment } from './environment.ts';
import type { Options } from './measurement.ts';
import { startStack } from './stack.ts';

/** `ours`: this service; `floor`: the bare SDK; `npm`: what a Node user would pick; `other`: another language's; `form`: another algorithm, written for the bench. */
type Kind = 'ours' | 'floor' | 'npm' | 'other' | 'form';

export interface Entry {
  name: string;
  kind: Kind;
  /** Whether it goes on by itself when a holder crashes. What does not is shown, and it is not measured against. */
  expires: boolean;
  /** With the defaults of its documentation, and without the options that trust clocks. */
  byDefault: boolean;
  /** Waits until it gets the lock; the floor does not. */
  waits: boolean;
  /** Has a call that extends a lease. */
  beats: boolean;
  command: string[];
  /** Calls a local stack. */
  throughStack?: boolean;
  env?: Record<string, string>;
  /** The table, if it is not a table of Holdfast. */
  table?: { hash: string; range?: string; ttlAttribute?: string };
  /** What must be there for it to run, the program on the path, and what makes it. */
  needs?: { file: string; program?: string; how: string };
  /** The library's name and version, as installed. */
  library?: () => string;
}

const here = (path: string) => join(import.meta.dirname, path);
const node = process.execPath;
const lease = { expires: true, byDefault: true, waits: true, beats: false };

const installed = (module: string): string =>
  JSON.parse(readFileSync(here(`libraries/node_modules/${module}/package.json`), 'utf8')).version;

const npmLibrary = (
  name: string,
  env: Record<string, string>,
  { script, range, module }: { script: string; range: boolean; module: string },
): Entry => ({
  ...lease,
  name,
  kind: 'npm',
  command: [node, here(`libraries/${script}.mjs`)],
  env,
  table: range ? { hash: 'lockId', range: 'lockGroup' } : { hash: 'key' },
  needs: { file: here(`libraries/node_modules/${module}/package.json`), how: 'npm run verify -- bench-libraries' },
  library: () => `${module} ${installed(module)}`,
});
const lockClient = (name: string, env: Record<string, string>) =>
  npmLibrary(name, env, { script: 'dynamodb-lock-client', range: false, module: 'dynamodb-lock-client' });
const deliveryhero = (name: string, env: Record<string, string>) =>
  npmLibrary(name, env, { script: 'deliveryhero', range: true, module: '@deliveryhero/dynamodb-lock' });

/** In the order of the tables. `{bundled}` stands for the folder that the bundles of our own are put in. */
export const ENTRIES: Entry[] = [
  { ...lease, name: 'floor', kind: 'floor', waits: false, beats: true, command: [node, '{bundled}/floor/index.mjs'] },
  { ...lease, name: 'holdfast domain', kind: 'ours', beats: true, command: [node, '{bundled}/domain/index.mjs'] },
  { ...lease, name: 'holdfast', kind: 'ours', beats: true, command: [node, here('contestants/built.ts')] },
  {
    ...lease,
    name: 'holdfast over HTTP',
    kind: 'ours',
    beats: true,
    command: [node, here('contestants/http.ts')],
    throughStack: true,
  },
  lockClient('dynamodb-lock-client', { LOCK_KIND: 'FailOpen' }),
  {
    ...lockClient('dynamodb-lock-client, trusting clocks', { LOCK_KIND: 'FailOpen', TRUST_LOCAL_TIME: 'true' }),
    byDefault: false,
  },
  { ...lockClient('dynamodb-lock-client, never expiring', { LOCK_KIND: 'FailClosed' }), expires: false },
  deliveryhero('@deliveryhero/dynamodb-lock', {}),
  { ...deliveryhero('@deliveryhero/dynamodb-lock, polling', { TRUST_LOCAL_TIME: 'true' }), byDefault: false },
  {
    ...lease,
    name: 'Java amazon-dynamodb-lock-client',
    kind: 'other',
    beats: true,
    command: [
      'java',
      '-cp',
      here('libraries/java/target/contestant.jar:').concat(here('libraries/java/target/lib/*')),
      'holdfast.bench.Contestant',
    ],
    table: { hash: 'key' },
    needs: {
      file: here('libraries/java/target/contestant.jar'),
      program: 'java',
      how: 'npm run verify -- bench-libraries, with mvn and a JDK from 17',
    },
    library: () => {
      const jar = readdirSync(here('libraries/java/target/lib')).find((file) =>
        file.startsWith('dynamodb-lock-client-'),
      );
      return `Java amazon-${jar?.replace(/-([^-]*)\.jar$/, ' $1')}`;
    },
  },
  {
    ...lease,
    name: 'Rust dynamodb-lease',
    kind: 'other',
    command: [here('libraries/rust/target/release/dynamodb-lease-contestant')],
    table: { hash: 'key', ttlAttribute: 'lease_expiry' },
    needs: {
      file: here('libraries/rust/target/release/dynamodb-lease-contestant'),
      how: 'npm run verify -- bench-libraries, with cargo from 1.85',
    },
    library: () => {
      const lock = readFileSync(here('libraries/rust/Cargo.lock'), 'utf8');
      return `Rust dynamodb-lease ${/name = "dynamodb-lease"\nversion = "(.*)"/.exec(lock)?.[1]}`;
    },
  },
];

/** What the ratios are to: the npm library that does best, of those that go on when a holder crashes, by default. */
export function bestLibrary<Found>(found: Map<Entry, Found>, merit: (found: Found) => number): Entry | undefined {
  const comparable = [...found].filter(([entry]) => isComparable(entry));
  return comparable.toSorted(([, left], [, right]) => merit(right) - merit(left))[0]?.[0];
}

const isComparable = ({ kind, expires, byDefault }: Entry) => kind === 'npm' && expires && byDefault;
export const isThere = ({ needs }: Entry) =>
  !needs || (existsSync(needs.file) && (!needs.program || isOnPath(needs.program)));
const isOnPath = (program: string) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));

/** What cannot run here, each with the reason. */
export const absentees = (): string[] =>
  ENTRIES.filter((entry) => !isThere(entry)).map(({ name, needs }) => `${name}: left out; ${needs?.how} brings it`);

/** The libraries that can run here, with their versions. */
export const libraries = (): string[] => [
  ...new Set(ENTRIES.filter(isThere).flatMap(({ library }) => (library ? [library()] : []))),
];

/** A contestant's process. */
export interface Running extends Entry {
  /** @param settled called where the scenario says that what it does has settled */
  ask<Name extends Scenario>(
    scenario: Name,
    task: Scenarios[Name]['takes'],
    settled?: () => void,
  ): Promise<Scenarios[Name]['gives']>;
  /** For a process that is paused, and goes on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  stop(): Promise<void>;
}

export interface Arena {
  entries: Entry[];
  start(entry: Entry, env?: Record<string, string>): Promise<Running>;
}

/**
 * Tables and bundles for as long as `work` takes. Stops after it what it started. Quick: only the comparable ones of the npm libraries.
 * @param contestants other than those that take locks
 */
export async function withArena<T>(
  { dynamodbEndpoint, quick }: Pick<Options, 'dynamodbEndpoint' | 'quick'>,
  work: (arena: Arena) => Promise<T>,
  contestants = ENTRIES,
): Promise<T> {
  const { environment, tables } = await readService('bench');
  const entries = contestants.filter(
    (entry) => isThere(entry) && (!quick || entry.kind !== 'npm' || isComparable(entry)),
  );
  await createTables(dynamodbEndpoint, [...tables, ...entries.flatMap(peerTable)]);
  await mkdir(here('../dist'), { recursive: true });
  const bundled = await mkdtemp(here('../dist/contestants-')); // in the project, where source maps find their sources
  /** Also contestants that are starting: if one of them fails, the others are stopped too. */
  const started: Promise<{ stop(): Promise<void> }>[] = [];
  const stopped = <Part extends { stop(): Promise<void> }>(starting: Promise<Part>): Promise<Part> => {
    started.push(starting);
    return starting;
  };
  try {
    for (const own of new Set(entries.flatMap(bundledFrom)))
      await bundle(here(`contestants/${own}.ts`), join(bundled, own));
    return await work({
      entries,
      start: async (entry, env = {}) => {
        const endpoint = env.AWS_ENDPOINT_URL_DYNAMODB ?? dynamodbEndpoint;
        const own: Record<string, string> = { ...clientEnvironment(endpoint), ...env };
        if (entry.throughStack) own.HOLDFAST_URL = (await stopped(startStack(endpoint))).url;
        const command = entry.command.map((part) => part.replace('{bundled}', bundled));
        return stopped(run({ ...entry, command }, { ...environment, ...own }));
      },
    });
  } finally {
    for (const starting of started) // and what is added meanwhile; who started it was told if it did not come up
      await starting.then(
        (running) => running.stop(),
        () => {},
      );
    await rm(bundled, { recursive: true, force: true });
  }
}

/** The module in contestants/ whose bundle it runs. */
const bundledFrom = ({ command }: Entry): string[] =>
  command.flatMap((part) => /^\{bundled\}\/(.*)\/index\.mjs$/.exec(part)?.[1] ?? []);

const clientEnvironment = (dynamodbEndpoint: string) => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  ...lambdaEnvironment(dynamodbEndpoint),
});

/** Each kind of library has a table of its own, as its documentation asks for. */
const peerTableName = ({ name }: Entry) => `bench-${name.replace(/[^a-zA-Z-]+/g, '.')}`;

function peerTable(entry: Entry): TableDefinition[] {
  if (!entry.table) return [];
  const { hash, range, ttlAttribute } = entry.table;
  const names = range ? [hash, range] : [hash];
  const definition: TableDefinition['definition'] = {
    TableName: peerTableName(entry),
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
    KeySchema: names.map((AttributeName, at) => ({ AttributeName, KeyType: at === 0 ? 'HASH' : 'RANGE' })),
  };
  return [{ definition, ttlAttribute }];
}

async function run(entry: Entry, env: Record<string, string>): Promise<Running> {
  const [program = '', ...rest] = entry.command;
  const child = endsWithUs(
    spawn(program, rest, {
      // Functions log to standard output: making and writing the log is part of what is measured, keeping it is not.
      stdio: entry.kind === 'other' ? ['pipe', 'pipe', 'inherit'] : ['pipe', 'ignore', 'inherit', 'pipe'],
      env: { ...env, PEER_TABLE: peerTableName(entry), ...entry.env },
    }),
  );
  let failure: Error | undefined;
  child.on('error', (error) => {
    failure = error;
  });
  child.stdin?.on('error', () => {}); // The wait for the answer reports that the process has ended.
  const answers = messages(child, () => `${entry.name} ended: ${failure?.message ?? `exit code ${child.exitCode}`}`);
  await answers.next();
  return {
    ...entry,
    ask: async (scenario, task, settled = () => {}) => {
      child.stdin?.write(`${JSON.stringify({ scenario, ...task })}\n`);
      let { value } = await answers.next();
      if (value.settled) {
        settled();
        value = (await answers.next()).value;
      }
      if (value.error) throw new Error(`${entry.name}, ${scenario}: ${value.error}`);
      return value.result;
    },
    signal: (name) => void child.kill(name),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Its answers. @throws Error when the process ends, with what `why` then says */
async function* messages(
  child: ChildProcess,
  why: () => string,
): AsyncGenerator<{ result: never; error?: string; settled?: true }, never> {
  const input = child.stdio[3] ?? child.stdout;
  for await (const line of createInterface({ input: input as Readable })) yield JSON.parse(line);
  throw new Error(why());
}
