import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { systemClock as clock } from '../../shared/surroundings/clock.ts';
import { call as callOf } from '../support/emulators/aws.ts';
import { cuttable } from '../support/faults/cuttable.ts';
import { builtCli } from '../support/programs/cli.ts';
import { startApi } from '../support/stack/api.ts';
import { isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld({ clock });
const [api, cli] = await Promise.all([startApi(world.handlers), builtCli()]);
afterAll(() => Promise.all([api.stop(), cli.remove()]));
const holdfast = new Holdfast({ endpoint: api.url, holder: 'the other' });

const env = { HOLDFAST_ENDPOINT: api.url };
const start = (...args: string[]) => cli.start(args, { env });
const call = (...args: string[]) => cli.call(args, { env });
const rows = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
const OPERATOR = 'arn:aws:sts::123456789012:assumed-role/Operator/ann';
const EXECUTION = 'arn:aws:states:eu-west-1:123456789012:execution:nightly:run-42';

/** A call that waits for a key, as a waiter that never gives up. */
const waits = (key: string) => start('run', key, '--holder', 'waits', '--wait', 'forever', '--', 'true');

describe('holdfast status', () => {
  const keysOf = async (...args: string[]) => {
    const { code, stdout, stderr } = await call('status', ...args, '--json');
    expect(code, stderr).toBe(0);
    return stdout.split('\n').flatMap((line) => (line ? [JSON.parse(line).key] : []));
  };

  it('holdfast status lists keys in use, and with --all also those that were released', async () => {
    await using held = await holdfast.acquire('active/held', { ttlSeconds: 600 });
    await using ending = await holdfast.acquire('active/ending', { ttlSeconds: 600 });
    await holdfast.breakLease({ key: ending.key, fence: ending.fence, wait: true });
    await call('acquire', 'active/expired', '--ttl', '2');
    await (await holdfast.acquire('active/released')).release();
    await expect.poll(() => holdfast.readLease('active/expired')).toMatchObject({ state: 'expired' });
    const active = ['active/ending', 'active/expired', 'active/held'];
    const { stdout } = await call('status', 'active/');
    const [head, ...lines] = rows(stdout);
    expect(head).toEqual(['KEY', 'STATE', 'USED', 'HOLDER', 'FENCE', 'HELD', 'ENDS', 'WAITING']);
    expect(lines.map(([key]) => key)).toEqual(active);
    expect(lines.map(([, state]) => state)).toEqual(['ending', 'expired', 'held']);
    expect(lines[1]?.[6]).toMatch(/^\d+s ago$/);
    expect(lines[2]?.slice(2, 7)).toEqual([
      '-',
      'the other',
      String(held.fence),
      expect.stringMatching(/^\d+s$/),
      expect.stringMatching(/^in (9m \d+s|10m)$/),
    ]);
    expect((await keysOf('active/')).sort()).toEqual(active);
    expect((await keysOf('active/', '--state', 'active')).sort()).toEqual(active);
    expect(await keysOf('active/', '--state', 'released')).toEqual(['active/released']);
    expect((await keysOf('active/', '--all')).sort()).toEqual([...active, 'active/released']);
    // A key that does not expire comes last.
    expect((await keysOf('active/', '--all', '--sort', 'expiry')).at(-1)).toBe('active/released');
    expect(await call('status', '--all', '--state', 'held')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('holdfast: --all and --state exclude each other\n'),
    });
  });

  it.runIf(isFull)('holdfast status sorts by longest held and longest line, and shows the first few', async () => {
    await using _ = await holdfast.acquire('sort/c', { ttlSeconds: 60, limit: 2, holder: 'first' });
    await using __ = await holdfast.acquire('sort/b', { ttlSeconds: 900 });
    await using ___ = await holdfast.acquire('sort/a', { ttlSeconds: 600 });
    await using ____ = await holdfast.acquire('sort/c', { ttlSeconds: 20, limit: 2, holder: 'ends first' });
    const waiting = waits('sort/b');
    await until(async () => (await holdfast.readLease('sort/b')).waiting).toBe(1);
    const orders = {
      key: ['sort/a', 'sort/b', 'sort/c'],
      expiry: ['sort/c', 'sort/a', 'sort/b'],
      held: ['sort/c', 'sort/b', 'sort/a'],
      waiting: ['sort/b', 'sort/a', 'sort/c'],
    };
    for (const [sort, expected] of Object.entries(orders)) {
      expect(await keysOf('sort/', '--sort', sort)).toEqual(expected);
      expect(await keysOf('sort/', '--sort', sort, '--limit', '2')).toEqual(expected.slice(0, 2));
      const { stdout, stderr } = await call('status', 'sort/', '--sort', sort, '--limit', '2');
      expect(rows(stdout).map(([key]) => key)).toEqual(['KEY', ...expected.slice(0, 2)]);
      expect(stderr).toBe('holdfast: more keys match than the first 2\n');
      expect((await call('status', 'sort/', '--sort', sort, '--limit', '3')).stderr).toBe('');
    }
    const [, longestHeld] = rows((await call('status', 'sort/', '--sort', 'held')).stdout);
    expect(longestHeld).toEqual(expect.arrayContaining(['sort/c', '2 of 2', 'first and 1 more']));
    expect((await call('status', '--kind', 'commit')).code).toBe(64);
    for (const limit of ['0', '1001', 'all']) expect((await call('status', '--limit', limit)).code).toBe(64);
    waiting.child.kill('SIGTERM');
    await waiting.exited;
  });

  it('holdfast status --watch prints each change, even after a pause of the service', async () => {
    const proxy = await cuttable(api.url);
    const watched = (...more: string[]) =>
      cli.start(['status', 'watched/', '--watch', '--interval', '0.1', ...more], {
        env: { HOLDFAST_ENDPOINT: proxy.url },
      });
    const [table, json] = [watched(), watched('--json')];
    await until(table.stdout).toMatch(/^\S+Z\nKEY .*\n\n$/);
    await until(json.stdout).toMatch(/^\{"at":"\S+Z","leases":\[\]\}\n$/);
    const lease = await holdfast.acquire('watched/1', { ttlSeconds: 600 });
    const counts = () =>
      json
        .stdout()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).leases.length);
    await until(table.stdout).toMatch(/\n\n\S+Z\nKEY .*\nwatched\/1 +held .*\n\n$/);
    await until(counts).toEqual([0, 1]);
    await holdfast.heartbeat({ key: lease.key, leaseId: lease.leaseId });
    proxy.cut('breaks');
    await until(table.stderr).toMatch(/^(holdfast: .*\n)+$/);
    proxy.restore();
    await lease.release();
    await until(table.stdout).toMatch(/\n\n\S+Z\nKEY .*\n\n$/);
    await until(counts).toEqual([0, 1, 0]);
    for (const { child } of [table, json]) child.kill('SIGTERM');
    expect((await table.exited).stdout.match(/^KEY/gm)).toHaveLength(3);
    expect(await call('status', '--interval', '1')).toMatchObject({ code: 64 });
    await proxy.stop();
  });

  it.runIf(existsSync('/usr/bin/script'))('holdfast status --watch draws the list again at a terminal', async () => {
    await using _ = await holdfast.acquire('screen/1', { ttlSeconds: 600 });
    // util-linux's script makes a terminal.
    const typed = `stty rows 24; timeout 1.5 '${process.execPath}' '${cli.file}' status screen/ --watch --interval 0.2; true`;
    const { stdout } = await promisify(execFile)('script', ['-qec', typed, '/dev/null'], {
      env: { ...env, PATH: process.env.PATH, TERM: 'xterm' },
    });
    const screens = stdout.split('\u001b[H\u001b[2J').slice(1);
    expect(screens.length).toBeGreaterThan(1);
    for (const screen of screens) expect(screen).toContain('screen/1');
  });
});

