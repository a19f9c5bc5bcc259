import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

const env = { HOLDFAST_ENDPOINT: api.url };
const OPENED = 'Debugger listening';

it('a signal that would open the debugger of Node ends a verb that does not pass it on', async () => {
  const { child, exited, stdout } = cli.start(['watch', 'debug/watched'], { env });
  await expect.poll(stdout).toContain('debug/watched: no record');
  child.kill('SIGUSR1');
  const { code, stderr } = await exited;
  expect([code, stderr]).toEqual([138, '']);
});

it('a debugger that Node has opened before the command could listen is closed, and the signal counts', async () => {
  // As early as a signal can be, and Node has answered it before any line of the command runs.
  const early = join(cli.folder, 'early.cjs');
  await writeFile(
    early,
    `process.kill(process.pid, 'SIGUSR1');
const inspector = require('node:inspector');
while (inspector.url() === undefined) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);`,
  );
  const lease = await holdfast.acquire('debug/early');
  const args = ['run', 'debug/early', '--wait', 'forever', '--', 'echo', 'never'];
  const { code, stdout, stderr } = await cli.start(args, { env: { ...env, NODE_OPTIONS: `--require=${early}` } })
    .exited;
  expect([code, stdout]).toEqual([138, '']);
  expect(stderr).toContain(OPENED); // by Node, which is what this test is about
  expect(await holdfast.readLease('debug/early')).toMatchObject({ state: 'held', waiting: 0 });
  await lease.release();
});

it('a debugger that the user asks for stays', async () => {
  const { child, exited, stderr } = cli.start(['watch', 'debug/wanted'], {
    env: { ...env, NODE_OPTIONS: '--inspect=127.0.0.1:0' },
  });
  await expect.poll(stderr).toContain(OPENED);
  const [, address = ''] = /ws:\/\/([^/]+)/.exec(stderr()) ?? [];
  await new Promise((resolve) => setTimeout(resolve, 300)); // it would have been closed by then
  expect((await fetch(`http://${address}/json/version`)).ok).toBe(true);
  child.kill('SIGTERM');
  await exited;
});
