import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withLeases } from '../../clients/typescript/src/durable.ts';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { startDouble } from '../support/emulators/durable-functions.ts';
import { statesWorld } from '../support/emulators/states.ts';
import { type Bench, bench, blocks, guideWorld } from '../support/programs/guides.ts';
import { PYTHON_CLIENT, python } from '../support/programs/python.ts';
import { exclusionWorld } from '../support/stack/exclusion.ts';
import { until } from '../support/time/until.ts';
import { durableWorld } from '../support/worlds/durable.ts';

const guide = await guideWorld();
const { api, cli, shell, program, typescript } = guide;
const PAGE = await readFile('docs/per-tenant.md', 'utf8');
const [TENANT, TOTAL] = ['openai/tenant-a', 'openai'];

interface Play {
  client?: Holdfast;
  /** Starts the example. */
  run(): Promise<unknown>;
  /** Checks the permits while the example waits for the total. */
  meanwhile?(): Promise<void>;
}

/** While others have the whole total, the example holds a permit of its tenant, and waits. Then it works under both. */
async function playTwoKeys(work: Bench, { client = guide.holdfast, run, meanwhile }: Play): Promise<void> {
  const used = async () => [(await client.readLease(TENANT)).used ?? 0, (await client.readLease(TOTAL)).used ?? 0];
  const others = await client.acquire(TOTAL, { limit: 20, weight: 20 });
  const running = run();
  await until(async () => (await client.readLease(TOTAL)).waiting).toBe(1);
  expect(await used()).toEqual([1, 20]);
  await meanwhile?.();
  expect(work.begun).toEqual([]);
  await others.release();
  await until(() => work.atWork.length).toBe(1);
  expect(await used()).toEqual([1, 1]);
  work.finishAll();
  await running;
  expect(await used()).toEqual([0, 0]);
}

describe('docs/per-tenant.md', () => {
  it('the example of two keys runs with the client', async () => {
    const [code = ''] = blocks(PAGE, undefined, 'ts');
    const work = bench();
    const run = () => typescript(code, { tenant: 'tenant-a', prompt: '', ask: work.job('ask') });
    await playTwoKeys(work, { run });
  });

  it('the example of two keys runs with the command', async () => {
    const [code = ''] = blocks(PAGE, 'In a shell', 'sh');
    const work = bench();
    await program('ask.sh', work);
    await playTwoKeys(work, { run: () => shell(code) });
  });

  it('the example of two keys runs with the API, and extends its first permit', async () => {
    const [code = ''] = blocks(PAGE, 'With the API', 'sh');
    const work = bench();
    await program('ask.sh', work);
    const printed: string[] = [];
    const run = async () => printed.push(await shell(code.replace('sleep 20', 'sleep 0.2')));
    const meanwhile = async () => {
      const before = (await guide.read(TENANT)).expiresAt;
      await until(async () => (await guide.read(TENANT)).expiresAt !== before).toBe(true);
    };
    await playTwoKeys(work, { run, meanwhile });
    expect(printed[0]?.match(/"released":true/g)).toHaveLength(2);
  });

  it.skipIf(!python)('the example of two keys runs in Python', async () => {
    const [code = ''] = blocks(PAGE, 'In Python', 'python');
    await writeFile(join(cli.folder, 'per-tenant.py'), code);
    const work = bench();
    await program('ask.sh', work);
    const run = () => shell(`exec ${python} per-tenant.py`, { HOLDFAST_ENDPOINT: api.url, ...PYTHON_CLIENT });
    await playTwoKeys(work, { run });
  });

  it('the example of two keys runs in a durable function', async () => {
    const [code = ''] = blocks(PAGE, 'In a durable function', 'ts');
    const { functions, holdfast, stop } = await durableWorld(startDouble);
    const work = bench();
    const ask = work.job('ask');
    try {
      const arn = await functions.start((_event, ctx) => {
        const event = { tenant: 'tenant-a', prompt: '' };
        return typescript(code, { ctx, holdfast, withLeases, event, ask });
      });
      await playTwoKeys(work, { client: holdfast, run: () => functions.end(arn) });
      expect((await functions.describe(arn)).Status).toBe('SUCCEEDED');
    } finally {
      await stop();
    }
  });

  it('the example of two keys runs with the wrapper', async () => {
    const [code = ''] = blocks(PAGE, 'In Step Functions', 'json');
    const world = await exclusionWorld((handlers) => statesWorld({ handlers, secondMs: 5, limitSecondMs: 1000 }));
    const used = async () => [(await world.readKey(TENANT)).used, (await world.readKey(TOTAL)).used];
    try {
      const input = code.replace(/\$\{(\w+)\}/g, (_, name) => (world.values as Record<string, string>)[name] ?? '');
      const others = { key: TOTAL, holder: 'others', limit: 20, weight: 20, requestId: 'others' };
      const { leaseId } = (await world.acquire(others)) as { leaseId: string };
      const arn = await world.states.start(world.exclusive, JSON.parse(input));
      await world.waiting(1, TOTAL);
      expect(await used()).toEqual([1, 20]);
      await world.release({ key: TOTAL, leaseId });
      const { finish } = await world.atWorkNo(0);
      expect(await used()).toEqual([1, 1]);
      finish(null);
      expect((await world.states.ended(arn)).status).toBe('SUCCEEDED');
      expect(await used()).toEqual([0, 0]);
    } finally {
      await world.states.stop();
    }
  });
});

