import { GetExecutionHistoryCommand } from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it } from 'vitest';
import { statesWorld } from '../support/emulators/states.ts';
import { boom, example, exclusionWorld } from '../support/stack/exclusion.ts';

let states: Awaited<ReturnType<typeof exclusionWorld>>['states'];
afterEach(() => states.stop());

/** A second of a Wait state takes no time to speak of. */
async function world() {
  const made = await exclusionWorld((handlers) => statesWorld({ handlers, secondMs: 5, limitSecondMs: 1000 }));
  states = made.states;
  const rates = [{ limit: 2, per: '1m' }];
  const run = (input: object) =>
    states.start(made.exclusive, { key: 'k', ttlSeconds: 600, stateMachineArn: made.target, rates, ...input });
  return { ...made, run, rates };
}

/** The names of the states that an execution has entered. */
async function entered(executionArn: string) {
  const { events = [] } = await states.sfn.send(new GetExecutionHistoryCommand({ executionArn }));
  return events.flatMap(({ stateEnteredEventDetails: at }) => (at?.name === undefined ? [] : [at.name]));
}

describe('the wrapper with rates', () => {
  it('the wrapper with rates starts each target at its start, behind the one before', async () => {
    const { run, atWorkNo, readRate } = await world();
    const first = await run({ input: { n: 1 } });
    (await atWorkNo(0)).finish(null);
    expect((await states.ended(first)).status).toBe('SUCCEEDED');
    const second = await run({ input: { n: 2 } });
    const next = await atWorkNo(1);
    expect(next.input).toEqual({ n: 2 });
    next.finish({ made: 2 });
    expect(await states.ended(second)).toMatchObject({ status: 'SUCCEEDED', output: { made: 2 } });
    const visited = await entered(second);
    expect(visited.filter((state) => /Reserve|start|fence/.test(state))).toEqual([
      ...['Pass the fence?', 'Reserve', 'Wait for the start', 'Pass the fence?'],
    ]);
    expect(await readRate('k')).toMatchObject({ rates: [{ name: 'requests', limit: 2, per: '1m' }], by: second });
  });

  it('the wrapper with rates releases the lease and fails if its start is refused', async () => {
    const { run, reserve, rates, running, state } = await world();
    for (const holder of ['a', 'b', 'c']) await reserve({ key: 'k', holder, rates, waitSeconds: 600 });
    const refused = await states.ended(await run({ rateWaitSeconds: 10 }));
    expect(refused).toMatchObject({ status: 'FAILED', error: 'RateExceeded' });
    expect(running).toHaveLength(0);
    expect(await state('k')).toBe('released');
  });

  it('the wrapper with rates waits at most a third of its ttl by default', async () => {
    const { run, reserve, rates, atWorkNo } = await world();
    for (const holder of ['a', 'b']) await reserve({ key: 'k', holder, rates, waitSeconds: 600 });
    expect(await states.ended(await run({ ttlSeconds: 150 }))).toMatchObject({ error: 'RateExceeded' });
    const later = await run({ ttlSeconds: 150, rateWaitSeconds: 70 });
    (await atWorkNo(0)).fail(boom());
    expect(await states.ended(later)).toMatchObject({ status: 'FAILED', error: 'Boom' });
  });
});

it('the example rate starts on time, and fails if that is too late', async () => {
  const { values, atWorkNo, reserve } = await world();
  const machine = await states.create('rate', await example('rate', values));
  const first = await states.start(machine, { input: { n: 1 } });
  const one = await atWorkNo(0);
  expect(one.input).toEqual({ n: 1 });
  one.finish({ made: 1 });
  expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED', output: { made: 1 } });
  await reserve({ key: 'vendor', holder: 'other', rates: [{ limit: 1, per: '25h' }], waitSeconds: 60 });
  expect(await states.ended(await states.start(machine, { input: {} }))).toMatchObject({ error: 'RateExceeded' });
});
