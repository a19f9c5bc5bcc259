import { readFile } from 'node:fs/promises';
import { afterEach, expect, it } from 'vitest';
import { statesWorld } from '../support/emulators/states.ts';
import { exclusionWorld } from '../support/stack/exclusion.ts';

let states: Awaited<ReturnType<typeof exclusionWorld>>['states'];
afterEach(() => states.stop());

/** The wrapper in a world in which pauses and polls take milliseconds. @param more fields of each input */
async function wrapped(more: object = {}, limitSecondMs = 1000) {
  const world = await exclusionWorld((handlers) => statesWorld({ handlers, secondMs: 5, limitSecondMs }));
  states = world.states;
  const run = (input: object = {}) =>
    states.start(world.exclusive, { key: 'k', ttlSeconds: 600, stateMachineArn: world.target, ...more, ...input });
  const inLine = (count: number) =>
    expect.poll(async () => (await world.readKey('k')).waiting, { interval: 5 }).toBe(count);
  return { ...world, run, inLine };
}

it('the wrapper with a limit runs that many targets at once', async () => {
  const { run, atWorkNo, inLine, peak, readKey, running } = await wrapped({ limit: 2 });
  const first = await run({ input: { n: 1 } });
  const one = await atWorkNo(0);
  const second = await run({ input: { n: 2 } });
  const two = await atWorkNo(1);
  const third = await run({ input: { n: 3 } });
  await inLine(1);
  expect(await readKey('k')).toMatchObject({ used: 2, limit: 2, holders: [{ holder: first }, { holder: second }] });
  expect(running).toHaveLength(2);
  two.finish({ made: 2 });
  expect(await states.ended(second)).toEqual({ status: 'SUCCEEDED', output: { made: 2 } });
  const three = await atWorkNo(2);
  expect(three.input).toEqual({ n: 3 });
  one.finish(null);
  three.finish([3]);
  expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED' });
  expect(await states.ended(third)).toMatchObject({ status: 'SUCCEEDED', output: [3] });
  expect(peak.atWork).toBe(2);
  expect(await readKey('k')).toMatchObject({ used: 0, waiting: 0 });
});

it('the wrapper with a limit asks acquire only for what its input has', async () => {
  const { run, asked, targets, atWorkNo, running } = await wrapped();
  const lease = { key: 'k', ttlSeconds: 600, parkSeconds: 3600, requestId: expect.any(String) };
  const inputs = [
    {},
    { limit: 3 },
    { limit: 8, weight: 4, mode: 'shared', holder: 'me', parkSeconds: 60 },
    { mode: 'exclusive' },
    { mode: 'shared' },
    { graceSeconds: 60 },
    { replace: 'waiting' },
    { limit: 3, graceSeconds: 0 },
  ];
  for (const [at, input] of inputs.entries()) {
    const arn = await run({ key: `k${at}`, ...input });
    await atWorkNo(at);
    expect(asked.at(-1)).toEqual({
      ...{ ...lease, holder: arn, taskToken: expect.any(String), execution: arn, target: targets.get(arn) },
      ...{ ...input, key: `k${at}` },
    });
    running.at(-1)?.finish(null);
    expect((await states.ended(arn)).status).toBe('SUCCEEDED');
  }
});

it('the wrapper with replace runs the newest execution, and supersedes older ones', async () => {
  const { run, atWorkNo, inLine, asked, running } = await wrapped({ replace: 'waiting' });
  const first = await run({ input: { n: 1 } });
  const one = await atWorkNo(0);
  const older = await run({ input: { n: 2 } });
  await inLine(1);
  const newest = await run({ input: { n: 3 }, holder: 'newest' });
  expect(await states.ended(older)).toMatchObject({ status: 'FAILED', error: 'Superseded' });
  expect(asked).toHaveLength(3);
  one.finish(null);
  const next = await atWorkNo(1);
  expect(next.input).toEqual({ n: 3 });
  next.finish(null);
  expect([(await states.ended(first)).status, (await states.ended(newest)).status]).toEqual(['SUCCEEDED', 'SUCCEEDED']);
  expect(running).toHaveLength(2);
});

it('the wrapper with a mode runs readers at once, and a writer alone', async () => {
  const { run, atWorkNo, inLine, readKey } = await wrapped();
  const readers = [await run({ mode: 'shared' }), await run({ mode: 'shared' })];
  const reading = [await atWorkNo(0), await atWorkNo(1)];
  const writer = await run({ mode: 'exclusive' });
  await inLine(1);
  const late = await run({ mode: 'shared' });
  await inLine(2);
  for (const { finish } of reading) finish(null);
  for (const reader of readers) await states.ended(reader);
  const writing = await atWorkNo(2);
  expect(await readKey('k')).toMatchObject({ holders: [{ holder: writer, mode: 'exclusive' }], waiting: 1 });
  writing.finish(null);
  (await atWorkNo(3)).finish(null);
  expect((await states.ended(writer)).status).toBe('SUCCEEDED');
  expect((await states.ended(late)).status).toBe('SUCCEEDED');
});

it.each([
  ['weight', { weight: 2 }],
  ['weight', { limit: 2, weight: 3 }],
  ['weight', { mode: 'exclusive', weight: 2 }],
  ['limit', { mode: 'exclusive', limit: 2 }],
  ['limit', { limit: 0 }],
  ['limit', { limit: null }],
  ['limit', { limit: '2' }],
  ['limit', { limit: [2] }],
  ['mode', { mode: 'sharded' }],
  ['key', { key: 7, limit: 2 }],
])('the wrapper with a limit fails by the name of %s for %j', async (field, input) => {
  const { run, running, readKey } = await wrapped();
  const failed = await states.ended(await run(input));
  expect(failed).toMatchObject({ status: 'FAILED', error: 'InvalidRequest' });
  expect(JSON.parse(failed.cause ?? '')).toMatchObject({ code: 'InvalidRequest', issues: [{ path: field }] });
  expect(running).toHaveLength(0);
  expect(await readKey('k')).toMatchObject({ state: 'free', waiting: 0 });
});

it('the wrapper with a limit waits and fails as for a lease', async () => {
  states = await statesWorld();
  const { States } = JSON.parse(await readFile('functions/leases/exclusive.asl.json', 'utf8'));
  const { Parameters: permit, ...asPermit } = States['Acquire with the fields'];
  const { Parameters: lease, ...asLease } = States.Acquire;
  expect(asPermit).toEqual(asLease);
  expect(permit.FunctionName).toBe(lease.FunctionName);
});
