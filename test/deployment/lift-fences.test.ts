import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { liftFencesCommand } from '../../deployment/commands.ts';
import { liftFences } from '../../deployment/lift-fences.ts';
import { useOf } from '../../deployment/table-use.ts';
import { acquire } from '../../shared/locks/calls/acquire.ts';
import { breakGrant } from '../../shared/locks/calls/break.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { call } from '../support/emulators/aws.ts';
import { printed } from '../support/stack/cloudformation.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { permitsWorld } from '../support/worlds/permits.ts';

describe('lifting fences', () => {
  /** Says who the caller is, as STS does. */
  const sts = createServer((_, response) => {
    const result = '<Arn>arn:aws:iam::000000000000:user/test</Arn><Account>000000000000</Account>';
    response.setHeader('content-type', 'text/xml');
    response.end(`<R><GetCallerIdentityResult>${result}</GetCallerIdentityResult></R>`);
  });
  beforeAll(() => once(sts.listen(0, '127.0.0.1'), 'listening'));
  afterAll(() => void sts.close());

  /** @param aheadMs how far the clock of the operator's machine is ahead */
  async function lift(table: string, { aheadMs = 0, options = [] as string[] } = {}) {
    const { now } = Date;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs);
    const env = {
      AWS_REGION: 'us-east-1',
      AWS_ENDPOINT_URL_STS: `http://127.0.0.1:${(sts.address() as AddressInfo).port}`,
    };
    const lifted = await printed(() => liftFencesCommand(['--table', table, ...options]), env);
    clock.mockRestore();
    return lifted;
  }

  it('lifting fences prints how to break the bound leases that came back', async () => {
    const { dependencies, table, clock, steps } = await lineWorld();
    clock.set(systemClock.now() - 3_600_000);
    const execution = 'arn:aws:states:us-east-1:000000000000:execution:machine:run';
    const taskOf = (key: string, more: object = {}) =>
      ask({ key, holder: 'wf', taskToken: steps.newTask().token, execution, bound: true, ...more });
    const ask = (asked: object) => acquire(dependencies)(acquireInput().parse(asked), call());
    await taskOf('nightly');
    await taskOf('it is mine', { limit: 1 });
    const { code, output } = await lift(table);
    expect([code, output]).toEqual([0, expect.stringContaining('2 bound leases or permits came back with the table')]);
    const commands = [...output.matchAll(/^holdfast break --now --fence (\d+) -- (.+)$/gm)];
    expect(commands.map(([, , key]) => key)).toEqual(["'it is mine'", 'nightly']);
    clock.set(systemClock.now());
    for (const [, fence, key = ''] of commands) {
      const broken = { key: key.replaceAll("'", ''), fence: Number(fence) };
      expect(await breakGrant(dependencies)(broken, call())).toMatchObject({ ended: true });
    }
    expect(await ask({ key: 'nightly', holder: 'next' })).toMatchObject({ holder: 'next' });
    expect(await ask({ key: 'it is mine', holder: 'next', limit: 1 })).toMatchObject({ holder: 'next' });
    await steps.stop();
  });

  /** A table whose one lease was released a while ago. */
  async function quietTable() {
    const world = await leaseWorld();
    world.clock.set(systemClock.now() - 3_600_000);
    await world.release(await world.acquire({ key: 'job' }));
    return world;
  }

  it("fences are not lifted if the machine's clock is two hours ahead", async () => {
    const { table, rawItem } = await quietTable();
    const before = await rawItem('job');
    const { code, output } = await lift(table, { aheadMs: 7_200_000, options: ['--yes'] });
    const [, here = '', there = ''] =
      /clock of this machine is at (\S+), and AWS's clock at (\S+): set/.exec(output) ?? [];
    expect(Math.round((Date.parse(here) - Date.parse(there)) / 60_000), output).toBe(120);
    expect(code).toBe(64);
    expect(await rawItem('job')).toEqual(before);
  });

  it('the fences of a quiet table are lifted to a minute from now', async () => {
    const { table, rawItem } = await quietTable();
    expect(await lift(table)).toEqual({
      code: 0,
      output: `1 fences of ${table} in account 000000000000, region us-east-1 were lifted\n`,
    });
    const ahead = Number((await rawItem('job'))?.fence?.N) - systemClock.now();
    expect(ahead).toBeGreaterThan(0);
    expect(ahead).toBeLessThanOrEqual(60_000);
  });

  it('the fences of a table with a held lease are lifted with --yes', async () => {
    const { table, rawItem, acquire, clock } = await leaseWorld();
    clock.set(systemClock.now());
    await acquire({ key: 'job', ttlSeconds: 3600 });
    const before = await rawItem('job');
    const refused = await lift(table);
    expect(refused.output).toMatch(
      `1 leases or permits of ${table} are held, and the last write was at ${new Date(clock.now()).toISOString()}`,
    );
    expect(refused.output).toContain('or add --yes. Nothing was changed');
    expect(refused.code).toBe(64);
    expect(await rawItem('job')).toEqual(before);
    expect(await lift(table, { options: ['--yes'] })).toMatchObject({ code: 0 });
    expect(Number((await rawItem('job'))?.fence?.N)).toBeGreaterThan(Number(before?.fence?.N));
  });
});

