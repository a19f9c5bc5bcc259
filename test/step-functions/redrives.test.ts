import {
  DescribeExecutionCommand,
  GetExecutionHistoryCommand,
  ListExecutionsCommand,
  RedriveExecutionCommand,
} from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it } from 'vitest';
import type { LambdaHandler } from '../../local/lambda.ts';
import { oneTask, type StatesWorld, statesWorld } from '../support/emulators/states.ts';
import { example, exclusionWorld } from '../support/stack/exclusion.ts';

let states: StatesWorld;
afterEach(() => states.stop());

const redrive = async (executionArn: string, clientToken?: string) =>
  (await states.sfn.send(new RedriveExecutionCommand({ executionArn, clientToken }))).redriveDate;

const history = async (executionArn: string) =>
  (await states.sfn.send(new GetExecutionHistoryCommand({ executionArn }))).events ?? [];

const notRedrivable = (message: string) => expect.objectContaining({ name: 'ExecutionNotRedrivable', message });

const lambda = (name: string) => `arn:aws:lambda:us-east-1:000000000000:function:${name}`;

/** A function that fails until it is repaired, and notes its inputs. */
function mendable() {
  const calls: Record<string, unknown>[] = [];
  const state = { isRepaired: false, until: Promise.resolve() };
  const work: LambdaHandler = async (event) => {
    calls.push(event as Record<string, unknown>);
    await state.until;
    if (state.isRepaired) return { done: true };
    throw Object.assign(new Error('why'), { name: 'Broken', stack: '' });
  };
  return { calls, work, state };
}

/** A Pass, and then a Task whose payload has the context of its execution. */
const twoStates = {
  StartAt: 'Make',
  States: {
    Make: { Type: 'Pass', Parameters: { 'made.$': 'States.UUID()' }, Next: 'Work' },
    Work: {
      Type: 'Task',
      Resource: lambda('work'),
      Parameters: {
        'made.$': '$.made',
        'redrives.$': '$$.Execution.RedriveCount',
        'given.$': '$$.Execution.Input',
        'started.$': '$$.Execution.StartTime',
      },
      Retry: [{ ErrorEquals: ['Broken'], IntervalSeconds: 1, MaxAttempts: 1 }],
      End: true,
    },
  },
};

describe('RedriveExecution of the local stack', () => {
  async function broken() {
    const { calls, work, state } = mendable();
    states = await statesWorld({ handlers: { work } });
    const arn = await states.start(await states.create('two', twoStates), { n: 1 });
    expect((await states.ended(arn)).status).toBe('FAILED');
    return { calls, state, arn };
  }

  it('a redrive continues at the failed state, with its input and a new count', async () => {
    const { calls, state, arn } = await broken();
    await redrive(arn);
    expect((await states.ended(arn)).status).toBe('FAILED');
    state.isRepaired = true;
    await redrive(arn);
    expect(await states.ended(arn)).toMatchObject({ status: 'SUCCEEDED', output: { done: true } });
    // After a redrive, each Retry has all of its tries again.
    expect(calls.map(({ redrives }) => redrives)).toEqual([0, 0, 1, 1, 2]);
    const [{ redrives, ...first } = {}] = calls;
    expect(first).toEqual({ made: expect.any(String), given: { n: 1 }, started: expect.stringMatching(/^\d{4}-.*Z$/) });
    for (const { redrives: _, ...call } of calls) expect(call).toEqual(first);
    expect((await history(arn)).map(({ type, executionRedrivenEventDetails: of }) => of?.redriveCount ?? type)).toEqual(
      [
        ...[
          'ExecutionStarted',
          'PassStateEntered',
          'TaskStateEntered',
          'TaskScheduled',
          'TaskScheduled',
          'ExecutionFailed',
        ],
        ...[1, 'TaskStateEntered', 'TaskScheduled', 'TaskScheduled', 'ExecutionFailed'],
        ...[2, 'TaskStateEntered', 'TaskScheduled', 'ExecutionSucceeded'],
      ],
    );
  });

  it('a redriven execution is shown as running, without its former end', async () => {
    const { state, arn } = await broken();
    const describe = () => states.sfn.send(new DescribeExecutionCommand({ executionArn: arn }));
    expect(await describe()).toMatchObject({
      redriveCount: 0,
      redriveStatus: 'REDRIVABLE',
      stopDate: expect.any(Date),
    });
    expect((await describe()).redriveDate).toBeUndefined();
    const { promise, resolve: finish } = Promise.withResolvers<void>();
    Object.assign(state, { isRepaired: true, until: promise });
    const redriveDate = await redrive(arn);
    const redriven = { redriveCount: 1, redriveDate };
    const running = await describe();
    expect(running).toMatchObject({
      ...{ ...redriven, status: 'RUNNING', redriveStatus: 'NOT_REDRIVABLE' },
      redriveStatusReason: 'Execution is RUNNING and cannot be redriven',
    });
    for (const field of ['stopDate', 'error', 'cause', 'output'] as const) expect(running[field]).toBeUndefined();
    finish();
    await states.ended(arn);
    const { executions } = await states.sfn.send(new ListExecutionsCommand({}));
    expect(executions).toMatchObject([{ ...redriven, status: 'SUCCEEDED', stopDate: expect.any(Date) }]);
  });

  it('only an execution that failed, was stopped or ran out of time is redriven', async () => {
    const { work, state } = mendable();
    states = await statesWorld({ handlers: { work } });
    const pause = {
      Wait: { Type: 'Wait', Seconds: 600, Next: 'Work' },
      Work: { Type: 'Task', Resource: lambda('work'), End: true },
    };
    const slow = await states.create('slow', { StartAt: 'Wait', States: pause });
    const late = await states.create('late', { ...{ StartAt: 'Wait', States: pause }, TimeoutSeconds: 1 });
    const stopped = await states.start(slow);
    const refused = notRedrivable('Execution is RUNNING and cannot be redriven');
    await expect(redrive(stopped)).rejects.toEqual(refused);
    await states.abort(stopped);
    await redrive(stopped);
    expect(await states.describe(stopped)).toMatchObject({ status: 'RUNNING', redriveCount: 1 });
    const timedOut = await states.start(late);
    expect((await states.ended(timedOut)).status).toBe('TIMED_OUT');
    await redrive(timedOut);
    expect((await states.ended(timedOut)).status).toBe('TIMED_OUT');

    state.isRepaired = true;
    const good = await states.start(await states.create('good', oneTask({ Resource: lambda('work') })));
    await states.ended(good);
    await expect(redrive(good)).rejects.toEqual(notRedrivable('Execution is SUCCEEDED and cannot be redriven'));
    await expect(redrive(`${good}-none`)).rejects.toEqual(expect.objectContaining({ name: 'ExecutionDoesNotExist' }));
    expect((await states.describe(good)).redriveCount).toBe(0);
  });
});

