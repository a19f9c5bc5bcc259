import {
  GetExecutionHistoryCommand,
  ListExecutionsCommand,
  ListStateMachinesCommand,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
} from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { LambdaHandler } from '../../local/lambda.ts';
import type { Execution } from '../../local/step-functions/execution.ts';
import { performTask } from '../../local/step-functions/integrations.ts';
import { Tokens } from '../../local/step-functions/tokens.ts';
import { oneTask, type StatesWorld, statesWorld } from '../support/emulators/states.ts';

let world: StatesWorld;
afterEach(() => world.stop());

const waitForToken = (more: object = {}, payload: object = { 'taskToken.$': '$$.Task.Token' }) =>
  oneTask({
    Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
    Parameters: { FunctionName: 'park', Payload: payload },
    ...more,
  });

/** Keeps the tokens that it is given. */
function parking() {
  const tokens: string[] = [];
  const park: LambdaHandler = async (event) => void tokens.push((event as { taskToken: string }).taskToken);
  const token = async (index = 0) => {
    await expect.poll(() => tokens.length, { interval: 2 }).toBeGreaterThan(index);
    return tokens[index] ?? '';
  };
  return { park, token };
}

const named = (name: string) => expect.objectContaining({ name });

describe('executions', () => {
  it('a second start with the same name and input returns the running execution', async () => {
    const { park, token } = parking();
    world = await statesWorld({ handlers: { park } });
    const machine = await world.create('parked', waitForToken());
    const first = await world.start(machine, { a: 1 }, 'once');
    expect(await world.start(machine, { a: 1 }, 'once')).toBe(first);
    await expect(world.start(machine, { a: 2 }, 'once')).rejects.toEqual(named('ExecutionAlreadyExists'));
    await world.sfn.send(new SendTaskSuccessCommand({ taskToken: await token(), output: '{"done":true}' }));
    expect(await world.ended(first)).toMatchObject({ status: 'SUCCEEDED', output: { done: true } });
    await expect(world.start(machine, { a: 1 }, 'once')).rejects.toEqual(named('ExecutionAlreadyExists'));
    const { executions } = await world.sfn.send(new ListExecutionsCommand({ stateMachineArn: machine }));
    expect(executions).toMatchObject([{ name: 'once', status: 'SUCCEEDED' }]);
    const { stateMachines } = await world.sfn.send(new ListStateMachinesCommand({}));
    expect(stateMachines?.map(({ name }) => name)).toEqual(['holdfast-test-exclusive', 'parked']);
  });

  it('executions put their start and every end on the event bus', async () => {
    const { park } = parking();
    world = await statesWorld({ handlers: { park } });
    const ends = {
      SUCCEEDED: { StartAt: 'a', States: { a: { Type: 'Pass', Result: { b: 1 }, End: true } } },
      FAILED: { StartAt: 'a', States: { a: { Type: 'Fail', Error: 'Broken', Cause: 'why' } } },
      TIMED_OUT: { ...waitForToken(), TimeoutSeconds: 2 },
      ABORTED: waitForToken(),
    };
    for (const [status, definition] of Object.entries(ends)) {
      const arn = await world.start(await world.create(status, definition), { in: status });
      if (status === 'ABORTED') await world.abort(arn);
      expect((await world.ended(arn)).status).toBe(status);
      await expect.poll(() => world.statuses.filter((one) => one.executionArn === arn).length, { interval: 2 }).toBe(2);
      const [start, end] = world.statuses.filter((one) => one.executionArn === arn);
      expect(start).toMatchObject({ status: 'RUNNING', stopDate: null, output: null });
      expect(end).toMatchObject({ status, input: JSON.stringify({ in: status }), stopDate: expect.any(Number) });
      if (status === 'FAILED') expect(end).toMatchObject({ error: 'Broken', cause: 'why', output: null });
      if (status === 'SUCCEEDED') expect(end).toMatchObject({ output: '{"b":1}' });
    }
  });
});

