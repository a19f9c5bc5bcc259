import { execFile, spawn } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import { folderWithClient } from '../support/programs/client-package.ts';
import { startApi } from '../support/stack/api.ts';
import { allWorlds } from '../support/worlds/client-worlds.ts';

let api: Awaited<ReturnType<typeof startApi>>;
let client: Awaited<ReturnType<typeof folderWithClient>>;
const run = promisify(execFile);

beforeAll(async () => {
  client = await folderWithClient();
  await cp('examples/handlers', client.folder, { recursive: true });
  api = await startApi((await allWorlds()).handlers);
});
afterAll(async () => {
  await api.stop();
  await client.remove();
});

/** Starts an example in a process of its own, and collects what it prints. */
function start(file: string, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [join(client.folder, file)], {
    env: { ...process.env, HOLDFAST_ENDPOINT: api.url, NODE_NO_WARNINGS: '1', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed = text(child.stdout);
  return { child, lines: async () => (await printed).trim().split('\n') };
}

it('The examples of handlers compile under strict', { timeout: 120_000 }, async () => {
  const { stdout } = await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'examples']);
  expect(stdout).toBe('');
});

it('nightly.ts runs once at a time, and releases its lease when its task is stopped', {
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
