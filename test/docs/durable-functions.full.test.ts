import { type ChildProcess, spawn } from 'node:child_process';
import { cp, readFile, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { freePort } from '../../local/ports.ts';
import { folderWithClient } from '../support/programs/client-package.ts';
import { runExamples } from '../support/programs/examples.ts';

const client = await folderWithClient();
let stack: ChildProcess | undefined;
afterAll(async () => {
  stack?.kill('SIGTERM');
  await client.remove();
});

/** `npm start -- --durable examples/durable/order.ts`, with the example beside an installed client. */
async function startStack() {
  const names = ['PORT', 'DYNAMODB_PORT', 'S3_PORT', 'SFN_PORT', 'LAMBDA_PORT'] as const;
  const ports: Record<string, string> = {};
  for (const name of names) ports[name] = String(await freePort());
  const api = `http://127.0.0.1:${ports.PORT}`;
  await cp('examples/durable/order.ts', join(client.folder, 'order.ts'));
  await symlink(resolve('node_modules/@aws'), join(client.folder, 'node_modules/@aws'));
  const args = ['local/start.ts', '--memory', '--durable', join(client.folder, 'order.ts')];
  // Without the variables that this test's own functions have.
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    ...ports,
    HOLDFAST_ENDPOINT: api,
    NODE_NO_WARNINGS: '1',
  };
  stack = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  stack.stdout?.on('data', (chunk) => {
    printed += chunk;
  });
  await expect.poll(() => printed, { timeout: 30_000 }).toContain('Ctrl-C stops it.');
  expect(printed).toContain(`Durable         http://127.0.0.1:${ports.LAMBDA_PORT}`);
  return { api, lambda: `http://127.0.0.1:${ports.LAMBDA_PORT}` };
}

it('The commands of docs/durable-functions.md give the answers that the page shows', { timeout: 90_000 }, async () => {
  const { api, lambda } = await startStack();
  const page = (await readFile('docs/durable-functions.md', 'utf8')).replaceAll('http://127.0.0.1:8084', lambda);
  expect(await runExamples(page, api)).toBe(11);
});
