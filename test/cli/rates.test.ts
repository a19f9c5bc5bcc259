import { describe, expect, it } from 'vitest';
import type { components } from '../../clients/typescript/src/index.ts';
import { runnersOf } from '../support/programs/run.ts';
import { isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

let keys = 0;
const freshKey = () => `rate/${++keys}`;
const env = { HOLDFAST_ENDPOINT: api.url };
const start = (...args: string[]) => cli.start(args, { env });
const call = (...args: string[]) => cli.call(args, { env });

/** Reserves a start that is now, so that the next start is a period later. */
const take = (key: string, per: string, more: object = {}) =>
  holdfast.rateReserve({ key, holder: 'host-1', rates: [{ limit: 1, per }], ...more });

const read = async (key: string) => (await holdfast.readRates({ key })) as components['schemas']['RateKey'];
const paidUntil = async (key: string) => Date.parse((await read(key)).paidUntil ?? '');
const HOUR_MS = 3_600_000;

describe.concurrent('holdfast rate', () => {
  it('holdfast rate exits with 0 at the start, and prints nothing', async () => {
    const key = freshKey();
    expect(await call('rate', key, '1/2s')).toMatchObject({ code: 0, stdout: '', stderr: '' });
    const firstPaid = await paidUntil(key);
    const { code, stdout } = await call('rate', key, '1/2s', '--wait', '10', '--json', '--holder', 'host-2');
    const endedAt = Date.now();
    const { startAt, ...rest } = JSON.parse(stdout);
    expect([code, rest]).toEqual([0, { key, waitedMs: expect.any(Number) }]);
    expect(Date.parse(startAt)).toBeGreaterThanOrEqual(firstPaid);
    expect(endedAt).toBeGreaterThanOrEqual(Date.parse(startAt));
    expect(await read(key)).toMatchObject({ by: 'host-2', rates: [{ name: 'requests', limit: 1, per: '2s' }] });
  });

  it('holdfast rate exits with 75 and says when to try again', async () => {
    const key = freshKey();
    await take(key, '1h');
    const before = await paidUntil(key);
    const { code, stdout, stderr } = await call('rate', key, '1/1h', '--wait', '10m');
    expect([code, stdout]).toEqual([75, '']);
    expect(stderr).toMatch(
      new RegExp(`^holdfast: the rate requests of ${key} is used up: try again in (50m( 1s)?|49m 5\\ds)\n$`),
    );
    expect(await call('rate', key, '1/1h', '--quiet')).toMatchObject({ code: 75, stderr: '' });
    expect(await paidUntil(key)).toBe(before);
  });

  it('holdfast rate cancels its reservation after a signal', async () => {
    const key = freshKey();
    await take(key, '1h');
    const before = await paidUntil(key);
    const waiting = start('rate', key, '1/1h', '--wait', 'forever');
    await until(() => paidUntil(key)).toBe(before + HOUR_MS);
    waiting.child.kill('SIGINT');
    expect(await waiting.exited).toMatchObject({ code: 130, stdout: '' });
    expect(await paidUntil(key)).toBe(before);
  });

  it('holdfast rate takes several rates, or options for a single one', async () => {
    const key = freshKey();
    expect((await call('rate', key, '500/1h', 'tokens:100/1h=50')).code).toBe(0);
    expect((await paidUntil(key)) - Date.parse((await read(key)).at ?? '')).toBeCloseTo(HOUR_MS / 2, -2);
    const { code, stderr } = await call('rate', key, '500/1h', 'tokens:100/1h=50');
    expect([code, stderr]).toEqual([75, expect.stringContaining(`the rate tokens of ${key} is used up`)]);
    const burst = freshKey();
    const again = () => call('rate', burst, '10/1h', '--name', 'calls', '--units', '5', '--burst', '10');
    expect([(await again()).code, (await again()).code, (await again()).code]).toEqual([0, 0, 75]);
    expect((await read(burst)).rates).toEqual([{ name: 'calls', limit: 10, per: '1h' }]);
  });

  it('holdfast rate says if the previous caller named another rate', async () => {
    const key = freshKey();
    await take(key, '1s');
    const { code, stderr } = await call('rate', key, '2/1s', '--wait', '10');
    const wording = `holdfast: the rate of ${key} was 1/1s, and is now 2/1s: all callers of a key should name the same\n`;
    expect([code, stderr]).toEqual([0, wording]);
  });

  it.each([
    [['50'], "a rate is N/PERIOD or NAME:N/PERIOD=UNITS, such as 50/1m or tokens:100000/1m=2000, not '50'"],
    [[], 'KEY N/PERIOD ... is missing'],
    [
      ['5/1m', 'b:5/1m', '--burst', '9'],
      '--burst works with a single rate: for several, write each as NAME:N/PERIOD=UNITS',
    ],
    [['5/1m', '--units', '0'], "--units must be a whole number of at least 1, not '0'"],
    [['5/32d'], '5/32d: per must be a period'],
    [['5/1m', '5/1h'], 'rates.1.name: must differ from the other names'],
  ])('holdfast rate exits with 64 for %j', async (rates, message) => {
    const { code, stderr } = await call('rate', freshKey(), ...rates);
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)]);
  });
});