describe('Pass states in JSONata', () => {
  const pass = (state: object) => ({
    StartAt: 'a',
    States: { a: { Type: 'Pass', QueryLanguage: 'JSONata', ...state } },
  });

  it('a Pass state makes its output of the input and its own context', async () => {
    world = await statesWorld();
    const expressions = {
      sum: '{% $sum($states.input.numbers) %}',
      kept: ['{% $states.input.one %}', 'text', null, 7],
      state: '{% $states.context.State.Name %}',
      running: '{% $toMillis($states.context.State.EnteredTime) > 0 and $states.context.Execution.Name = "me" %}',
    };
    const started = await world.start(
      await world.create('jsonata', pass({ Output: expressions, End: true })),
      { numbers: [1, 2, 3], one: [[1]] },
      'me',
    );
    const output = { sum: 6, kept: [[[1]], 'text', null, 7], state: 'a', running: true };
    expect(await world.ended(started)).toMatchObject({ status: 'SUCCEEDED', output });
    const same = await world.start(await world.create('same', pass({ End: true })), { a: [1] });
    expect(await world.ended(same)).toMatchObject({ status: 'SUCCEEDED', output: { a: [1] } });
  });

  it('the local stack refuses other states in JSONata, and variables', async () => {
    world = await statesWorld();
    const task = oneTask({ Resource: 'arn:aws:lambda:us-east-1:000000000000:function:x', QueryLanguage: 'JSONata' });
    const whole = { QueryLanguage: 'JSONata', ...pass({ End: true }) };
    const assigning = pass({ Assign: { a: '{% 1 %}' }, End: true });
    for (const definition of [task, whole, assigning])
      await expect(world.create('other', definition)).rejects.toEqual(named('InvalidDefinition'));
  });
});

