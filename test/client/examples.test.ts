import { execFile, spawn } from 'node:child_process';
import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { folderWithClient } from '../support/programs/client-package.ts';
import { startApi } from '../support/stack/api.ts';
import { aFew } from '../support/time/rounds.ts';
import { allWorlds } from '../support/worlds/client-worlds.ts';

let api: Awaited<ReturnType<typeof startApi>>;
let client: Awaited<ReturnType<typeof folderWithClient>>;

beforeAll(async () => {
  client = await folderWithClient();
  for (const part of ['client', 'handlers']) await cp(`examples/${part}`, client.folder, { recursive: true });
  api = await startApi((await allWorlds()).handlers);
});
afterAll(async () => {
  await api.stop();
  await client.remove();
});

const EXPECTED: Record<string, string[]> = {
  'nightly.mjs': ['second: first holds it', 'first: done', 'second: my turn'],
  'leader.mjs': ['first leads', 'second leads, with a higher fence: true', 'nobody leads'],
  'child.mjs': ['the child has a fence: true', 'it ended with 0'],
  'sharded.mjs': ['callers that had their turn: 12', 'ever more at work than the limit: false'],
  'commit.mjs': ['the fence of the earlier holder is refused: true'],
};

it('every example is tested here', async () => {
  const files = (await readdir('examples/client')).filter((file) => file.endsWith('.mjs'));
  expect(files.sort()).toEqual(Object.keys(EXPECTED).sort());
});

it.each(aFew(2, Object.entries(EXPECTED)))(
  'the example %s prints what it should, and ends by itself',
  async (file, lines) => {
    const run = promisify(execFile)(process.execPath, [join(client.folder, file), api.url], { timeout: 120_000 });
    const { stdout, stderr } = await run;
    expect({ lines: stdout.trim().split('\n'), stderr }).toEqual({ lines, stderr: '' });
  },
);

/** Starts an example in a process of its own, and collects what it prints. */
function start(file: string, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [join(client.folder, file)], {
    env: { ...process.env, HOLDFAST_ENDPOINT: api.url, NODE_NO_WARNINGS: '1', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed = text(child.stdout);
  return { child, lines: async () => (await printed).trim().split('\n') };
}

it('nightly.ts never runs twice at a time, and releases its lease when stopped', {
  timeout: 120_000,
}, async () => {
  const first = start('nightly.ts', { HOSTNAME: 'first', STEPS: '10000' });
  const holdfast = new Holdfast({ endpoint: api.url, holder: 'test' });
  await expect.poll(() => holdfast.readLease('nightly-report')).toMatchObject({ state: 'held', holder: 'first' });
  expect(await start('nightly.ts', { HOSTNAME: 'second' }).lines()).toEqual(['first is at it already']);
  first.child.kill('SIGTERM');
  expect(await first.lines()).toEqual(['writes the report, with a fence: true', 'stopped, and the lease is released']);
  expect(await holdfast.readLease('nightly-report')).toMatchObject({ state: 'released' });
  expect(await start('nightly.ts').lines()).toEqual(['writes the report, with a fence: true', 'the report is written']);
});

it('the example invoke.ts shows the answers of the handlers', { timeout: 120_000 }, async () => {
  const [http, standard, fifo] = (await start('invoke.ts').lines())
    .join('\n')
    .split(/^a .* queue, .*\n/m)
    .map((part) => part.trim().split('\n').sort());
  expect(http).toEqual(['the first request: 200', 'the second request: 409, retry-after: true']);
  expect(standard).toEqual([
    'again: 2: the amount must be positive',
    'again: 4: LeaseHeld',
    ...['booked 10 for a', 'booked 20 for a', 'booked 40 for c'].map((line) => `${line}, with a fence: true`),
    '{"batchItemFailures":[{"itemIdentifier":"2"}]}',
    '{"batchItemFailures":[{"itemIdentifier":"4"}]}',
  ]);
  expect(fifo).toEqual([
    'again: 7: the amount must be positive',
    'booked 1 for a, with a fence: true',
    '{"batchItemFailures":[{"itemIdentifier":"7"},{"itemIdentifier":"8"}]}',
  ]);
});