describe('a record with a lifted fence', () => {
  it('a record with a lifted fence stays until the clock has passed the fence', async () => {
    const { dynamodb, table, clock, acquire, release, rawItem } = await leaseWorld();
    await acquire({ key: 'held', ttlSeconds: 2 });
    await release(await acquire({ key: 'free' }));
    await liftFences(dynamodb, table, clock.now() + 7_200_000);
    for (const [key, seconds] of [['held', 60] as const, ['free', 3600] as const]) {
      const { fence, lease_expiry: until } = (await rawItem(key)) ?? {};
      expect(Number(fence?.N)).toBe(clock.now() + 7_260_000);
      expect(Number(until?.N), key).toBe(Math.ceil(Number(fence?.N) / 1000) + seconds);
    }
  });

  it('lifting fences does not shorten the life of a record', async () => {
    const { dynamodb, table, clock, acquire, rawItem, putRaw } = await leaseWorld();
    await acquire({ key: 'long', ttlSeconds: 86_400 });
    await putRaw({ key: { S: 'permanent' }, fence: { N: '1' } });
    const before = await rawItem('long');
    expect(await liftFences(dynamodb, table, clock.now())).toBe(2);
    expect((await rawItem('long'))?.lease_expiry).toEqual(before?.lease_expiry);
    expect(await rawItem('permanent')).not.toHaveProperty('lease_expiry');
  });

  it('lifting the fence of shared holders keeps the 400 days of their record', async () => {
    const { dynamodb, dependencies, clock, acquire, rawItem } = await permitsWorld();
    await acquire({ key: 'render', limit: 5 });
    const before = await rawItem('render');
    await liftFences(dynamodb, dependencies.table, clock.now());
    expect(await rawItem('render')).toEqual({ ...before, fence: { N: String(clock.now() + 60_000) } });
  });

  it('a record with a lifted fence stays for the retention after that fence', async () => {
    const { dynamodb, dependencies, clock, acquire, rawItem } = await permitsWorld();
    await acquire({ key: 'render', limit: 5 });
    await liftFences(dynamodb, dependencies.table, clock.now() + 500 * 86_400_000);
    const { fence, lease_expiry: until } = (await rawItem('render')) ?? {};
    expect(Number(until?.N)).toBe(Math.ceil(Number(fence?.N) / 1000) + 3600);
  });
});

describe('a table of leases', () => {
  it('a table is in use while something is held, and five minutes longer', async () => {
    const leases = await leaseWorld();
    const use = () => useOf(leases.dynamodb, leases.table, leases.clock.now());
    expect(await use()).toBe(undefined);
    const grant = await leases.acquire({ key: 'job', ttlSeconds: 600 });
    leases.clock.advance(301_000);
    expect(await use()).toBe(`1 leases or permits of ${leases.table} are held`);
    await leases.release(grant);
    expect(await use()).toContain('0 leases or permits');
    leases.clock.advance(300_000);
    expect(await use()).toBe(undefined);

    const { dynamodb, dependencies, clock, acquire } = await permitsWorld();
    for (const holder of ['a', 'b']) await acquire({ key: 'render', limit: 5, holder, ttlSeconds: 60 });
    expect(await useOf(dynamodb, dependencies.table, clock.now())).toContain('2 leases or permits');
    clock.advance(361_000);
    expect(await useOf(dynamodb, dependencies.table, clock.now())).toBe(undefined);
  });
});
