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

/** `ours`: this service. `floor`: the bare SDK. `npm`: a library for Node.js. `other`: one for another language. `form`: another algorithm, written here. */
type Kind = 'ours' | 'floor' | 'npm' | 'other' | 'form';

export interface Entry {
  name: string;
  kind: Kind;
  /** Whether it goes on by itself when a holder crashes. Others are shown, but no bar compares with them. */
  expires: boolean;
  /** Whether it runs with the defaults of its documentation, without options that trust clocks. */
  byDefault: boolean;
  /** Whether a call waits until it gets the lock. The floor does not. */
  waits: boolean;
  /** Whether it has a call that extends a lease. */
  beats: boolean;
  command: string[];
  /** Whether it calls a local stack. */
  throughStack?: boolean;
  env?: Record<string, string>;
  /** Its table, unless it uses a table of Holdfast. */
  table?: { hash: string; range?: string; ttlAttribute?: string };
  /** The file that it needs, the program on the path, and the command that makes the file. */
  needs?: { file: string; program?: string; how: string };
  /** The name of the library with the version that is installed. */
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

/** The contestants, in the order of the tables. `{bundled}` stands for the folder with our own bundles. */
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

/** Ratios compare with the best npm library, by default of those that go on when a holder crashes. */
export function bestLibrary<Found>(found: Map<Entry, Found>, merit: (found: Found) => number): Entry | undefined {
  const comparable = [...found].filter(([entry]) => isComparable(entry));
  return comparable.toSorted(([, left], [, right]) => merit(right) - merit(left))[0]?.[0];
}

const isComparable = ({ kind, expires, byDefault }: Entry) => kind === 'npm' && expires && byDefault;
export const isThere = ({ needs }: Entry) =>
  !needs || (existsSync(needs.file) && (!needs.program || isOnPath(needs.program)));
const isOnPath = (program: string) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));

/** The contestants that cannot run here, each with the reason. */
export const absentees = (): string[] =>
  ENTRIES.filter((entry) => !isThere(entry)).map(({ name, needs }) => `${name}: left out; ${needs?.how} brings it`);

/** The libraries that can run here, with their versions. */
export const libraries = (): string[] => [
  ...new Set(ENTRIES.filter(isThere).flatMap(({ library }) => (library ? [library()] : []))),
];

/** The process of a contestant. */
export interface Running extends Entry {
  /** @param settled called when the scenario says that it has settled */
  ask<Name extends Scenario>(
    scenario: Name,
    task: Scenarios[Name]['takes'],
    settled?: () => void,
  ): Promise<Scenarios[Name]['gives']>;
  /** To pause the process, and let it go on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  stop(): Promise<void>;
}

export interface Arena {
  entries: Entry[];
  start(entry: Entry, env?: Record<string, string>): Promise<Running>;
}

/**
 * Provides tables and bundles during `work`, and then stops what it has started. A quick run has only npm libraries that are comparable.
 * @param contestants by default those that take locks
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
  const bundled = await mkdtemp(here('../dist/contestants-')); // inside the project, so that source maps find their sources
  /** Even contestants that are still starting: if one of them fails, the others are stopped too. */
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
    for (const starting of started) // the loop also reaches contestants that are added while it waits. A failed start is an error of its own caller
      await starting.then(
        (running) => running.stop(),
        () => {},
      );
    await rm(bundled, { recursive: true, force: true });
  }
}

/** The module in contestants/ that the contestant runs as a bundle. */
const bundledFrom = ({ command }: Entry): string[] =>
  command.flatMap((part) => /^\{bundled\}\/(.*)\/index\.mjs$/.exec(part)?.[1] ?? []);

const clientEnvironment = (dynamodbEndpoint: string) => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  ...lambdaEnvironment(dynamodbEndpoint),
});

/** The tables that the libraries need, as their documentation says. */
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
      // Functions log to standard output. To make and write the log is part of the measurement, but to keep it is not.
      stdio: entry.kind === 'other' ? ['pipe', 'pipe', 'inherit'] : ['pipe', 'ignore', 'inherit', 'pipe'],
      env: { ...env, PEER_TABLE: peerTableName(entry), ...entry.env },
    }),
  );
  let failure: Error | undefined;
  child.on('error', (error) => {
    failure = error;
  });
  child.stdin?.on('error', () => {}); // `messages` reports the end of the process to the caller of `ask`
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

/** The answers of a process. @throws Error with the text of `why` when the process ends */
async function* messages(
  child: ChildProcess,
  why: () => string,
): AsyncGenerator<{ result: never; error?: string; settled?: true }, never> {
  const input = child.stdio[3] ?? child.stdout;
  for await (const line of createInterface({ input: input as Readable })) yield JSON.parse(line);
  throw new Error(why());
}
