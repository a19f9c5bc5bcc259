import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { GetExecutionHistoryCommand } from '@aws-sdk/client-sfn';
import aslValidator from 'asl-validator';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { evaluate } from '../../local/step-functions/jsonata.ts';
import { statesWorld } from '../support/emulators/states.ts';
import { boom, EXAMPLES, example, exclusionWorld } from '../support/stack/exclusion.ts';
import { aFew, isFull } from '../support/time/rounds.ts';

let states: Awaited<ReturnType<typeof exclusionWorld>>['states'];
afterEach(() => states.stop());

/**
 * A world in which pauses and polls take milliseconds.
 * @param limitSecondMs how long a second of a timeout takes: no task runs out of time unless a test is about that
 */
async function fastWorld(limitSecondMs = 1000, secondMs = 5) {
  const world = await exclusionWorld((handlers) => statesWorld({ handlers, secondMs, limitSecondMs }));
  states = world.states;
  return world;
}

describe('the definitions', () => {
  // The validator takes a second for all of them.
  it.runIf(isFull)('the definitions are valid', async () => {
    states = await statesWorld();
    const { stateMachines } = inject('service');
    const values = Object.fromEntries(
      [
        'AcquireFunctionArn',
        'ReleaseFunctionArn',
        'RateReserveFunctionArn',
        'OnceBeginFunctionArn',
        'OnceCompleteFunctionArn',
        'WorkFunctionArn',
        'ExclusiveStateMachineArn',
        'TargetStateMachineArn',
      ].map((name) => [name, `arn:aws:lambda:us-east-1:000000000000:function:${name}`]),
    );
    const examples = await Promise.all(EXAMPLES.map((name) => example(name, values)));
    for (const machine of [...stateMachines.map(({ definition }) => JSON.parse(definition)), ...examples]) {
      const { isValid, errorsText } = aslValidator(machine);
      expect(errorsText('\n')).toBe('');
      expect(isValid).toBe(true);
    }
  });
});

it.runIf(isFull)('the commands of docs/step-functions.md run as they are written', async () => {
  const { exclusive } = await fastWorld();
  const guide = await readFile('docs/step-functions.md', 'utf8');
  const commands = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block).join('');
  const here = commands
    .replaceAll('http://127.0.0.1:8083', states.endpoint)
    .replaceAll('holdfast-local-exclusive', exclusive.replace(/.*:/, ''));
  const { stdout } = await promisify(execFile)('bash', ['-euc', here]);
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(answers.map((answer) => Object.keys(answer)[0])).toEqual([
    ...['stateMachineArn', 'executionArn', 'executionArn', 'executions', 'executionArn'],
  ]);
  expect(await states.ended(answers[4].executionArn)).toMatchObject({ status: 'SUCCEEDED', output: { run: 'two' } });
});

