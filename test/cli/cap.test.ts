import { describe, expect, it } from 'vitest';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

let keys = 0;
const freshKey = () => `cap/${++keys}`;
const env = { HOLDFAST_ENDPOINT: api.url };
const start = (...args: string[]) => cli.start(args, { env });
const call = (...args: string[]) => cli.call(args, { env });
const lines = (text: string) => text.trimEnd().split('\n');
const INSTANT = String.raw`\d{4}-\S+Z`;
const paused = `paused by an operator since ${INSTANT}: the vendor is down`;
const pause = (key: string) => holdfast.cap({ key, limit: 0, reason: 'the vendor is down' });

describe.concurrent('holdfast cap', () => {
  it('holdfast cap pauses a key for a time, and prints holders and waiters', async () => {
    const key = freshKey();
    await using _ = await holdfast.acquire(key, { limit: 5 });
    const { code, stdout } = await call('cap', key, '0', '--reason', 'the vendor is down', '--for', '2h');
    expect(code).toBe(0);
    expect(lines(stdout)).toEqual([
      expect.stringMatching(`^${key} is paused by an operator since ${INSTANT} until ${INSTANT}: the vendor is down$`),
      'in use: 1, in line: 0, and the holders keep what they have',
    ]);
    const { cap } = await holdfast.readLease(key);
    expect(Date.parse(cap?.until ?? '') - Date.parse(cap?.since ?? '')).toBeGreaterThan(7_100_000);
    expect((await holdfast.readRates({ key })) as object).toMatchObject({ cap: { limit: 0 } });
  });

  it('holdfast cap none lifts the cap and the capped rates, and prints both', async () => {
    const key = freshKey();
    await call('cap', key, '3', '--rate', '20/1m', '--rate', 'tokens:100/1s', '--reason', 'slow');
    const capped = `capped at 3 and 20/1m tokens:100/1s by an operator since ${INSTANT}: slow`;
    const { stdout } = await call('cap', key, 'none');
    expect(lines(stdout)).toEqual([
      expect.stringMatching(`^${key} was ${capped}; the cap is lifted$`),
      'in use: 0, in line: 0',
    ]);
    expect(await holdfast.readLease(key)).not.toHaveProperty('cap');
    expect(await holdfast.readRates({ key })).not.toHaveProperty('cap');
    expect(lines((await call('cap', key, 'none')).stdout)[0]).toBe(`${key} had no cap`);
    const json = JSON.parse((await call('cap', key, '--rate', '20/1m', '--reason', 'quota', '--json')).stdout);
    expect(json).toMatchObject({ key, before: null, cap: { limit: null, rates: [{ name: 'requests', limit: 20 }] } });
    expect((await call('cap', key, '--rate', 'none')).stdout).toMatch(`${key} was capped at 20/1m by an operator`);
  });

  it('holdfast cap --kind once pauses slots, and a pause of the key mentions them', async () => {
    const key = freshKey();
    await holdfast.once(key, { slot: 'a' }, () => 1);
    const reminded = await call('cap', key, '0', '--reason', 'down');
    expect(lines(reminded.stdout).at(-1)).toBe(`slots of ${key} can still begin: pause them with --kind once`);
    const slots = await call('cap', key, '0', '--reason', 'down', '--kind', 'once');
    expect(lines(slots.stdout)[0]).toMatch(`each slot of ${key} is paused by an operator since `);
    expect((await call('status', '--kind', 'once', key)).stdout).toMatch(new RegExp(`^${key} +paused `, 'm'));
    const refused = await call('run', key, '--slot', 'b', '--', 'true');
    expect([refused.code, refused.stderr]).toEqual([75, expect.stringMatching(`^holdfast: ${key} is paused by `)]);
    expect((await call('cap', key, 'none', '--kind', 'once')).code).toBe(0);
    expect((await call('run', key, '--slot', 'b', '--', 'true')).code).toBe(0);
  });

  it.each([
    [[], 'name a cap: a number, none, or --rate'],
    [['201', '--reason', 'r'], "the cap must be a whole number from 0 to 200, or none, not '201'"],
    [['half', '--reason', 'r'], "the cap must be a whole number from 0 to 200, or none, not 'half'"],
    [['0'], '--reason is missing: callers that the cap keeps out see it'],
    [['none', '--for', '1h'], '--for needs a cap, and this command only lifts'],
    [['3', '--kind', 'once', '--reason', 'r'], '--kind once takes 0 or none, and no --rate'],
    [['--rate', '5/1m=3', '--reason', 'r'], 'a capped rate is N/PERIOD or NAME:N/PERIOD, without units'],
  ])('holdfast cap refuses the options %j, and says why', async (args, message) => {
    const { code, stderr } = await call('cap', 'wrong', ...args);
    expect([code, lines(stderr)[0]]).toEqual([64, `holdfast: ${message}`]);
  });
});

