import { readFile } from 'node:fs/promises';
import { GetExecutionHistoryCommand } from '@aws-sdk/client-sfn';
import aslValidator from 'asl-validator';
import { afterEach, describe, expect, it } from 'vitest';
import { statesWorld } from '../support/emulators/states.ts';
import { boom, example, exclusionWorld } from '../support/stack/exclusion.ts';

let states: Awaited<ReturnType<typeof exclusionWorld>>['states'];
afterEach(() => states.stop());

/** Pauses and polls take no time to speak of. */
async function ready(limitSecondMs = 1000, secondMs = 5) {
  const world = await exclusionWorld((handlers) => statesWorld({ handlers, secondMs, limitSecondMs }));
  states = world.states;
  const machine = await states.create('once', await example('once', world.values));
  const start = (slot: string, key = 'report') => states.start(machine, { key, slot, input: 'hello' });
  const done = async (key = 'report') => (await world.readOnce({ key })) as unknown as Record<string, unknown>;
  const visited = async (executionArn: string) => {
    const { events = [] } = await states.sfn.send(new GetExecutionHistoryCommand({ executionArn }));
    return events.flatMap(({ stateEnteredEventDetails: entered }) => entered?.name ?? []);
  };
  return { ...world, start, done, visited };
}

describe('the example once', () => {
  it('the example once is valid', async () => {
    states = await statesWorld();
    const text = await readFile('examples/step-functions/once.asl.json', 'utf8');
    const { isValid, errorsText } = aslValidator(
      JSON.parse(text.replace(/\$\{\w+\}/g, 'arn:aws:lambda:us-east-1:000000000000:function:f')),
    );
    expect([isValid, errorsText('\n')]).toEqual([true, '']);
  });

  it('the example once works for a slot in the first execution, and returns its result in each later execution', async () => {
    const { start, done, atWorkNo, running } = await ready();
    const first = await start('2026-11-26');
    const { input, finish } = await atWorkNo(0);
    expect(input).toMatchObject({ input: 'hello', fence: { key: 'report' } });
    finish({ files: 7 });
    expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED', output: { files: 7 } });
    expect(await done()).toMatchObject({ done: { slot: '2026-11-26', by: first }, result: { files: 7 } });
    expect(await states.ended(await start('2026-11-26'))).toMatchObject({ status: 'SUCCEEDED', output: { files: 7 } });
    expect((await states.ended(await start('2026-11-25'))).status).toBe('SUCCEEDED');
    expect(running).toHaveLength(1);
  });

  it('the example once frees the slot if the work fails, and fails with its error', async () => {
    const { start, atWorkNo, visited } = await ready();
    const first = await start('a');
    (await atWorkNo(0)).fail(boom());
    expect(await states.ended(first)).toMatchObject({ status: 'FAILED', error: 'Boom' });
    expect(await visited(first)).toContain('Release after failure');
    const second = await start('a');
    (await atWorkNo(1)).finish('second');
    expect(await states.ended(second)).toMatchObject({ status: 'SUCCEEDED', output: 'second' });
  });

  it('the example once frees the slot if the execution is stopped, and stores nothing', async () => {
    const { start, atWorkNo, done } = await ready();
    const first = await start('a');
    await atWorkNo(0);
    await states.abort(first);
    await expect.poll(() => done(), { interval: 5 }).toMatchObject({ state: 'released', done: null });
    const second = await start('a');
    (await atWorkNo(1)).finish('second');
    expect(await states.ended(second)).toMatchObject({ status: 'SUCCEEDED', output: 'second' });
  });

  it('the example once keeps the slot until the expiry if the work runs out of time, because its function may still work', async () => {
    const { start, atWorkNo, visited, done } = await ready(1, 1000);
    const first = await start('a');
    await atWorkNo(0);
    await expect.poll(() => visited(first), { interval: 5 }).toContain('Wait for the expiry');
    expect(await done()).toMatchObject({ state: 'held', done: null });
  });
});
