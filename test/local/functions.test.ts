import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { Functions } from '../../local/functions.ts';
import { freePort } from '../../local/ports.ts';
import { isFull } from '../support/time/rounds.ts';

let stack: ChildProcess | undefined;
let folder = '';
afterAll(async () => {
  stack?.kill('SIGTERM');
  if (folder) await rm(folder, { recursive: true });
});

it('a function of the user cannot have the name of one of the service', () => {
  const acquire = { name: 'acquire', deployedName: 'holdfast-local-acquire', timeoutSeconds: 30, triggers: [] };
  const handler = async () => null;
  const named = (name: string) =>
    new Functions({ functions: [acquire] }, { acquire: handler }, { [name]: async () => handler });
  for (const name of ['acquire', 'holdfast-local-acquire'])
    expect(() => named(name)).toThrow(`--function ${name}: the service has a function of this name`);
  expect(named('order').find('arn:aws:lambda:us-east-1:000000000000:function:order')?.name).toBe('order');
});

it.runIf(isFull)(
  'the parked example of docs/step-functions.md succeeds on the local stack',
  { timeout: 60_000 },
  async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-functions-'));
    await cp('examples/step-functions', join(folder, 'examples/step-functions'), { recursive: true });
    const guide = await readFile('docs/step-functions.md', 'utf8');
    const [start = '', use = ''] = [...guide.matchAll(/^```bash\n(.*?)^```/gms)].map(([, block = '']) => block);
    const [file = '', command = ''] = start.split('\n');
    const paste = (script: string) => promisify(execFile)('bash', ['-euc', script], { cwd: folder });
    await paste(file);

    const { PATH, HOME } = process.env;
    const ports: Record<string, string> = {};
    for (const name of ['PORT', 'DYNAMODB_PORT', 'S3_PORT', 'SFN_PORT']) ports[name] = String(await freePort());
    const args = [resolve('local/start.ts'), '--memory', ...command.replace('npm start -- ', '').split(' ')];
    stack = spawn(process.execPath, args, { cwd: folder, env: { PATH, HOME, ...ports }, stdio: ['ignore', 'pipe', 2] });
    let printed = '';
    stack.stdout?.on('data', (chunk) => {
      printed += chunk;
    });
    await expect.poll(() => printed, { timeout: 30_000 }).toContain('Ctrl-C stops it.');

    const { stdout } = await paste(use.replaceAll('8083', String(ports.SFN_PORT)).replace('sleep 2', ''));
    const [, started = '', described = ''] = stdout.trim().split('\n');
    expect(JSON.parse(described).executionArn).toBe(JSON.parse(started).executionArn);
    const query =
      use.slice(use.indexOf('sfn()'), use.indexOf('functions=')) + use.slice(use.indexOf('sfn DescribeExecution'));
    const ended = async () => JSON.parse((await paste(query.replaceAll('8083', String(ports.SFN_PORT)))).stdout);
    await expect.poll(ended, { timeout: 20_000 }).toMatchObject({ status: 'SUCCEEDED', output: '{"done":7}' });
  },
);
