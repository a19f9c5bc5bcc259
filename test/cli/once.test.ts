import { describe, expect, it } from 'vitest';
import type { components } from '../../clients/typescript/src/index.ts';
import { cuttable } from '../support/faults/cuttable.ts';
import { runnersOf } from '../support/programs/run.ts';
import { isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

let keys = 0;
const freshKey = () => `once/${++keys}`;
const call = (...args: string[]) => cli.call(args, { env: { HOLDFAST_ENDPOINT: api.url } });

/** A case only for `holdfast run`: `python -m holdfast run` does not have `--also`. */
const ALSO_A_SLOT: [string[], string] = [['--slot', 'a', '--also', 'total=5'], '--slot and --also exclude each other'];

/** Reads a key with its result. */
const read = async (key: string) => (await holdfast.readOnce({ key })) as components['schemas']['OnceKey'];

describe.concurrent.each(runnersOf(cli))('$name', (runner) => {
  const start = (args: string[], env: Record<string, string> = {}) =>
    runner.start(['run', ...args], { env: { HOLDFAST_ENDPOINT: api.url, ...env } });
  const run = (...args: string[]) => start(args).exited;

  describe.concurrent('holdfast run --once-per', () => {
    it('holdfast run exits with 0 if the slot is done, and says by whom', async () => {
      const key = freshKey();
      const script = 'echo "$HOLDFAST_KEY $HOLDFAST_SLOT $HOLDFAST_FENCE"';
      const first = await run('--once-per', '1d', key, '--holder', 'host-1', '--', 'sh', '-c', script);
      const { done, fence, state } = await read(key);
      expect([first.code, first.stderr, first.stdout]).toEqual([0, '', `${key} ${done?.slot} ${fence}\n`]);
      expect([state, done?.slot, done?.by]).toEqual(['released', new Date().toISOString().slice(0, 10), 'host-1']);
      const second = await run('--once-per', '1d', key, '--holder', 'host-2', '--', 'sh', '-c', script);
      expect([second.code, second.stdout]).toEqual([0, '']);
      expect(second.stderr).toMatch(
        new RegExp(`^holdfast: ${key} is done for ${done?.slot}, by host-1 at ${done?.at} \\(\\d+s ago\\)\n$`),
      );
      expect(await run('--once-per', '24h', '--quiet', key, '--', 'false')).toMatchObject({ code: 0, stderr: '' });
    });

    it.runIf(isFull)('holdfast run works for the day of a time zone', async () => {
      // At any hour, at least one of these zones has another day than UTC.
      for (const zone of ['Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
        const key = freshKey();
        const day = () => new Date().toLocaleDateString('sv', { timeZone: zone });
        const asked = ['--once-per', '1d', '--zone', zone, key, '--', 'sh', '-c', 'echo "$HOLDFAST_SLOT"'];
        const before = day();
        const { code, stdout } = await run(...asked);
        expect([code, [before, day()]]).toEqual([0, expect.arrayContaining([stdout.trim()])]);
      }
    });

    it.runIf(isFull)('holdfast run exits with 75 while another works, 143 at SIGTERM, 0 when done', async () => {
      const key = freshKey();
      const first = start(['--slot', 'b', key, '--holder', 'host-1', '--', 'sh', '-c', 'echo on; sleep 60 & wait']);
      await until(first.stdout).toBe('on\n');
      const held = await run('--slot', 'b', key, '--', 'echo', 'never');
      expect([held.code, held.stdout]).toEqual([75, '']);
      expect(held.stderr).toMatch(
        new RegExp(`^holdfast: ${key} is held by host-1 since \\S+ until \\S+ \\(in \\w+\\)\n$`),
      );
      expect(await run('--slot', 'b', '--held-exit-code', '9', '-q', key, '--', 'true')).toMatchObject({ code: 9 });
      first.child.kill('SIGTERM');
      expect(await first.exited).toMatchObject({ code: 143 });
      const waiting = start(['--slot', 'b', key, '--holder', 'host-3', '--', 'sh', '-c', 'echo on; sleep 1']);
      await until(waiting.stdout).toBe('on\n');
      const third = await run('--slot', 'b', '--wait', '30', key, '--', 'echo', 'never');
      expect([third.code, third.stdout]).toEqual([0, '']);
      expect(third.stderr).toContain('is done for b, by host-3');
    });

    it.runIf(isFull)('a failed command gives holdfast run its exit code, and frees the slot', async () => {
      const key = freshKey();
      expect((await run('--slot', '2026-11-26', key, '--', 'sh', '-c', 'exit 7')).code).toBe(7);
      expect(await read(key)).toMatchObject({ state: 'released', slot: '2026-11-26', done: null });
      expect(await run('--slot', '2026-11-26', key, '--', 'echo', 'ran')).toMatchObject({ code: 0, stdout: 'ran\n' });
    });

    it.runIf(isFull)('holdfast run exits with 0 and runs nothing for an earlier slot', async () => {
      const key = freshKey();
      await holdfast.once(key, { slot: '2026-11-26' }, () => {});
      const { code, stdout, stderr } = await run('--slot', '2026-11-25', key, '--', 'echo', 'never');
      expect([code, stdout]).toEqual([0, '']);
      expect(stderr).toContain(`${key} is done for the later slot 2026-11-26, by the other at `);
    });

    it('holdfast run exits with 76 and stores nothing if its lease was broken', async () => {
      const key = freshKey();
      const script = 'trap "exit 0" TERM; echo on; sleep 60 & wait';
      const running = start(['--slot', 'a', '--ttl', '6', key, '--', 'sh', '-c', script]);
      await until(running.stdout).toBe('on\n');
      const { fence } = await read(key);
      expect((await call('break', key, '--once', '--fence', String(fence))).code).toBe(0);
      expect(await running.exited).toMatchObject({ code: 76 });
      expect((await read(key)).state).toBe('released'); // and not only when the ttl is over
      expect(running.stderr()).toContain(`the lease of ${key} is lost (broken): the command is ended`);
      expect((await read(key)).done).toBeNull();
    });

    it.runIf(isFull)('holdfast run stores a success even if holdfast was paused beyond the ttl', async () => {
      const key = freshKey();
      const paused = start(['--slot', 'a', '--ttl', '3', key, '--', 'sh', '-c', 'echo on; sleep 1']);
      await until(paused.stdout).toBe('on\n');
      paused.child.kill('SIGSTOP');
      await until(async () => (await read(key)).state).toBe('expired');
      paused.child.kill('SIGCONT');
      expect(await paused.exited).toMatchObject({ code: 0 });
      expect(await read(key)).toMatchObject({ state: 'released', done: { slot: 'a' } });
    });

    it('holdfast run exits with 69 and keeps the slot if the outcome is unknown', async () => {
      const key = freshKey();
      const proxy = await cuttable(api.url);
      const args = ['--slot', 'a', '--ttl', '30', '--timeout', '0', key, '--', 'sh', '-c', 'echo on; sleep 1'];
      const cut = start(args, { HOLDFAST_ENDPOINT: proxy.url });
      await until(cut.stdout).toBe('on\n');
      proxy.cut('breaks');
      const { code, stderr } = await cut.exited;
      expect([code, stderr]).toEqual([69, expect.stringContaining('[OutcomeUnknown]')]);
      expect(stderr).toContain(`the work has run, and slot a of ${key} may or may not be done: `);
      expect(await read(key)).toMatchObject({ state: 'held', done: null });
      await proxy.stop();
    });

    it.each<[string[], string]>([
      [['--once-per', '1d', '--slot', 'a'], '--once-per and --slot exclude each other'],
      [['--once-per', '1d', '--limit', '5'], '--once-per and --limit exclude each other'],
      ...(runner.isPython ? [] : [ALSO_A_SLOT]),
      [['--once-per', '0.5s'], 'per: must be a period such as 15m, 1h, 1d or 1w, of at most 366 days'],
      [['--once-per', '7d'], 'per: must be 1w: a week begins on Monday'],
      [['--once-per', '1d', '--zone', 'Europe/Berln'], 'zone: must be the IANA name of a time zone'],
      [['--slot', 'a', '--zone', 'Europe/Berlin'], 'zone: needs a per of whole days or weeks'],
      [['--keep', '1d'], '--keep and --zone need --once-per or --slot'],
      [['--zone', 'Europe/Berlin'], '--keep and --zone need --once-per or --slot'],
      [['--once-per', '1d', '--keep', '1h'], 'keepSeconds: must be at least 172800'],
    ])('holdfast run exits with 64 for %j', async (options, message) => {
      const { code, stderr } = await run(...options, freshKey(), '--', 'true');
      expect(code).toBe(64);
      expect(stderr).toContain(message);
    });
  });
});

describe('holdfast status --kind once', () => {
  it('holdfast status --kind once shows the worker and the last slot, not the result', async () => {
    await holdfast.once('list/done', { slot: '2026-11-26' }, () => 'a secret result');
    const lease = await holdfast.onceBegin({ key: 'list/held', holder: 'host-1', slot: '2026-11-26', ttlSeconds: 600 });
    const { code, stdout } = await call('status', 'list/', '--kind', 'once');
    const [head, done, held] = stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect(code).toBe(0);
    expect(head).toEqual(['KEY', 'STATE', 'HOLDER', 'FENCE', 'ENDS', 'DONE', 'BY', 'AGO']);
    expect(done?.slice(0, 3)).toEqual(['list/done', 'released', '-']);
    expect(done?.slice(4)).toEqual(['-', '2026-11-26', 'the other', expect.stringMatching(/^\d+s$/)]);
    expect(held?.slice(0, 4)).toEqual(['list/held', 'held', 'host-1', String('fence' in lease && lease.fence)]);
    expect(held?.slice(5)).toEqual(['-', '-', '-']);
    expect(stdout).not.toContain('secret');
    const json = await call('status', 'list/', '--kind', 'once', '--json');
    const rows = json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(rows.map(({ key }) => key).sort()).toEqual(['list/done', 'list/held']);
    expect(rows.find(({ key }) => key === 'list/done')).toMatchObject({ kind: 'once', done: { by: 'the other' } });
    expect(json.stdout).not.toContain('secret');
    const limited = await call('status', 'list/', '--kind', 'once', '--limit', '1');
    expect([limited.stdout.trim().split('\n').length, limited.stderr]).toEqual([
      ...[2, 'holdfast: more keys match than the first 1\n'],
    ]);
    expect(await call('status', '--kind', 'once', '--watch')).toMatchObject({
      ...{ code: 64, stderr: expect.stringContaining('--kind once and --watch exclude each other') },
    });
  });
});

describe('holdfast break --once', () => {
  it('holdfast break --once ends the run, not the lease of the same key', async () => {
    const key = 'break/a';
    await using lease = await holdfast.acquire(key);
    const run = await holdfast.onceBegin({ key, holder: 'host-1', ttlSeconds: 600 });
    const fence = 'leaseId' in run ? run.fence : 0;
    const { code, stderr } = await call('break', key, '--once');
    expect(code).toBe(64);
    expect(stderr).toContain(`${key} is held by host-1 since `);
    expect(stderr).toContain(`to end it: holdfast break ${key} --fence ${fence} --once`);
    const ending = await call('break', key, '--once', '--fence', String(fence));
    expect([ending.code, ending.stdout]).toEqual([0, expect.stringContaining('is ending')]);
    expect(await read(key)).toMatchObject({ state: 'held', ending: true });
    expect((await call('break', key, '--once', '--now', '--fence', String(fence))).code).toBe(0);
    expect((await read(key)).state).toBe('released');
    expect(lease.held).toBe(true);
    expect(await holdfast.readLease(key)).toMatchObject({ state: 'held', holder: 'the other' });
  });
});

describe('holdfast forget', () => {
  it('holdfast forget frees a slot that is done, and refuses any other', async () => {
    await holdfast.once('forget/a', { slot: '2026-11-26' }, () => 1);
    expect(await call('forget', 'forget/a')).toMatchObject({
      ...{ code: 0, stdout: 'slot 2026-11-26 of forget/a is forgotten: the next caller does the work again\n' },
    });
    expect(await call('forget', 'forget/a')).toMatchObject({ code: 0, stdout: 'no slot of forget/a was done\n' });
    const again = ['run', '--slot', '2026-11-26', 'forget/a', '--', 'echo', 'ran'];
    expect(await cli.start(again, { env: { HOLDFAST_ENDPOINT: api.url } }).exited).toMatchObject({ stdout: 'ran\n' });
    const none = await call('forget', 'forget/none');
    expect([none.code, none.stderr]).toEqual([1, 'holdfast: no caller has begun a slot of forget/none\n']);
    await holdfast.onceBegin({ key: 'forget/held', holder: 'host-1', ttlSeconds: 600 });
    expect((await call('forget', 'forget/held')).code).toBe(75);
  });

  it('holdfast forget refuses an old fence, and prints the answer with --json', async () => {
    const { fence } = await holdfast.once('forget/b', { slot: 'a' }, () => 1);
    const wrong = await call('forget', 'forget/b', '--fence', '1');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('[Conflict')]);
    const { stdout } = await call('forget', 'forget/b', '--fence', String(fence), '--json');
    expect(JSON.parse(stdout)).toEqual({ key: 'forget/b', forgotten: true, fence, slot: 'a' });
  });

  it('the completion of holdfast forget offers once keys with the slot that is done', async () => {
    await holdfast.once('complete/a', { slot: '2026-11-26' }, () => 1);
    await (await holdfast.acquire('complete/lease')).release();
    const { stdout } = await call('completion', 'words', '--', 'forget', 'complete/');
    expect(stdout).toBe('complete/a\tdone for 2026-11-26\n');
  });
});
