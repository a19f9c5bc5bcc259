import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasMoto, motoWorld } from '../support/emulators/moto.ts';
import { boom, example, exclusionWorld } from '../support/stack/exclusion.ts';

/**
 * The definitions again, in real seconds, on an interpreter that shares no code with the local stack. An execution that is
 * stopped is missing, because Moto ends it only when the function that it waits for has answered.
 */
describe.skipIf(!hasMoto)('on Moto', () => {
  let world: Awaited<ReturnType<typeof exclusionWorld>>;
  let worked = 0;
  beforeAll(async () => {
    world = await exclusionWorld((handlers) => motoWorld(handlers), '123456789012');
  });
  afterAll(() => world?.states.stop());

  /** The next call of the work. If none comes, the error shows how the executions ended. */
  const nextWork = async () => {
    try {
      return await world.atWorkNo(worked++);
    } catch (error) {
      const described = await Promise.all(wrappers.map((arn) => world.states.describe(arn)));
      const how = described.map(({ status, error, cause }) => [status, error, cause]);
      throw new Error(`no work began: ${JSON.stringify(how)}`, { cause: error });
    }
  };
  const wrappers: string[] = [];
  const run = async (input: object) => {
    const asked = { key: 'k', ttlSeconds: 600, stateMachineArn: world.target, ...input };
    const arn = await world.states.start(world.exclusive, asked);
    wrappers.push(arn);
    return arn;
  };

  it('the wrapper on Moto runs target after target, and passes the fence', async () => {
    const { states, targets, target, waiting, peak, state } = world;
    const first = await run({ input: { n: 1 }, passFence: true });
    const one = await nextWork();
    expect(one.input).toMatchObject({ n: 1, holdfast: { key: 'k', fence: expect.any(Number) } });
    const second = await run({ input: [2] });
    await waiting(1);
    one.finish({ made: 1 });
    expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED', output: { made: 1 } });
    const two = await nextWork();
    expect(two.input).toEqual([2]);
    two.fail(boom());
    const failed = await states.ended(second);
    expect(failed).toMatchObject({ status: 'FAILED', error: 'Boom' });
    expect(JSON.parse(failed.cause ?? '')).toMatchObject({ errorType: 'Boom', errorMessage: 'why' });
    expect(peak.atWork).toBe(1);
    expect(await state('k')).toBe('released');
    const named = await states.describe(targets.get(second) ?? '');
    expect(named).toMatchObject({ stateMachineArn: target, status: 'FAILED' });
  });

  it('the wrapper on Moto fails with LeaseHeld when the holder stays', async () => {
    const { states, expire, waiting } = world;
    const first = await run({});
    const one = await nextWork();
    const second = await run({});
    await waiting(1);
    await expire();
    expect(await states.ended(second)).toMatchObject({ status: 'FAILED', error: 'LeaseHeld' });
    one.finish({});
    expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED' });
  });

  it.each(['retry', 'parked'] as const)('the example %s on Moto holds, frees and fails', async (name) => {
    const { states, values, state, peak } = world;
    const machine = await states.create(name, await example(name, values));
    const start = (input: string) => states.start(machine, { key: name, input });
    const first = await start('first');
    const one = await nextWork();
    const second = await start('second');
    one.finish({ done: true });
    expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED', output: { done: true } });
    (await nextWork()).fail(boom());
    expect(await states.ended(second)).toMatchObject({ status: 'FAILED', error: 'Boom' });
    await expect.poll(() => state(name), { interval: 5 }).toBe('released');
    expect(peak.atWork).toBe(1);
  });

  it('the example call-exclusive on Moto receives the output of the target', async () => {
    const { states, values } = world;
    const caller = await states.create('caller', await example('call-exclusive', values));
    const good = await states.start(caller, { key: 'k', input: { n: 1 } });
    (await nextWork()).finish({ made: 1 });
    expect(await states.ended(good)).toMatchObject({ status: 'SUCCEEDED', output: { made: 1 } });
  });

  it.each(['retry', 'parked'] as const)(
    'the example %s on Moto does not end before its lease expires',
    async (name) => {
      const { states, values, lease } = world;
      const text = JSON.stringify(await example(name, values));
      const brief = text
        .replace('"ttlSeconds":300', '"ttlSeconds":3')
        .replace('"graceSeconds":60,', '')
        .replace(' - 60}', '}');
      const machine = await states.create(`${name}-expiry`, JSON.parse(brief));
      const key = `${name}-expiry`;
      const arn = await states.start(machine, { key, input: null });
      const { fail } = await nextWork();
      const { expiresAt } = await lease(key);
      fail(Object.assign(new Error('why'), { name: 'Lambda.ServiceException' }));
      expect(await states.ended(arn)).toMatchObject({ status: 'FAILED', error: 'Lambda.ServiceException' });
      expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt ?? ''));
    },
  );

  it('the wrapper stops a target that would outlive the lease', async () => {
    const { states, state } = world;
    const arn = await run({ key: 'short', ttlSeconds: 2 });
    await nextWork();
    expect(await states.ended(arn)).toMatchObject({ status: 'FAILED', error: 'Exclusive.States.Timeout' });
    expect(await state('short')).not.toBe('held');
  });

  it('the wrapper on Moto starts its target no earlier than the rate allows', async () => {
    const { states, state } = world;
    const asked = { key: 'rated', rates: [{ limit: 1, per: '2s' }] };
    const first = await run(asked);
    (await nextWork()).finish({});
    expect((await states.ended(first)).status).toBe('SUCCEEDED');
    const { paidUntil } = (await world.readRate('rated')) as { paidUntil: string };
    const second = await run(asked);
    const two = await nextWork();
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(paidUntil));
    two.finish({});
    expect((await states.ended(second)).status).toBe('SUCCEEDED');
    const hourly = { key: 'paid', rates: [{ limit: 1, per: '1h' }] };
    await world.reserve({ ...hourly, holder: 'earlier' });
    const refused = await run({ ...hourly, rateWaitSeconds: 0 });
    expect(await states.ended(refused)).toMatchObject({ status: 'FAILED', error: 'RateExceeded' });
    expect(await state('rated')).toBe('released');
  });

  // This test stays the last one, because it lets two targets work at once.
  it('the wrapper with a limit runs two targets at once, by weight', async () => {
    const { states, readKey } = world;
    const asked = { key: 'gpus', limit: 4, weight: 2 };
    const arns = [await run({ ...asked, input: { n: 1 } }), await run({ ...asked, input: { n: 2 } })];
    const [one, two] = [await nextWork(), await nextWork()];
    const third = await run(asked);
    await expect.poll(async () => (await readKey('gpus')).waiting, { interval: 5 }).toBe(1);
    expect(await readKey('gpus')).toMatchObject({ used: 4, limit: 4 });
    one.finish({});
    const three = await nextWork();
    two.finish({});
    three.finish({ made: 3 });
    for (const arn of arns) expect((await states.ended(arn)).status).toBe('SUCCEEDED');
    expect(await states.ended(third)).toMatchObject({ status: 'SUCCEEDED', output: { made: 3 } });
    expect((await readKey('gpus')).used).toBe(0);
    const refused = await states.ended(await run({ mode: 'exclusive', weight: 2 }));
    expect(refused).toMatchObject({ status: 'FAILED', error: 'InvalidRequest' });
  });
});