describe('task tokens', () => {
  it('a task token is taken once, and an unknown one is refused', async () => {
    const { park, token } = parking();
    world = await statesWorld({ handlers: { park } });
    const machine = await world.create('parked', waitForToken());
    await world.start(machine);
    const taskToken = await token();
    const success = (value = taskToken) =>
      world.sfn.send(new SendTaskSuccessCommand({ taskToken: value, output: '1' }));
    const big = new SendTaskSuccessCommand({ taskToken, output: JSON.stringify('x'.repeat(262_144)) });
    await expect(world.sfn.send(big)).rejects.toEqual(named('ValidationException'));
    await expect(world.sfn.send(new SendTaskSuccessCommand({ taskToken, output: '{' }))).rejects.toEqual(
      named('InvalidOutput'),
    );
    await success();
    for (const late of [success(), world.sfn.send(new SendTaskFailureCommand({ taskToken }))])
      await expect(late).rejects.toEqual(named('TaskTimedOut'));
    await expect(success('none')).rejects.toEqual(named('InvalidToken'));
    await expect(success(taskToken.replace(/.{8}$/, '00000000'))).rejects.toEqual(named('TaskDoesNotExist'));

    const stopped = await world.start(machine);
    const dead = await token(1);
    await world.abort(stopped);
    await expect(success(dead)).rejects.toEqual(named('TaskTimedOut'));
  });

  it('task tokens end at their timeout, which States.TaskFailed does not catch', async () => {
    const { park, token } = parking();
    world = await statesWorld({ handlers: { park }, secondMs: 20 });
    const never = [{ ErrorEquals: ['States.TaskFailed'], Next: 'Task' }];
    const late = await world.start(await world.create('late', waitForToken({ TimeoutSeconds: 1, Catch: never })));
    expect(await world.ended(late)).toMatchObject({ status: 'FAILED', error: 'States.Timeout' });
    await expect(world.sfn.send(new SendTaskSuccessCommand({ taskToken: await token(), output: '1' }))).rejects.toEqual(
      named('TaskTimedOut'),
    );

    const silent = await world.start(await world.create('silent', waitForToken({ HeartbeatSeconds: 1 })));
    expect(await world.ended(silent)).toMatchObject({ status: 'FAILED', error: 'States.Timeout' });

    const beating = await world.start(await world.create('beating', waitForToken({ HeartbeatSeconds: 10_000 })));
    await world.sfn.send(new SendTaskHeartbeatCommand({ taskToken: await token(2) }));
    await world.abort(beating);
  });

  it('a task token lives on from heartbeat to heartbeat', async () => {
    world = await statesWorld();
    vi.useFakeTimers();
    const tokens = new Tokens();
    const [token, resource] = ['token', 'arn:aws:states:::lambda:invoke.waitForTaskToken'];
    const around = { tokens, invoke: async () => null, start: () => expect.fail(), execution: () => expect.fail() };
    const execution = { name: 'beating', signal: new AbortController().signal } as Execution;
    const limits = { timeoutMs: undefined, heartbeatMs: 100 };
    const task = performTask(around, execution, { state: 'Task', resource, parameters: {}, token, ...limits });
    const outcome = task.catch((error: Error) => error.name);
    for (let beat = 0; beat < 4; beat++) {
      await vi.advanceTimersByTimeAsync(90);
      tokens.find(token).beat();
    }
    await vi.advanceTimersByTimeAsync(100);
    expect(await outcome).toBe('States.Timeout');
    expect(() => tokens.find(token)).toThrow(expect.objectContaining({ name: 'TaskTimedOut' }));
    vi.useRealTimers();
  });

  it('task tokens are new at every retry, in a state that was entered once', async () => {
    const seen: Record<string, unknown>[] = [];
    const park: LambdaHandler = async (event) => void seen.push(event as Record<string, unknown>);
    world = await statesWorld({ handlers: { park } });
    const retry = { Retry: [{ ErrorEquals: ['Again'], IntervalSeconds: 1 }] };
    const context = {
      'taskToken.$': '$$.Task.Token',
      'entered.$': '$$.State.EnteredTime',
      'retries.$': '$$.State.RetryCount',
      'id.$': "States.Format('{}/{}', $$.Execution.Id, $$.State.Name)",
    };
    const arn = await world.start(await world.create('again', waitForToken(retry, context)), {}, 'me');
    for (const attempt of [0, 1]) {
      await expect.poll(() => seen.length, { interval: 2 }).toBe(attempt + 1);
      const taskToken = String(seen[attempt]?.taskToken);
      const failed = new SendTaskFailureCommand({ taskToken, error: attempt ? 'Enough' : 'Again', cause: 'why' });
      await world.sfn.send(failed);
    }
    expect(await world.ended(arn)).toMatchObject({ status: 'FAILED', error: 'Enough', cause: 'why' });
    const [first, second] = seen;
    expect(second).toEqual({ ...first, taskToken: expect.any(String), retries: 1 });
    expect(second?.taskToken).not.toBe(first?.taskToken);
    expect(first).toMatchObject({ id: `${arn}/Task`, retries: 0, entered: expect.stringMatching(/^\d{4}-.*Z$/) });
    const { events = [] } = await world.sfn.send(new GetExecutionHistoryCommand({ executionArn: arn }));
    expect(events.map(({ type }) => type)).toEqual([
      ...['ExecutionStarted', 'TaskStateEntered'],
      ...['TaskScheduled', 'TaskScheduled'], // one for each attempt
      'ExecutionFailed',
    ]);
  });
});

