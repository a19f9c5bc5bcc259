import { describe, expect, it } from 'vitest';
import { cuttable } from '../support/faults/cuttable.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli } = await cliWorld();

const NOBODY = { HOLDFAST_ENDPOINT: 'http://127.0.0.1:1' };
const REFUSED = 'holdfast: the connection failed: connect ECONNREFUSED 127.0.0.1:1 (http://127.0.0.1:1) [Unreachable]';

describe('where nobody listens', () => {
  it.each([
    ['status'],
    ['queue', 'k'],
    ['break', 'k', '--fence', '1'],
    ['report'],
    ['acquire', 'k'],
    ['run', 'k', '--', 'true'],
  ])('the command %s %s says once that it retries, if no service listens', async (...args) => {
    const { child, exited, stderr } = cli.start([args[0] ?? '', '--timeout', '600', ...args.slice(1)], { env: NOBODY });
    await expect.poll(stderr).toBe(`${REFUSED}: trying again\n`);
    child.kill('SIGTERM');
    expect((await exited).stderr).toBe(`${REFUSED}: trying again\n`);
  });

  it('the command retries no longer than --timeout says, and reports it once with --timeout 0', async () => {
    const { code, stderr } = await cli.call(['status', '--timeout', '0'], { env: NOBODY });
    expect([code, stderr]).toEqual([69, `${REFUSED}\n`]);
    const quiet = await cli.call(['status', '--timeout', '1', '--quiet'], { env: NOBODY });
    expect([quiet.code, quiet.stderr]).toEqual([69, `${REFUSED}\n`]);
  });

  it.each([
    ['status', '--timeout', '-1'],
    ['status', '--timeout', 'long'],
    ['doctor', '--timeout', '1'],
  ])('the command refuses %s %s %s', async (...args) => {
    expect((await cli.call(args, { env: NOBODY })).code).toBe(64);
  });
});

it('the command goes on if the service comes back', async () => {
  const proxy = await cuttable(api.url);
  proxy.cut('breaks');
  const { exited, stderr } = cli.start(['status', '--timeout', '600'], { env: { HOLDFAST_ENDPOINT: proxy.url } });
  await expect.poll(stderr).toContain('trying again');
  proxy.mend();
  expect((await exited).code).toBe(0);
  await proxy.stop();
});