describe.each(aFew(1, ['retry', 'parked'] as const))('the example %s', (name) => {
  /** Two executions on one key, the second of which finds the lease held. */
  async function two(limitSecondMs?: number, secondMs?: number) {
    const world = await fastWorld(limitSecondMs, secondMs);
    const machine = await states.create(name, await example(name, world.values));
    const start = (input: string) => states.start(machine, { key: 'jobs/nightly', input });
    const first = await start('first');
    const one = await world.atWorkNo(0);
    const second = await start('second');
    return { ...world, first, one, second };
  }

  it('the example lets one execution in after the other, with rising fences', async () => {
    const { first, one, second, atWorkNo, peak, state } = await two();
    one.finish('done');
    expect(await states.ended(first)).toMatchObject({ status: 'SUCCEEDED', output: 'done' });
    const next = await atWorkNo(1);
    const token = (input: Record<string, unknown>) => (input.fence as { token: number }).token;
    expect(token(next.input)).toBeGreaterThan(token(one.input));
    next.finish('done too');
    expect(await states.ended(second)).toMatchObject({ status: 'SUCCEEDED', output: 'done too' });
    expect(peak.atWork).toBe(1);
    expect(await state('jobs/nightly')).toBe('released');
  });

  it('the example costs a transition a poll, or one if it is parked', async () => {
    const { one, second, atWorkNo, requestIds, waiting } = await two();
    if (name === 'parked') await waiting(1, 'jobs/nightly');
    else await expect.poll(() => requestIds.length).toBeGreaterThan(3); // one request of the first execution, and three of the second
    one.finish(null);
    (await atWorkNo(1)).finish(null);
    await states.ended(second);
    const { events = [] } = await states.sfn.send(new GetExecutionHistoryCommand({ executionArn: second }));
    const acquired = events.findIndex(({ stateEnteredEventDetails: entered }) => entered?.name === 'Work');
    const attempts = events.slice(0, acquired).filter(({ type }) => type === 'TaskScheduled').length;
    if (name === 'parked') expect(attempts).toBe(1);
    else expect(attempts).toBeGreaterThan(2);
  });

  it('the example frees the lease when the work fails, and fails with its error', async () => {
    const { first, one, second, atWorkNo } = await two();
    one.fail(boom());
    const failed = await states.ended(first);
    expect(failed).toMatchObject({ status: 'FAILED', error: 'Boom' });
    expect(JSON.parse(failed.cause ?? '')).toMatchObject({ errorType: 'Boom', errorMessage: 'why' });
    (await atWorkNo(1)).finish(null);
    expect((await states.ended(second)).status).toBe('SUCCEEDED');
  });

  it('the example keeps the lease when the work runs out of time', async () => {
    const { first, running, state } = await two(1, 1000);
    const history = async () => {
      const { events = [] } = await states.sfn.send(new GetExecutionHistoryCommand({ executionArn: first }));
      return events.map(({ type }) => type);
    };
    await expect.poll(history, { interval: 5 }).toContain('WaitStateEntered');
    expect((await states.describe(first)).status).toBe('RUNNING');
    expect(await state('jobs/nightly')).toBe('held');
    expect(running).toHaveLength(1);
  });

  it('the example leaves the lease to its function when the execution is stopped', async () => {
    const { first, running, lease } = await two();
    await states.abort(first);
    await expect.poll(() => lease('jobs/nightly'), { interval: 5 }).toMatchObject({ state: 'held', inGrace: true });
    expect((await lease('jobs/nightly')).remainingMs).toBeLessThanOrEqual(60_000);
    expect(running).toHaveLength(1); // the function of the first works on
  });
});