describe('functions', () => {
  it('functions give their result in Payload, or directly by a plain ARN', async () => {
    const work: LambdaHandler = async (event) => {
      if (event !== 'good') throw Object.assign(new Error('no luck'), { name: 'WorkFailed', stack: 'WorkFailed' });
      return { made: 1, left: undefined };
    };
    world = await statesWorld({ handlers: { work } });
    const arn = 'arn:aws:lambda:us-east-1:000000000000:function:work';
    const invoke = oneTask({
      Resource: 'arn:aws:states:::lambda:invoke',
      Parameters: { FunctionName: arn, 'Payload.$': '$.payload' },
    });
    const invoking = await world.create('invoking', invoke);
    expect(await world.ended(await world.start(invoking, { payload: 'good' }))).toMatchObject({
      output: { Payload: { made: 1 }, StatusCode: 200 },
    });
    const failed = await world.ended(await world.start(invoking, { payload: 'bad' }));
    expect(failed).toMatchObject({ status: 'FAILED', error: 'WorkFailed' });
    expect(JSON.parse(failed.cause ?? '')).toEqual({
      errorType: 'WorkFailed',
      errorMessage: 'no luck',
      trace: ['WorkFailed'],
    });
    const plain = await world.create('plain', oneTask({ Resource: arn, InputPath: '$.payload' }));
    expect((await world.ended(await world.start(plain, { payload: 'good' }))).output).toEqual({ made: 1 });
    const missing = await world.create('missing', oneTask({ Resource: `${arn}-none` }));
    expect((await world.ended(await world.start(missing))).error).toBe('Lambda.ResourceNotFoundException');
  });

  it('functions end at their timeouts, and at 256 KiB between states', async () => {
    const handlers = { slow: () => new Promise<never>(() => {}), big: async () => 'x'.repeat(256 * 1024) };
    world = await statesWorld({ handlers, timeoutSeconds: 0.02 });
    const ended = async (name: string) => {
      const all = { Retry: [{ ErrorEquals: ['States.ALL'] }], Catch: [{ ErrorEquals: ['States.ALL'], Next: 'Task' }] };
      const resource = `arn:aws:lambda:us-east-1:000000000000:function:${name}`;
      const task = oneTask({ Resource: resource, ...(name === 'big' && all) });
      return world.ended(await world.start(await world.create(name, task)));
    };
    expect(await ended('slow')).toMatchObject({ status: 'FAILED', error: 'Sandbox.Timedout' });
    expect(await ended('big')).toMatchObject({ status: 'FAILED', error: 'States.DataLimitExceeded' });
  });
});

describe('nested executions', () => {
  const child = (pattern: string, target: string) =>
    oneTask({
      Resource: `arn:aws:states:::states:startExecution${pattern}`,
      Parameters: { StateMachineArn: target, 'Name.$': '$.name', Input: { from: 'parent' } },
    });

  it('nested executions are waited for with .sync and .sync:2, and fail with their description', async () => {
    world = await statesWorld();
    const good = await world.create('good', { StartAt: 'a', States: { a: { Type: 'Pass', End: true } } });
    const bad = await world.create('bad', { StartAt: 'a', States: { a: { Type: 'Fail', Error: 'E', Cause: 'C' } } });
    const run = async (pattern: string, target: string, name: string) =>
      world.ended(await world.start(await world.create(name, child(pattern, target)), { name }));
    expect((await run('', good, 'started')).output).toMatchObject({
      ExecutionArn: expect.stringContaining(':started'),
    });
    expect((await run('.sync', good, 'sync')).output).toMatchObject({
      Output: '{"from":"parent"}',
      Status: 'SUCCEEDED',
    });
    expect((await run('.sync:2', good, 'sync2')).output).toMatchObject({ Output: { from: 'parent' } });
    const failed = await run('.sync:2', bad, 'failed');
    expect(failed.error).toBe('States.TaskFailed');
    expect(JSON.parse(failed.cause ?? '')).toMatchObject({ Error: 'E', Cause: 'C', Status: 'FAILED' });
    expect(await run('.sync:2', good, 'sync2-again')).toMatchObject({ status: 'SUCCEEDED' });
    const again = await world.create('twice', child('', good));
    expect((await world.ended(await world.start(again, { name: 'sync2' }))).error).toBe(
      'StepFunctions.ExecutionAlreadyExistsException',
    );
  });

  it('nested executions are stopped with the execution that waits for them', async () => {
    const { park, token } = parking();
    world = await statesWorld({ handlers: { park } });
    const target = await world.create('target', waitForToken());
    const parent = await world.start(await world.create('parent', child('.sync:2', target)), { name: 'child' });
    await token();
    await world.abort(parent);
    expect((await world.ended(target.replace('stateMachine', 'execution').concat(':child'))).status).toBe('ABORTED');
  });
});
