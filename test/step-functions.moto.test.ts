import { afterEach, describe, expect, it } from 'vitest';
import { boom, example, exclusionWorld } from './support/exclusion.ts';
import { hasMoto, motoWorld } from './support/moto.ts';

let states: Awaited<ReturnType<typeof exclusionWorld>>['states'];
afterEach(() => states?.stop());

async function world() {
  const made = await exclusionWorld((handlers) => motoWorld(handlers), '123456789012');
  states = made.states;
  return made;
}

/**
 * The definitions once more, on an interpreter that has nothing in common with the local stack's, in real seconds. Not
 * here: an execution that is stopped, which Moto ends only when the function has answered that it waits for.
 */
describe.skipIf(!hasMoto)('on Moto', () => {
  it('the wrapper runs target after target, tells the fence, and returns output or error', async () => {
    const { exclusive, target, atWorkNo, waiting, most, state, queue } = await world();
    const run = (input: object) =>
      states.start(exclusive, { key: 'k', ttlSeconds: 600, stateMachineArn: target, input, passFence: true });
    const first = await run({ n: 1 });
    const one = await atWorkNo(0);
    expect(one.input).toMatchObject({ n: 1, holdfast: { key: 'k', fence: expect.any(Number) } });
    const second = await run({ n: 2 });
    await waiting(1);
    one.finish({ made: 1 });
    expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED', output: { made: 1 } });
    const two = await atWorkNo(1);
    two.fail(boom());
    const failed = await states.ended(second);
    expect(failed).toMatchObject({ status: 'FAILED', error: 'Boom' });
    expect(JSON.parse(failed.cause ?? '')).toMatchObject({ errorType: 'Boom', errorMessage: 'why' });
    expect(most.atWork).toBe(1);
    expect(await state('k')).toBe('released');
    const named = await states.describe(queue.targets.get(second) ?? '');
    expect(named).toMatchObject({ stateMachineArn: target, status: 'FAILED' });
  });

  it('the wrapper stops a target that would outlive the lease', async () => {
    const { exclusive, target, atWorkNo, state } = await world();
    const arn = await states.start(exclusive, { key: 'k', ttlSeconds: 3, stateMachineArn: target, input: [1] });
    expect((await atWorkNo(0)).input).toEqual([1]);
    expect(await states.ended(arn)).toMatchObject({ status: 'FAILED', error: 'Exclusive.States.Timeout' });
    expect(await state('k')).not.toBe('held');
  });

  it('the wrapper fails with LeaseHeld when nobody gives the lease back', async () => {
    const { exclusive, target, queue, waiting, running } = await world();
    const run = () => states.start(exclusive, { key: 'k', ttlSeconds: 600, stateMachineArn: target });
    const first = await run();
    await expect.poll(() => running.length, { timeout: 10_000 }).toBe(1);
    const second = await run();
    await waiting(1);
    await queue.expire();
    expect(await states.ended(second)).toMatchObject({ status: 'FAILED', error: 'LeaseHeld' });
    running[0]?.finish({});
    expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED' });
  });

  it.each(['retry', 'parked'] as const)('the example %s: held then freed, failed', async (name) => {
    const { values, atWorkNo, most, state } = await world();
    const machine = await states.create(name, await example(name, values));
    const start = (input: string) => states.start(machine, { key: 'k', input });
    const first = await start('first');
    const one = await atWorkNo(0);
    const second = await start('second');
    one.finish({ done: true });
    expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED', output: { done: true } });
    (await atWorkNo(1)).fail(boom());
    expect(await states.ended(second)).toMatchObject({ status: 'FAILED', error: 'Boom' });
    await expect.poll(() => state('k'), { timeout: 5000 }).toBe('released');
    expect(most.atWork).toBe(1);
  });

  it('the example call-exclusive gets the output of the target', async () => {
    const { values, atWorkNo } = await world();
    const caller = await states.create('caller', await example('call-exclusive', values));
    const good = await states.start(caller, { key: 'k', input: { n: 1 } });
    (await atWorkNo(0)).finish({ made: 1 });
    expect(await states.ended(good)).toMatchObject({ status: 'SUCCEEDED', output: { made: 1 } });
  });
});