describe('a redrive of the acquire', () => {
  /** Stops the execution in the moment in which it receives its grant, so it ends in its acquire and holds the lease. */
  function stopsAtGrant() {
    const { tokens } = states.states;
    const take = tokens.take.bind(tokens);
    tokens.take = (token) => {
      tokens.take = take;
      const task = take(token);
      const succeed: typeof task.succeed = (output) => {
        task.succeed(output);
        for (const execution of states.states.executions.values()) execution.stop('Stopped');
      };
      return { ...task, succeed };
    };
  }

  async function ready() {
    const world = await exclusionWorld(async (handlers) => {
      states = await statesWorld({ handlers, secondMs: 5, limitSecondMs: 1000 });
      return states;
    });
    const { asked, running, repair } = world;
    /** Starts an execution that ends at its grant. The event of the end is lost, and the execution is redriven a minute later. */
    const redriven = async (start: () => Promise<string>) => {
      stopsAtGrant();
      states.events.stop();
      world.fallBehind(60_000);
      const arn = await start();
      expect((await states.ended(arn)).status).toBe('ABORTED');
      world.fallBehind(0);
      await redrive(arn);
      await expect.poll(() => asked.length, { interval: 5 }).toBe(2);
      await world.waiting(1); // the second request waits behind the former grant
      return arn;
    };
    const begun = async () => {
      await repair();
      return running.length;
    };
    /** The second request of the execution is granted, and the work begins. */
    const expectDone = async (arn: string) => {
      await expect.poll(begun, { interval: 20, timeout: 20_000 }).toBe(1);
      (await world.atWorkNo(0)).finish({ made: 1 });
      expect(await states.ended(arn)).toMatchObject({ status: 'SUCCEEDED', output: { made: 1 } });
      const [first, second] = asked.map(({ requestId }) => String(requestId));
      expect(first).toMatch(/-0$/);
      expect(second).toBe(first?.replace(/0$/, '1'));
    };
    return { ...world, redriven, expectDone };
  }

  it.each([
    ['with a ttl', { ttlSeconds: 600 }],
    ['with a bound lease', {}],
    ['with a permit', { ttlSeconds: 600, limit: 1 }],
    ['with a bound permit', { limit: 1 }],
  ])('a redriven wrapper %s is granted again two minutes later, behind its former grant', async (_, fields) => {
    const { redriven, expectDone, fallBehind, exclusive, target } = await ready();
    const arn = await redriven(() => states.start(exclusive, { key: 'k', stateMachineArn: target, ...fields }));
    fallBehind(-120_000); // the start of the target may be under way until 90 seconds after the redrive
    await expectDone(arn);
  });

  it('a redriven task has the lease again at the next run of the schedule', async () => {
    const { redriven, expectDone, values } = await ready();
    const parked = JSON.stringify(await example('parked', values)).replace('"graceSeconds":60,', '');
    const machine = await states.create('parked', JSON.parse(parked));
    await expectDone(await redriven(() => states.start(machine, { key: 'k', input: 'hello' })));
  });
});
