import { expect } from 'vitest';
import type { LambdaHandler } from '../../../local/lambda.ts';
import { stepFunctionsClient } from '../../../shared/aws/step-functions.ts';
import { type Clock, systemClock } from '../../../shared/surroundings/clock.ts';
import { definition, oneTask, type StatesWorld } from '../emulators/states.ts';
import { onceWorld } from '../worlds/once.ts';
import { rateHandlers } from '../worlds/rates.ts';
import { lambdaContext } from './adapters.ts';

export const EXAMPLES = ['retry', 'parked', 'call-exclusive', 'once', 'rate'] as const;

export const example = (name: (typeof EXAMPLES)[number], values: Record<string, string>) =>
  definition(`examples/step-functions/${name}.asl.json`, values);

/** What both interpreters of state machines can do. */
type States = Pick<StatesWorld, 'sfn' | 'endpoint' | 'create' | 'start' | 'describe' | 'abort' | 'ended' | 'stop'>;

interface Work {
  input: Record<string, unknown>;
  finish(result: unknown): void;
  fail(error: Error): void;
}

/**
 * Leases, the state machines over them, and a target whose work a test lets go on or fail.
 * @param startStates with the functions that the state machines call
 */
export async function exclusionWorld(
  startStates: (handlers: Record<string, LambdaHandler>) => Promise<States>,
  account = '000000000000',
) {
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const stepFunctions = async () => stepFunctionsClient({ endpoint: states.endpoint });
  const leases = await onceWorld({ clock, stepFunctions });
  const { acquire: acquireLease, release, executionEnded, repairQueues, readLeases } = leases.handlers;
  const { onceBegin, onceComplete } = leases.handlers;
  const { rateReserve, readRates } = rateHandlers(leases.dependencies);
  /** The target that each execution named. */
  const targets = new Map<string, string>();
  /** All calls of acquire, and the request ids of them. */
  const asked: Record<string, unknown>[] = [];
  const requestIds: string[] = [];
  /** The errors of the next calls of acquire, which take effect all the same. */
  const lostAnswers: string[] = [];
  const acquire: LambdaHandler = async (event, context) => {
    const { execution, target, requestId } = event as Record<string, string>;
    if (target) targets.set(String(execution), target);
    asked.push(event as Record<string, unknown>);
    requestIds.push(String(requestId));
    const answer = await acquireLease(event, context);
    const name = lostAnswers.shift();
    if (name) throw Object.assign(new Error('lost'), { name, stack: '' });
    return answer;
  };
  /** Repairs the lines as if all tasks had been parked for more than an hour. */
  const expire = async () => {
    const before = aheadMs;
    aheadMs += 3_700_000;
    await repairQueues({}, lambdaContext());
    aheadMs = before;
  };
  const running: Work[] = [];
  /** How many have been at work at the same time, at most. */
  const peak = { atWork: 0 };
  let atWork = 0;
  const work: LambdaHandler = async (input) => {
    peak.atWork = Math.max(peak.atWork, ++atWork);
    return new Promise((finish, fail) => {
      running.push({ input: input as Work['input'], finish, fail });
    }).finally(() => atWork--);
  };
  const states = await startStates({ acquire, release, executionEnded, onceBegin, onceComplete, rateReserve, work });
  const machine = (name: string) => `arn:aws:states:us-east-1:${account}:stateMachine:${name}`;
  const lambda = (name: string) => `arn:aws:lambda:us-east-1:${account}:function:${name}`;
  const exclusive = machine('holdfast-test-exclusive');
  const values = {
    AcquireFunctionArn: lambda('acquire'),
    ReleaseFunctionArn: lambda('release'),
    RateReserveFunctionArn: lambda('rateReserve'),
    OnceBeginFunctionArn: lambda('onceBegin'),
    OnceCompleteFunctionArn: lambda('onceComplete'),
    WorkFunctionArn: lambda('work'),
    ExclusiveStateMachineArn: exclusive,
    TargetStateMachineArn: machine('target'),
  };
  const invokeWork = {
    Resource: 'arn:aws:states:::lambda:invoke',
    Parameters: { FunctionName: values.WorkFunctionArn, 'Payload.$': '$' },
    OutputPath: '$.Payload',
  };
  const target = await states.create('target', oneTask(invokeWork));
  const atWorkNo = async (index: number): Promise<Work> => {
    let polls = 0;
    const begun = async () => {
      // A busy machine may lose a message to a task. As in a deployment, the schedule sends it again.
      if (++polls % 500 === 0) await repairQueues({}, lambdaContext());
      return running.length;
    };
    await expect.poll(begun, { interval: 5 }).toBeGreaterThan(index);
    return running[index] as Work;
  };
  const waiting = (count: number, key = 'k') => {
    const parked = async () => ((await leases.read({ key })) as { waiting: number }).waiting;
    return expect.poll(parked, { interval: 5 }).toBe(count);
  };
  const lease = async (key: string) =>
    (await leases.read({ key })) as {
      state: string;
      fence: number | null;
      expiresAt: string | null;
      remainingMs: number | null;
      inGrace?: boolean;
    };
  const state = async (key: string) => (await lease(key)).state;
  const readKey = (key: string) =>
    readLeases({ key }, lambdaContext()) as Promise<{ used: number; waiting: number; holders: object[] }>;
  const callers = {
    acquire: (input: object) => acquireLease(input, lambdaContext()),
    reserve: (input: object) => rateReserve(input, lambdaContext()),
    release: (input: object) => release(input, lambdaContext()),
    /** Repairs the lines, as the schedule does each minute. */
    repair: () => repairQueues({}, lambdaContext()),
    /** Sets how far the clock of the functions is behind that of Step Functions. */
    fallBehind: (ms: number) => {
      aheadMs = -ms;
    },
  };
  return {
    ...callers,
    asked,
    requestIds,
    lostAnswers,
    states,
    targets,
    expire,
    values,
    exclusive,
    target,
    running,
    peak,
    atWorkNo,
    waiting,
    lease,
    state,
    readOnce: leases.readOnce,
    breakRun: leases.breakRun,
    readRate: (key: string) => readRates({ key }, lambdaContext()),
    /** A key, with its holders and its line. */
    readKey,
  };
}

export const boom = () => Object.assign(new Error('why'), { name: 'Boom', stack: '' });