describe.concurrent('a capped key', () => {
  it('a paused key shows who paused it and why, even while it is free', async () => {
    const key = freshKey();
    await pause(key);
    expect((await call('status', key)).stdout).toMatch(new RegExp(`^${key} +paused +- +- +- +-`, 'm'));
    const queue = (await call('queue', key)).stdout;
    expect(queue).toMatch(/^cap +paused by /m);
    expect(queue).toMatch(new RegExp(`^cap +${paused}$`, 'm'));
    const watching = start('watch', key);
    await until(watching.stdout).toMatch(new RegExp(`${key} is free, ${paused}\n`));
    await holdfast.cap({ key, limit: null });
    await until(watching.stdout).toMatch(new RegExp(`${key} is free\n`));
    watching.child.kill();
    await watching.exited;
  });

  it('a paused key refuses commands with 75, and names the reason', async () => {
    const key = freshKey();
    await pause(key);
    for (const args of [
      ['run', key, '--', 'true'],
      ['run', key, '--limit', '3', '--', 'true'],
      ['rate', key, '5/1m'],
    ]) {
      const { code, stderr } = await call(...args);
      expect([code, stderr], args[0]).toEqual([75, expect.stringMatching(`^holdfast: ${key} is ${paused}\n$`)]);
    }
  });

  it('a key with a lower cap shows the cap beside what is in use', async () => {
    const key = freshKey();
    await using _ = await holdfast.acquire(key, { limit: 5, weight: 3 });
    await using __ = await holdfast.acquire(`${key}/uncapped`);
    await holdfast.cap({ key, limit: 3, reason: 'slow' });
    const [, row, ...others] = lines((await call('status', key, '--state', 'capped', '--limit', '1')).stdout);
    expect([row, others]).toEqual([expect.stringMatching(`^${key} +held +3 of 5, cap 3 `), []]);
    expect((await call('queue', key)).stdout).toMatch(/^cap +capped at 3 by an operator since \S+: slow$/m);
    const { code, stderr } = await call('run', key, '--limit', '5', '--', 'true');
    expect(code).toBe(75);
    expect(stderr).toMatch(/in use: 3 of 5, cap 3 \(capped at 3 by an operator since \S+: slow\)\n$/);
  });

  it('a key with capped rates shows them, and a refused command names them', async () => {
    const key = freshKey();
    await holdfast.rateReserve({ key, holder: 'host-1', rates: [{ limit: 500, per: '1m' }] });
    await holdfast.cap({ key, rates: [{ limit: 1, per: '1h' }], reason: 'quota' });
    expect((await call('status', '--kind', 'rate', key)).stdout).toMatch(/ 1\/1h\n$/);
    await holdfast.rateReserve({ key, holder: 'host-1', rates: [{ limit: 500, per: '1m' }], waitSeconds: 60 });
    const { code, stderr } = await call('rate', key, '500/1m');
    expect([code, stderr]).toEqual([
      75,
      expect.stringMatching(/is used up: try again in .* \(capped at 1\/1h by an operator since \S+: quota\)\n$/),
    ]);
  });
});

describe.concurrent('holdfast next', () => {
  it('holdfast next makes a waiter the next one, and queue shows it as moved', async () => {
    const key = freshKey();
    const lease = await holdfast.acquire(key);
    const runs = [];
    for (const holder of ['a', 'b', 'c']) {
      runs.push(start('run', key, '--wait', 'forever', '--holder', holder, '--', 'echo', holder));
      await until(async () => (await holdfast.readLease(key)).waiting).toBe(runs.length);
    }
    const { waiters = [] } = await holdfast.readLease(key, { waiters: true });
    const [a, , c] = waiters.map(({ ticket }) => ticket);
    const next = (ticket = '') => call('next', key, ticket);
    expect(await next(a)).toMatchObject({ code: 0, stdout: 'the ticket is next\n' });
    expect(await next(c)).toMatchObject({ code: 0, stdout: `the ticket is next, before ${a}\n` });
    expect((await call('queue', key)).stdout).toMatch(/^ +1 +caller +c +\S+ +moved by an operator +\S+$/m);
    await lease.release();
    expect(await runs[2]?.exited).toMatchObject({ code: 0, stdout: 'c\n' });
    expect(await next(c)).toMatchObject({ code: 1, stdout: expect.stringContaining('was not in line (') });
    await Promise.all(runs.map(({ exited }) => exited));
  });
});
