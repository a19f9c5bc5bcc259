import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { listen } from '../../local/listen.ts';
import { DEFAULT_QUOTAS } from '../../shared/locks/dependencies.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { builtCli } from '../support/programs/cli.ts';
import { runnersOf } from '../support/programs/run.ts';
import { startApi } from '../support/stack/api.ts';
import { isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { lineWorld } from '../support/worlds/line.ts';

/** A service that does not hold calls, so that each caller in line sleeps. */
const world = await lineWorld({ clock: systemClock, quotas: { ...DEFAULT_QUOTAS, maxHeldCalls: 0 } });
const [stage, cli] = await Promise.all([startApi(world.handlers), builtCli()]);

/** The answered calls about each key, without reads. */
const calls = new Map<string, { path: string; ticket?: string; sleepMs?: number }[]>();
const callsOf = (key: string) => calls.get(key) ?? [];
const pathsOf = (key: string) => callsOf(key).map(({ path }) => path);

/** Callers of keys with this prefix sleep for half a minute, and their places are kept for longer. */
const LONG = 'long/';
const api = await listen(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = `${Buffer.concat(chunks)}`;
  const { key = '', ...sent } = body ? (JSON.parse(body) as { key?: string }) : {};
  const { method = 'GET', headers } = request;
  const type = { 'content-type': headers['content-type'] ?? 'application/json' };
  const answer = await fetch(`${stage.url}${request.url}`, { method, headers: type, ...(body && { body }) });
  const answered = (await answer.json()) as { comeBackMs?: number };
  if (answered.comeBackMs && key.startsWith(LONG)) answered.comeBackMs = 30_000;
  response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
  response.end(JSON.stringify(answered));
  if (body) calls.set(key, [...callsOf(key), { path: request.url?.split('/').at(-1) ?? '', ...sent }]);
});
afterAll(() => Promise.all([api.stop(), stage.stop(), world.steps.stop(), cli.remove()]));

const env = { HOLDFAST_ENDPOINT: api.url };
const holdfast = new Holdfast({ endpoint: stage.url, holder: 'the other' });
const lineOf = async (key: string) => (await holdfast.readLease(key, { waiters: true })).waiters ?? [];

describe.each(runnersOf(cli))('$name', (runner) => {
  it.each([
    ['run', 'SIGTERM', 143, ['--', 'echo', 'never']],
    ...(runner.isPython ? [] : ([['acquire', 'SIGINT', 130, []]] as const)),
  ] as const)(
    'holdfast %s withdraws its place by one call at %s while it sleeps',
    async (verb, signal, expected, rest) => {
      const key = `${LONG}${verb}/${runner.isPython}`;
      await using _ = await holdfast.acquire(key);
      const { child, exited } = runner.start([verb, key, '--wait', 'forever', ...rest], { env });
      await until(async () => (await lineOf(key)).length).toBe(1);
      await until(() => pathsOf(key)).toEqual(['acquire', 'acquire']);
      const [first, second] = callsOf(key);
      expect([first?.sleepMs, second?.sleepMs]).toEqual([undefined, 300_000]);
      await delay(300); // until the command has read the answer
      child.kill(signal);
      expect(await exited).toMatchObject({ code: expected, stdout: '' });
      expect(pathsOf(key)).toEqual(['acquire', 'acquire', 'withdraw']);
      expect(callsOf(key)[2]?.ticket).toMatch(/^\d{15}-/);
      expect(await lineOf(key)).toEqual([]);
    },
  );

  it.runIf(isFull)('holdfast run withdraws its place when its wait ends while it sleeps', async () => {
    const key = `${LONG}ends/${runner.isPython}`;
    await using _ = await holdfast.acquire(key);
    const { code, stderr } = await runner.start(['run', key, '--wait', '2', '--', 'echo', 'never'], { env }).exited;
    expect([code, stderr]).toEqual([75, expect.stringContaining('is held by the other since')]);
    expect(stderr).toMatch(/^holdfast: waiting since \S+ at position 1 of 1: \S+ is held by the other until /m);
    expect(pathsOf(key)).toEqual(['acquire', 'acquire', 'acquire', 'withdraw']);
    expect(await lineOf(key)).toEqual([]);
  });

  it('holdfast run sleeps until the lease is free, and runs the command', async () => {
    const key = `short/${runner.isPython}`;
    const lease = await holdfast.acquire(key);
    const { exited } = runner.start(['run', key, '--wait', 'forever', '--', 'echo', 'mine'], { env });
    await until(() => pathsOf(key).length).toBeGreaterThan(3);
    expect(
      new Set(
        callsOf(key)
          .slice(2)
          .map(({ ticket }) => ticket),
      ).size,
    ).toBe(1);
    await lease.release();
    expect(await exited).toMatchObject({ code: 0, stdout: 'mine\n' });
    expect(await lineOf(key)).toEqual([]);
  });
});

it('holdfast queue lists a sleeper after the others, and status counts it', async () => {
  const key = `${LONG}listed`;
  await using _ = await holdfast.acquire(key);
  const { child, exited } = cli.start(['run', key, '--holder', 'drowsy', '--wait', '1h', '--', 'true'], { env });
  await until(async () => (await lineOf(key)).length).toBe(1);
  await world.park({ key, holder: 'task', parkSeconds: 600 });
  const { stdout } = await cli.call(['queue', key], { env });
  expect(stdout.split('\n\n')[1]?.split('\n')).toEqual([
    expect.stringMatching(/^PLACE +KIND +HOLDER +WAITED +STATE +TICKET$/),
    expect.stringMatching(/^ +1 +task +task +\S+ +stops waiting in (9m \d+s|10m) +\S+$/),
    expect.stringMatching(/^ +2 +caller +drowsy +\S+ +asleep, due (in \d+s|\d+s ago) +\S+$/),
    '',
  ]);
  const { waiters } = JSON.parse((await cli.call(['queue', key, '--json'], { env })).stdout);
  expect(waiters).toMatchObject([{ dueAt: null }, { dueAt: expect.stringMatching(/^20\S+Z$/) }]);
  expect(Date.parse(waiters[1].deadline)).toBeGreaterThan(Date.parse(waiters[1].dueAt));
  expect((await cli.call(['status', key], { env })).stdout).toMatch(/ 2\n$/);
  child.kill('SIGTERM');
  await exited;
});
