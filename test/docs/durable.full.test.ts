import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import { REGION } from '../../infrastructure/logical-ids.ts';
import { startDurableFunctions } from '../../local/durable/start.ts';
import { freePort } from '../../local/ports.ts';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { has, PYTHON } from '../support/programs/callers.ts';
import { folderWithClient } from '../support/programs/client-package.ts';
import { runExamples } from '../support/programs/examples.ts';
import { startApi } from '../support/stack/api.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };
const isThere = await has(PYTHON, '-c', 'import aws_durable_execution_sdk_python');
const whySkipped = isThere ? '' : ' (skipped: .ci/run installs its SDK into .venv)';
const [, example = ''] = /^```python\n(.*?)^```/ms.exec(await readFile('docs/durable-functions.md', 'utf8')) ?? [];

/** Invokes the handler for each request, as Lambda does. */
const SERVER = `
import json, sys, types
from http.server import BaseHTTPRequestHandler, HTTPServer
from example import handler

class Invoke(BaseHTTPRequestHandler):
    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["content-length"])))
        context = types.SimpleNamespace(aws_request_id="1", function_name="billing", function_version="$LATEST",
            invoked_function_arn="arn:aws:lambda:us-east-1:000000000000:function:billing", tenant_id=None,
            client_context=None, identity=None, get_remaining_time_in_millis=lambda: 60000)
        body = json.dumps(handler(event, context)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", int(sys.argv[1])), Invoke).serve_forever()
`;

describe.skipIf(!isThere)(`The Python example of docs/durable-functions.md${whySkipped}`, { timeout: 60_000 }, () => {
  let folder = '';
  let python: ChildProcess | undefined;
  let url = '';
  let functions: Awaited<ReturnType<typeof startDurableFunctions>>;
  let api: Awaited<ReturnType<typeof startApi>>;
  let holdfast: Holdfast;

  /** @param program the example, or a variant of it */
  async function start(program: string): Promise<void> {
    python?.kill();
    await writeFile(join(folder, 'example.py'), program);
    await writeFile(join(folder, 'server.py'), SERVER);
    const port = String(await freePort());
    url = `http://127.0.0.1:${port}`;
    python = spawn(PYTHON, ['-B', 'server.py', port], {
      cwd: folder,
      env: {
        ...{ PATH: process.env.PATH, API: api.url, AWS_ENDPOINT_URL_LAMBDA: functions.endpoint, AWS_REGION: REGION },
        ...{ AWS_DEFAULT_REGION: REGION, AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local' },
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const answers = () =>
      fetch(url).then(
        () => true,
        () => false,
      );
    await expect.poll(answers, { timeout: 20_000 }).toBe(true);
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-durable-python-'));
    const invoke = async (event: unknown) => {
      const answer = await fetch(url, { method: 'POST', body: JSON.stringify(event) });
      return answer.json();
    };
    functions = await startDurableFunctions(
      { dispatch: () => {} },
      { handlers: { billing: async () => invoke as never }, port: 0 },
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
    python?.kill();
    await functions?.stop();
    await api?.stop();
    await rm(folder, { recursive: true });
  });

  const run = (tenant: string) => functions.service.start('billing', JSON.stringify({ tenant }));
  const stateOf = async (tenant: string) => (await holdfast.readLease(`tenant/${tenant}`)).state;

  it('the Python example waits suspended, holds the lease over its wait, and releases the lease after the work', async () => {
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

  it('the Python example would release the lease at its wait if it had `finally`, before the work has ended', async () => {
    const wrong = example
      .replace(/ {4}except Exception:.*\n.*\n {8}raise\n/, '    finally:\n        ctx.step(release, name="release")\n')
      .replace(/\n {4}ctx\.step\(release, name="release"\)\n {4}return charged/, '\n    return charged')
      .replace('from_seconds(1)', 'from_seconds(3)');
    expect(wrong).toContain('finally');
    await start(wrong);
    const execution = run('b');
    await expect.poll(() => stateOf('b'), { timeout: 20_000 }).toBe('released');
    expect(execution.status).toBe('RUNNING');
    await execution.ended;
  });
});

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