describe('a key without a record', () => {
  it('queue and watch show a released key as free, but not an unknown key', async () => {
    const never = 'never seen';
    const state = 'no record (never used, or last used before the retention)';
    const nothing = `key      ${never}\nstate    ${state}\nwaiting  0\n`;
    expect(await call('queue', never)).toEqual({ code: 1, stdout: nothing, stderr: '' });
    expect((await call('watch', never, '--until', 'free')).stdout).toMatch(new RegExp(`Z {2}${never}: no record `));
    expect(JSON.parse((await call('queue', never, '--json')).stdout)).toMatchObject({
      state: 'free',
      hasRecord: false,
    });
    await (await holdfast.acquire('seen')).release();
    expect(await call('queue', 'seen')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^state +released$/m) });
    expect((await call('watch', 'seen', '--until', 'free')).stdout).toMatch(/Z {2}seen is released by the other\n$/);
  });
});

describe('holdfast watch --timeout', () => {
  it('holdfast watch --timeout exits with 75 if the key is held, else with 0', async () => {
    const lease = await holdfast.acquire('slow', { ttlSeconds: 600 });
    const watching = () => call('watch', 'slow', '--until', 'free', '--timeout', '0.3', '--interval', '0.1');
    const held = await watching();
    expect([held.code, held.stdout, held.stderr]).toEqual([75, expect.stringContaining('slow is held by'), '']);
    await lease.release();
    expect((await watching()).code).toBe(0);
  });

  it('holdfast watch --timeout exits with 69 if the service does not answer', async () => {
    const args = ['watch', 'slow', '--timeout', '0.2', '--endpoint', 'http://127.0.0.1:1'];
    expect((await call(...args)).code).toBe(69);
  });
});