/** A request id: a UUID, and the number of redrives. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-0$/;

describe.each(aFew(1, ['retry', 'parked', 'exclusive'] as const))('the example of %s', (name) => {
  async function ready() {
    const world = await fastWorld();
    const machine =
      name === 'exclusive' ? world.exclusive : await states.create(name, await example(name, world.values));
    const input = { key: name, ttlSeconds: 300, stateMachineArn: world.target, input: {} };
    return { ...world, start: () => states.start(machine, input) };
  }

  it('the request id stays over a Retry, and is another one in each execution', async () => {
    const { start, acquire, release, requestIds, lostAnswers, atWorkNo } = await ready();
    const seen = new Set<string | undefined>();
    for (const no of [0, 1]) {
      requestIds.length = 0;
      const held = (await acquire({ key: name, holder: 'before' })) as { leaseId: string };
      if (name !== 'retry') lostAnswers.push('OutcomeUnknown'); // it is refused while the lease is held, and so tries again
      const arn = await start();
      await expect.poll(() => requestIds.length, { interval: 5 }).toBeGreaterThan(1);
      await release({ key: name, leaseId: held.leaseId });
      (await atWorkNo(no)).finish(null);
      expect((await states.ended(arn)).status).toBe('SUCCEEDED');
      expect(new Set(requestIds).size).toBe(1);
      expect(requestIds[0]).toMatch(UUID);
      seen.add(requestIds[0]);
    }
    expect(seen.size).toBe(2);
  });

  it('the request id cannot be worked out from what callers see', async () => {
    const { start, acquire, atWorkNo } = await ready();
    const arn = await start();
    const { finish } = await atWorkNo(0);
    const { events = [] } = await states.sfn.send(new GetExecutionHistoryCommand({ executionArn: arn }));
    const entered = events.find(({ type }) => type === 'TaskStateEntered')?.timestamp?.getTime() ?? 0;
    const instants = Array.from({ length: 21 }, (_, ms) => new Date(entered - 10 + ms).toISOString());
    for (const guess of [arn, ...instants.map((instant) => `${arn} Acquire ${instant}`)]) {
      const requestId = createHash('sha256').update(guess).digest('hex');
      const attack = acquire({ key: name, holder: arn, requestId });
      await expect(attack, guess).rejects.toMatchObject({ name: 'LeaseHeld' });
    }
    finish(null);
    expect((await states.ended(arn)).status).toBe('SUCCEEDED');
  });

  it('a grant that comes too late does not start work, and is released', async () => {
    const { start, fallBehind, running, state } = await ready();
    fallBehind(300_000);
    const error = name === 'exclusive' ? 'Exclusive.TooLate' : 'Work.TooLate';
    expect(await states.ended(await start())).toMatchObject({ status: 'FAILED', error });
    expect(running).toHaveLength(0);
    expect(await state(name)).toBe('released');
  });

  it('the time to work follows remainingMs or expiresAt, whichever is less', async () => {
    const { values } = await ready();
    const text = await readFile('functions/leases/exclusive.asl.json', 'utf8');
    const { States } = name === 'exclusive' ? JSON.parse(text) : await example(name, values);
    const left = async (remainingMs: number, enteredTime: string) => {
      const grant = { remainingMs, expiresAt: '2026-01-01T00:05:00.000Z' };
      const context = { State: { EnteredTime: enteredTime } };
      const output = await evaluate(States['Time left'].Output, { input: { kept: [1], grant }, context });
      expect(output).toMatchObject({ kept: [1], grant });
      const { runSeconds, workSeconds } = output as Record<string, number>;
      return runSeconds ?? workSeconds;
    };
    const spared = name === 'exclusive' ? 1 : 60;
    expect(await left(300_000, '2026-01-01T00:00:00.000Z')).toBe(300 - spared);
    expect(await left(299_999, '2026-01-01T00:00:00.400Z')).toBe(name === 'exclusive' ? 299 : 239);
    expect(await left(300_000, '2026-01-01T00:01:00.500Z')).toBe(name === 'exclusive' ? 239 : 179);
    expect(await left(200_000, '2025-12-31T23:00:00.000Z')).toBe(200 - spared);
    expect(await left(300_000, '2026-01-01T00:05:01.000Z')).toBeLessThan(1);
  });
});

describe('the wrapper exclusive', () => {
  async function wrapped(more: object = {}, limitSecondMs?: number) {
    const world = await fastWorld(limitSecondMs);
    const run = (input: object, name?: string, key = 'k', fields: object = {}) =>
      states.start(
        world.exclusive,
        { key, ttlSeconds: 600, stateMachineArn: world.target, input, ...more, ...fields },
        name,
      );
    return { ...world, run };
  }

  it('the wrapper names the execution of the target before it starts the target', async () => {
    const { run, atWorkNo, targets, target } = await wrapped();
    const arn = await run({});
    (await atWorkNo(0)).finish(null);
    await states.ended(arn);
    expect((await states.describe(targets.get(arn) ?? '')).stateMachineArn).toBe(target);
  });

  it.each([
    ['order-42', /:target:order-42-[0-9a-f]{32}$/],
    ['x'.repeat(80), /:target:x{47}-[0-9a-f]{32}$/],
  ])('the name of the target begins with that of the wrapper, here %s', async (name, expected) => {
    const { run, atWorkNo, targets } = await wrapped();
    const arn = await run({}, name);
    (await atWorkNo(0)).finish(null);
    await states.ended(arn);
    expect(targets.get(arn)).toMatch(expected);
  });

  const why = (code: string, by: string) =>
    JSON.stringify({ code, key: 'k', target: '', detail: `ended by ${by} without a cause` });
  it.each([
    [{ Type: 'Fail' }, 'FAILED', why('FAILED', 'FAILED')],
    [{ Type: 'Fail', Error: 'OnlyThis' }, 'OnlyThis', 'Execution failed because of a Fail state'], // the cause is that of the local interpreter
    [{ Type: 'Fail', Error: 'Boom', Cause: 'plain' }, 'Boom', 'plain'],
    [
      { Type: 'Task', Resource: 'arn:aws:lambda:us-east-1:000000000000:function:work', End: true },
      'Exclusive.States.Timeout',
      why('Exclusive.States.Timeout', 'States.Timeout'),
    ],
  ])('the wrapper fails as the target that ends by %j', async (last, error, cause) => {
    const { exclusive, state, targets } = await wrapped({}, 5);
    const target = await states.create('ending', { StartAt: 'a', States: { a: last }, TimeoutSeconds: 10 });
    const arn = await states.start(exclusive, { key: 'k', ttlSeconds: 600, stateMachineArn: target });
    const expected = cause.replace('"target":""', `"target":"${targets.get(arn)}"`);
    expect(await states.ended(arn)).toMatchObject({ status: 'FAILED', error, cause: expected });
    expect(await state('k')).toBe('released');
  });

  it('the wrapper stops a target that would outlive the lease, and frees it', async () => {
    const { run, targets, atWorkNo, state } = await wrapped({ ttlSeconds: 30 }, 5);
    const arn = await run({});
    await atWorkNo(0);
    expect(await states.ended(arn)).toMatchObject({ status: 'FAILED', error: 'Exclusive.States.Timeout' });
    expect((await states.describe(targets.get(arn) ?? '')).status).toBe('ABORTED');
    expect(await state('k')).toBe('released');
  });

  it("the wrapper with graceSeconds leaves the lease to a failed target's functions", async () => {
    const { run, atWorkNo, targets, lease } = await wrapped({ ttlSeconds: 30, graceSeconds: 20 }, 5);
    const failing = await run({});
    (await atWorkNo(0)).fail(boom());
    expect(await states.ended(failing)).toMatchObject({ status: 'FAILED', error: 'Boom' });
    await expect.poll(() => lease('k'), { interval: 5 }).toMatchObject({ state: 'held', inGrace: true });
    const endless = await run({}, 'other', 'k2');
    await atWorkNo(1);
    expect(await states.ended(endless)).toMatchObject({ status: 'FAILED', error: 'Exclusive.States.Timeout' });
    expect((await states.describe(targets.get(endless) ?? '')).status).toBe('ABORTED');
    await expect.poll(() => lease('k2'), { interval: 5 }).toMatchObject({ state: 'held', inGrace: true });
  });

  it('the wrapper fails as a start that was refused, and frees the lease', async () => {
    const { run, state, exclusive, target } = await wrapped();
    const missing = await states.start(exclusive, { key: 'k', ttlSeconds: 600, stateMachineArn: `${target}s` });
    const refused = { status: 'FAILED', error: 'StepFunctions.StateMachineDoesNotExistException' };
    const failed = await states.ended(missing);
    expect(failed).toMatchObject(refused);
    expect(JSON.parse(failed.cause ?? '')).toEqual({ code: refused.error, key: 'k', detail: expect.any(String) });
    const unreadable = await run('not JSON' as never);
    expect(await states.ended(unreadable)).toMatchObject({ error: 'StepFunctions.InvalidExecutionInputException' });
    expect(await state('k')).toBe('released');
  });

  it('the wrapper stops its target when it is stopped while it holds', async () => {
    const { run, targets, atWorkNo, waiting } = await wrapped();
    const first = await run({});
    await atWorkNo(0);
    const second = await run({});
    await waiting(1);
    await states.abort(first);
    expect((await states.ended(targets.get(first) ?? '')).status).toBe('ABORTED');
    (await atWorkNo(1)).finish(null);
    expect((await states.ended(second)).status).toBe('SUCCEEDED');
  });

  it('the wrapper fails with LeaseHeld, without a target, if the holder stays', async () => {
    const { run, expire, running, atWorkNo, waiting } = await wrapped();
    const first = await run({});
    const one = await atWorkNo(0);
    const second = await run({});
    await waiting(1);
    await expire();
    const failed = await states.ended(second);
    expect(failed).toMatchObject({ status: 'FAILED', error: 'LeaseHeld' });
    expect(JSON.parse(failed.cause ?? '')).toMatchObject({ code: 'LeaseHeld', key: 'k', holder: first });
    expect(running).toHaveLength(1);
    one.finish(null);
    await states.ended(first);
  });

  it('the wrapper refuses what acquire refuses, and inputs that lack a field', async () => {
    const { run, running, exclusive } = await wrapped({ ttlSeconds: 1 });
    const refused = await states.ended(await run({}));
    expect(refused).toMatchObject({ status: 'FAILED', error: 'InvalidRequest' });
    const why = { code: 'InvalidRequest', key: 'k', issues: [{ path: 'ttlSeconds' }], traceId: expect.any(String) };
    expect(JSON.parse(refused.cause ?? '')).toMatchObject(why);
    const keyless = await states.ended(
      await states.start(exclusive, {
        ttlSeconds: 60,
        stateMachineArn: 'arn:aws:states:us-east-1:000000000000:stateMachine:t',
      }),
    );
    expect(keyless).toMatchObject({ status: 'FAILED', error: 'InvalidRequest' });
    expect(JSON.parse(keyless.cause ?? '')).toEqual({ code: 'InvalidRequest', detail: 'key: is missing' });
    const misspelt = await states.ended(await run({}, undefined, 'k', { limt: 5, stateMachineArn: undefined }));
    const detail = 'limt: is not a known field; stateMachineArn: is missing';
    expect(JSON.parse(misspelt.cause ?? '')).toEqual({ code: 'InvalidRequest', key: 'k', detail });
    expect(running).toHaveLength(0);
  });

  it("the wrapper gives another state machine the target's output or error", async () => {
    const { atWorkNo, values } = await wrapped();
    const caller = await states.create('caller', await example('call-exclusive', values));
    const good = await states.start(caller, { key: 'k', input: { n: 1 } });
    const one = await atWorkNo(0);
    expect(one.input).toMatchObject({ n: 1, holdfast: { key: 'k' } });
    one.finish({ made: 1 });
    expect(await states.ended(good)).toMatchObject({ output: { made: 1 } });
    const bad = await states.start(caller, { key: 'k', input: {} });
    (await atWorkNo(1)).fail(boom());
    const failed = await states.ended(bad);
    expect(failed).toMatchObject({ status: 'FAILED', error: 'States.TaskFailed' });
    expect(JSON.parse(failed.cause ?? '')).toMatchObject({ Error: 'Boom' });
  });
});

/** The example once, in a world in which pauses and polls take milliseconds. */
async function readyOnce(limitSecondMs = 1000, secondMs = 5) {
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

  it('the example once works in the first execution, and later returns its result', async () => {
    const { start, done, atWorkNo, running } = await readyOnce();
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

  it("the example once fails with the work's error, and frees the slot", async () => {
    const { start, atWorkNo, visited } = await readyOnce();
    const first = await start('a');
    (await atWorkNo(0)).fail(boom());
    expect(await states.ended(first)).toMatchObject({ status: 'FAILED', error: 'Boom' });
    expect(await visited(first)).toContain('Release after failure');
    const second = await start('a');
    (await atWorkNo(1)).finish('second');
    expect(await states.ended(second)).toMatchObject({ status: 'SUCCEEDED', output: 'second' });
  });

  it('the example once frees the slot if the execution is stopped, and stores nothing', async () => {
    const { start, atWorkNo, done } = await readyOnce();
    const first = await start('a');
    await atWorkNo(0);
    await states.abort(first);
    await expect.poll(() => done(), { interval: 5 }).toMatchObject({ state: 'released', done: null });
    const second = await start('a');
    (await atWorkNo(1)).finish('second');
    expect(await states.ended(second)).toMatchObject({ status: 'SUCCEEDED', output: 'second' });
  });

  it('the example once keeps the slot if the work runs out of time', async () => {
    const { start, atWorkNo, visited, done } = await readyOnce(1, 1000);
    const first = await start('a');
    await atWorkNo(0);
    await expect.poll(() => visited(first), { interval: 5 }).toContain('Wait for the expiry');
    expect(await done()).toMatchObject({ state: 'held', done: null });
  });
});
