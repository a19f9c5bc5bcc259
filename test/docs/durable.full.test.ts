import { type ChildProcess, spawn } from 'node:child_process';
import { cp, readFile, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { REGION } from '../../infrastructure/logical-ids.ts';
import { startDurableFunctions } from '../../local/durable/start.ts';
import { freePort } from '../../local/ports.ts';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { folderWithClient } from '../support/programs/client-package.ts';
import { runExamples } from '../support/programs/examples.ts';
import { hasDurablePython, pythonFunction } from '../support/programs/python-function.ts';
import { startApi } from '../support/stack/api.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };
const whySkipped = hasDurablePython ? '' : ' (skipped: .ci/run installs its SDK into .venv)';
const [, example = ''] = /^```python\n(.*?)^```/ms.exec(await readFile('docs/durable-functions.md', 'utf8')) ?? [];

describe.skipIf(!hasDurablePython)(
  `the Python example of docs/durable-functions.md${whySkipped}`,
  { timeout: 60_000 },
  () => {
    let python: Awaited<ReturnType<typeof pythonFunction>>;
    let functions: Awaited<ReturnType<typeof startDurableFunctions>>;
    let api: Awaited<ReturnType<typeof startApi>>;
    let holdfast: Holdfast;

    /** @param program the example, or a variant */
    const start = (program: string) => python.start(program, { api: api.url, lambda: functions.endpoint });

    beforeAll(async () => {
      python = await pythonFunction();
      functions = await startDurableFunctions(
        { dispatch: () => {} },
        { handlers: { billing: async () => python.invoke as never }, port: 0 },
      );
      const world = await leaseWorld({
        clock: systemClock,
        durableFunctions: async () =>
          durableFunctions({ endpoint: functions.endpoint, region: REGION, credentials: CREDENTIALS }),
        executions: { ...ANY_EXECUTION, durableFunctions: '*' },
      });
      api = await startApi(world.handlers);
      holdfast = new Holdfast({ endpoint: api.url, holder: 'test' });
    });
    afterAll(async () => {
      await python?.stop();
      await functions?.stop();
      await api?.stop();
    });

    const run = (tenant: string) => functions.service.start('billing', JSON.stringify({ tenant }));
    const stateOf = async (tenant: string) => (await holdfast.readLease(`tenant/${tenant}`)).state;

    it('the Python example suspends while it waits, and holds the lease over waits', async () => {
      await start(example);
      const before = await holdfast.acquire('tenant/a');
      const execution = run('a');
      await expect.poll(async () => (await holdfast.readLease('tenant/a')).waiting, { timeout: 20_000 }).toBe(1);
      await before.release();
      await expect.poll(() => stateOf('a')).toBe('held');
      await execution.ended;
      expect([execution.status, execution.result]).toEqual([
        'SUCCEEDED',
        expect.stringMatching(/^"charged under the fence \d+"$/),
      ]);
      expect(await stateOf('a')).toBe('released');
    });

    it('a Python function that waits in `with client.lease` loses its lease, as documented', async () => {
      const wrong = example
        .replace(
          /return with_lease\(.*\)$/m,
          'with client.lease(f"tenant/{event[\'tenant\']}") as lease:\n        return work(lease)',
        )
        .replace('from_seconds(1)', 'from_seconds(3)');
      expect(wrong).toContain('with client.lease');
      await start(wrong);
      const execution = run('b');
      await expect.poll(() => stateOf('b'), { timeout: 20_000 }).toBe('released');
      expect(execution.status).toBe('RUNNING');
      await execution.ended;
    });
  },
);

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
  // The command must not inherit the variables of the functions in this test.
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

it('the commands of docs/durable-functions.md give the answers that the page shows', { timeout: 90_000 }, async () => {
  const { api, lambda } = await startStack();
  const page = (await readFile('docs/durable-functions.md', 'utf8')).replaceAll('http://127.0.0.1:8084', lambda);
  expect(await runExamples(page, api)).toBe(11);
});