describe('holdfast queue', () => {
  it('holdfast queue shows how long a caller has waited, and its deadline if any', async () => {
    await using _ = await holdfast.acquire('waited', { ttlSeconds: 600 });
    const waiting = waits('waited');
    await until(async () => (await holdfast.readLease('waited')).waiting).toBe(1);
    const line = async () => (await call('queue', 'waited')).stdout.split('\n\n')[1] ?? '';
    await until(line).toMatch(/^PLACE +KIND +HOLDER +WAITED +STATE +TICKET\n +1 +caller +waits +[1-9]s +- +\S+\n$/);
    waiting.child.kill('SIGTERM');
    await waiting.exited;
  });

  it.runIf(isFull)('holdfast queue shortens the ARN of an execution, except with --json', async () => {
    await using _ = await holdfast.acquire('execution', { holder: EXECUTION, data: { job: 1 } });
    await using __ = await holdfast.acquire('executions', { holder: EXECUTION, limit: 2 });
    for (const line of [/^holder +nightly:run-42$/m, /^data +\{"job":1\}$/m])
      expect((await call('queue', 'execution')).stdout).toMatch(line);
    expect((await call('queue', 'executions')).stdout).toMatch(/^nightly:run-42 +held /m);
    expect((await call('status', 'execution')).stdout).toMatch(
      /^execution .* nightly:run-42 .*\nexecutions .* nightly:run-42 /m,
    );
    expect((await call('watch', 'execution', '--until', 'held')).stdout).toContain(' is held by nightly:run-42, ');
    expect(JSON.parse((await call('queue', 'execution', '--json')).stdout)).toMatchObject({ holder: EXECUTION });
  });

  it('holdfast queue names who broke a lease and when, even after the next grant', async () => {
    const lease = await holdfast.acquire('broken', { ttlSeconds: 600 });
    const ann = callOf({ principal: OPERATOR });
    await world.breakLease({ key: 'broken', fence: lease.fence, wait: true }, ann);
    const broken = `^broken +\\S+Z \\(\\d+s ago\\) by ${OPERATOR}$`;
    const shown = async () => (await call('queue', 'broken')).stdout;
    expect(await shown()).toMatch(/^state +ending$/m);
    expect(await shown()).toMatch(new RegExp(broken, 'm'));
    await lease.release();
    expect(await shown()).toMatch(/^state +released$/m);
    expect(await shown()).toMatch(new RegExp(broken, 'm'));

    const again = await holdfast.acquire('broken', { ttlSeconds: 600 });
    const next = start('run', 'broken', '--holder', 'next', '--wait', 'forever', '--', 'sleep', '30');
    await until(async () => (await holdfast.readLease('broken')).waiting).toBe(1);
    await world.breakLease({ key: 'broken', fence: again.fence }, ann);
    await until(shown).toMatch(/^holder +next$/m);
    expect(await shown()).toMatch(
      new RegExp(`^previous +the other, broken \\S+Z \\(\\d+s ago\\) by ${OPERATOR}$`, 'm'),
    );
    expect(await shown()).not.toMatch(/^broken/m);
    next.child.kill('SIGTERM');
    await next.exited;
  });

  it('holdfast queue names who broke a permit, and when', async () => {
    await using lease = await holdfast.acquire('broken permit', { limit: 2, ttlSeconds: 600 });
    const [permit] = (await holdfast.readLease('broken permit')).holders;
    const { breakByFence } = await import('../../shared/locks/calls/break.ts');
    const request = { key: 'broken permit', fence: permit?.fence ?? 0, wait: true };
    await breakByFence(world.dependencies)(request, callOf({ principal: OPERATOR }));
    expect((await call('queue', 'broken permit')).stdout).toMatch(
      new RegExp(`^the other +ending .*\n\nthe other: broken \\S+Z \\(\\d+s ago\\) by ${OPERATOR}\n$`, 'm'),
    );
    expect(lease.key).toBe('broken permit');
  });
});