describe.concurrent.each(runnersOf(cli))('$name', (runner) => {
  const start = (...args: string[]) => runner.start(args, { env });

  describe.concurrent('holdfast run --rate', () => {
    it.runIf(isFull)('holdfast run waits for the start under its lease, which heartbeats extend', async () => {
      const key = freshKey();
      await take(key, '3s');
      const waiting = start('run', key, '--ttl', '3', '--wait', '30', '--rate', '1/3s', '--', 'date', '+%s%3N');
      const seen = async () => holdfast.readLease(key);
      await until(async () => (await seen()).state).toBe('held');
      const { expiresAt } = await seen();
      await until(async () => (await seen()).state === 'held' && (await seen()).expiresAt !== expiresAt).toBe(true);
      const { code, stdout, stderr } = await waiting.exited;
      expect(code, stderr).toBe(0);
      expect(Number(stdout)).toBeGreaterThanOrEqual((await paidUntil(key)) - 3000);
    });

    it.runIf(isFull)('holdfast run releases its permit and exits with 75 if the rate refuses', async () => {
      const key = freshKey();
      const run = (...args: string[]) =>
        start('run', key, '--limit', '5', '--rate', '1/1h', ...args, '--', 'echo', 'ran').exited;
      expect(await run()).toMatchObject({ code: 0, stdout: 'ran\n' });
      const refused = await run();
      expect([refused.code, refused.stdout]).toEqual([75, '']);
      expect(refused.stderr).toContain(`the rate requests of ${key} is used up: try again in `);
      expect(await holdfast.readLease(key)).toMatchObject({ used: 0 });
      expect((await run('--held-exit-code', '9')).code).toBe(9);
    });

    it('holdfast run cancels its reservation and releases its lease after a signal', async () => {
      const key = freshKey();
      await take(key, '1h');
      const before = await paidUntil(key);
      const waiting = start('run', key, '--wait', 'forever', '--rate', '1/1h', '--', 'echo', 'never');
      await until(() => paidUntil(key)).toBe(before + HOUR_MS);
      waiting.child.kill('SIGTERM');
      expect(await waiting.exited).toMatchObject({ code: 143, stdout: '' });
      expect(await paidUntil(key)).toBe(before);
      expect((await holdfast.readLease(key)).state).toBe('released');
    });

    it('holdfast run exits with 76 if its lease is broken before the start', async () => {
      const key = freshKey();
      await take(key, '1h');
      const args = ['--ttl', '6', '--wait', 'forever', '--rate', '1/1h', '--', 'echo', 'never'];
      const waiting = start('run', key, ...args);
      await until(async () => (await holdfast.readLease(key)).state).toBe('held');
      const { fence } = await holdfast.readLease(key);
      await holdfast.breakLease({ key, fence: fence ?? 0 });
      const { code, stdout, stderr } = await waiting.exited;
      expect([code, stdout, stderr]).toEqual([76, '', expect.stringContaining('[LeaseLost')]);
    });
  });
});

describe('keys with rates', () => {
  it('holdfast status --kind rate lists rates, paid until and open reservations', async () => {
    await take('list/a', '1h', { settle: true });
    await holdfast.rateReserve({
      key: 'list/b',
      holder: 'host-1',
      rates: [
        { limit: 1000, per: '1s' },
        { name: 'tokens', limit: 5000, per: '1s' },
      ],
    });
    const until = await paidUntil('list/b');
    await expect.poll(() => Date.now()).toBeGreaterThan(until);
    const { code, stdout } = await call('status', 'list/', '--kind', 'rate');
    expect(code).toBe(0);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['KEY', 'RATES', 'PAID UNTIL', 'OPEN', 'CAP'],
      ['list/a', '1/1h', expect.stringMatching(/^\S+Z \(in (1h|59m \d+s)\)$/), expect.stringContaining('1'), '-'],
      ['list/b', '1000/1s tokens:5000/1s', 'idle', expect.stringContaining('0'), '-'],
      [''],
    ]);
    const json = await call('status', 'list/a', '--kind', 'rate', '--json');
    expect(JSON.parse(json.stdout)).toEqual(await read('list/a'));
    expect(await call('status', '--kind', 'rate', '--state', 'held')).toMatchObject({ code: 64 });
  });

  it('holdfast forget --rate lets the next caller start at once', async () => {
    await take('forget/a', '1h');
    const paid = (await read('forget/a')).paidUntil;
    expect(await call('forget', 'forget/a', '--rate')).toMatchObject({
      code: 0,
      stdout: `forget/a was paid until ${paid}, which is forgotten: the next caller starts at once\n`,
    });
    expect((await call('rate', 'forget/a', '1/1h')).code).toBe(0);
    const none = await call('forget', 'forget/none', '--rate');
    expect([none.code, none.stderr]).toEqual([1, 'holdfast: no caller has reserved at a rate of forget/none\n']);
    const both = await call('forget', 'forget/a', '--rate', '--fence', '1');
    expect([both.code, both.stderr]).toEqual([64, expect.stringContaining('--rate and --fence exclude each other')]);
  });

  it('the completion of holdfast rate and forget --rate has the keys', async () => {
    await take('complete/a', '1h');
    for (const typed of [['rate'], ['forget', '--rate']])
      expect((await call('completion', 'words', '--', ...typed, 'complete/')).stdout).toBe('complete/a\t1/1h\n');
    expect((await call('completion', 'words', '--', 'forget', 'complete/')).stdout).toBe('');
  });
});
