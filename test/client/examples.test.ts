import { execFile } from 'node:child_process';
import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { folderWithClient } from '../support/programs/client-package.ts';
import { startApi } from '../support/stack/api.ts';
import { allWorlds } from '../support/worlds/client-worlds.ts';

let api: Awaited<ReturnType<typeof startApi>>;
let client: Awaited<ReturnType<typeof folderWithClient>>;

beforeAll(async () => {
  client = await folderWithClient();
  await cp('examples/client', client.folder, { recursive: true });
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

it('there is no other example', async () => {
  const files = (await readdir('examples/client')).filter((file) => file.endsWith('.mjs'));
  expect(files.sort()).toEqual(Object.keys(EXPECTED).sort());
});

it.each(Object.entries(EXPECTED))('the example %s prints what it should, and ends by itself', async (file, lines) => {
  const run = promisify(execFile)(process.execPath, [join(client.folder, file), api.url], { timeout: 120_000 });
  const { stdout, stderr } = await run;
  expect({ lines: stdout.trim().split('\n'), stderr }).toEqual({ lines, stderr: '' });
});