describe('docs/per-tenant.md: with a rate', () => {
  it('the example with a rate runs with the client and with the command', async () => {
    const [code = ''] = blocks(PAGE, 'With a rate', 'ts');
    const [command = ''] = blocks(PAGE, 'With a rate', 'sh');
    const work = bench();
    await program('ask.sh', work);
    const runs = [typescript(code, { tenant: 'tenant-a', prompt: '', ask: work.job('ask') }), shell(command)];
    await until(() => work.atWork.length).toBe(2);
    expect((await guide.read(TENANT)).used).toBe(2);
    expect(await guide.holdfast.readRates({ key: TOTAL })).toMatchObject({
      rates: [{ limit: 500, per: '1m' }],
    });
    work.finishAll();
    await Promise.all(runs);
    expect((await guide.read(TENANT)).used).toBe(0);
  });

  const EACH_SECOND = { limit: 60, per: '1m' };
  const EACH_FIVE_SECONDS = { limit: 12, per: '1m' };

  /** Reserves starts in memory at a moment that the test moves. */
  function reserver() {
    const clock = new ManualClock();
    const { transport } = new MemoryService({ surroundings: clock });
    const holdfast = new Holdfast({ transport, surroundings: clock, holder: 'test' });
    const reserve = async (key: string, rate: object) =>
      (await holdfast.rateReserve({ key, holder: 'test', rates: [rate as typeof EACH_SECOND], waitSeconds: 600 }))
        .waitMs / 1000;
    return { clock, reserve };
  }

  it('two rates for one piece of work exceed the rate with the earlier start', async () => {
    const { reserve } = reserver();
    const starts: number[] = [];
    for (let no = 0; no < 3; no++)
      starts.push(Math.max(await reserve(TOTAL, EACH_SECOND), await reserve(TENANT, EACH_FIVE_SECONDS)));
    expect(starts).toEqual([0, 5, 10]);
    for (let no = 0; no < 5; no++) starts.push(await reserve(TOTAL, EACH_SECOND));
    expect(starts.slice(3)).toEqual([3, 4, 5, 6, 7]);
  });

  it('a tenant that waits for its start first keeps the rate of the total', async () => {
    const { clock, reserve } = reserver();
    const totals: number[] = [];
    for (let no = 0; no < 12; no++) totals.push(await reserve(TOTAL, EACH_SECOND));
    const tenants = [];
    for (let no = 0; no < 3; no++) tenants.push(await reserve(TENANT, EACH_FIVE_SECONDS));
    let now = 0;
    const starts: number[] = [];
    for (const start of tenants) {
      await clock.advance((start - now) * 1000);
      now = start;
      starts.push(now + (await reserve(TOTAL, EACH_SECOND)));
    }
    expect(starts).toEqual([12, 13, 14]);
    expect(new Set([...totals, ...starts]).size).toBe(15);
  });
});
