import {
  type AttributeValue,
  BatchWriteItemCommand,
  DeleteItemCommand,
  PutItemCommand,
  QueryCommand,
} from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach } from 'vitest';
import type { Call } from '../../../shared/aws/call.ts';
import { stepFunctionsClient } from '../../../shared/aws/step-functions.ts';
import { acquireGrant, acquire as acquireOrPark, grantRequest } from '../../../shared/locks/calls/acquire.ts';
import { acquireInput, type ExecutionEndedInput } from '../../../shared/locks/calls/inputs.ts';
import { repairLines } from '../../../shared/locks/calls/repair.ts';
import type { Parked } from '../../../shared/locks/calls/types.ts';
import { cancelWaiter } from '../../../shared/locks/calls/withdraw.ts';
import type { LeaseDependencies } from '../../../shared/locks/dependencies.ts';
import { freeEndedExecution } from '../../../shared/locks/executions/ended.ts';
import { handOff } from '../../../shared/locks/line/hand-off.ts';
import { join } from '../../../shared/locks/line/join.ts';
import { Lock } from '../../../shared/locks/line/lock.ts';
import { readKey } from '../../../shared/locks/record/requests.ts';
import type { Clock } from '../../../shared/surroundings/clock.ts';
import { call } from '../emulators/aws.ts';
import { startStepFunctions, type Task } from '../emulators/step-functions.ts';
import { networkError } from '../faults/cuttable.ts';
import { mortal } from '../faults/mortal.ts';
import { documented } from '../stack/contract.ts';
import type { ManualClock } from '../time/clock.ts';
import { Timeline } from '../time/timeline.ts';
import { failure, leaseWorld } from './leases.ts';

/** The schema is made only here, because that takes as long as a request to the emulator. */
const inputOfAcquire = acquireInput();

/** Dependencies of a world, with a clock that a test can move or one that runs by itself. */
export type Overrides = Partial<LeaseDependencies> & { clock?: Clock & Partial<Pick<ManualClock, 'advance'>> };

/** Begins each test of a file without faults, and stops the world after the last test. */
export function resetting({ requests, steps, messages }: Pick<LineWorld, 'requests' | 'steps' | 'messages'>) {
  afterAll(() => steps.stop());
  beforeEach(() => {
    requests.faultsOf = {};
    requests.sent.length = 0;
    steps.faults = {};
    steps.onTheWay = async () => {};
    steps.requests.length = 0;
    messages.length = 0;
  });
}
type LineWorld = Awaited<ReturnType<typeof lineWorld>>;

/**
 * The leases of leaseWorld, with a Step Functions that takes the messages to tasks.
 * @param overrides `clock` of the world does not move a clock of another kind
 */
export async function lineWorld(overrides: Overrides = {}) {
  const steps = await startStepFunctions(() => moving.now());
  const stepFunctions = async () => stepFunctionsClient({ endpoint: steps.endpoint });
  const world = await leaseWorld({ stepFunctions, ...overrides });
  const { dependencies, clock, dynamodb, requests } = world;
  mortal(dynamodb);
  mortal(await dependencies.stepFunctions());
  const moving: Clock & Partial<Pick<ManualClock, 'advance'>> = overrides.clock ?? clock;
  const enter = documented('acquire', acquireOrPark(dependencies));
  const repaired = repairLines(dependencies);
  const ended = freeEndedExecution(dependencies);
  const cancelled = documented('cancelWaiter', cancelWaiter(dependencies));

  return {
    ...world,
    steps,
    /** Parks a new task, a millisecond after the last one. */
    park: async (input: object, task: Task = steps.newTask()) => {
      clock.advance(1);
      const asked = inputOfAcquire.parse({ holder: 'tester', taskToken: task.token, ...input });
      const answer = (await enter(asked, call())) as Parked;
      return { ...answer, task };
    },
    /** The call of an authenticated caller. */
    as: (principal: string) => call({ principal }),
    /** A caller's step of getting in line, without the wait that follows. */
    joinLine: (key: string, requestId: string) => {
      const asked = { key, holder: 'caller', requestId, ttlSeconds: 10, waitSeconds: 20 };
      const lock = new Lock(dependencies, grantRequest(asked, call()), call());
      const at = { dependencies, lock, call: call() };
      return join(at, { deadline: clock.now() + 20_000 });
    },
    /** A hand-off of the record as it stands. */
    handOff: async (key: string) => handOff(dependencies, { record: await readKey(dependencies, key, call()) }, call()),
    putTicket: (row: Record<string, AttributeValue>) =>
      dynamodb.send(new PutItemCommand({ TableName: dependencies.waitersTable, Item: row })),
    /** Many rows of the waiters table at once. */
    putTickets: async (items: Record<string, AttributeValue>[]) => {
      for (let from = 0; from < items.length; from += 25) {
        const puts = items.slice(from, from + 25).map((Item) => ({ PutRequest: { Item } }));
        await dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [dependencies.waitersTable]: puts } }));
      }
    },
    /** The row of a caller that came before all others, and waits for another minute. */
    callerRow: (key: string, name: string, more: Record<string, AttributeValue> = {}) => ({
      key: { S: key },
      ticket: { S: `000000000000001-${name}` },
      holder: { S: name },
      request_id: { S: name },
      ttl_seconds: { N: '10' },
      deadline: { N: String(clock.now() + 60_000) },
      keep_until: { N: String(clock.now() + 65_000) },
      ...more,
    }),
    /** A try before which `what` happens. The requests that `what` sends meet no faults. */
    precededBy:
      (what: () => Promise<unknown>) =>
      async (send: () => Promise<unknown>): Promise<unknown> => {
        const faults = requests.faultsOf;
        requests.faultsOf = {};
        await what();
        requests.faultsOf = faults;
        return send();
      },
    /** A try that takes effect at once, and whose answer takes `ms`. */
    answeredLate: (ms: number) => async (send: () => Promise<unknown>) => {
      const answer = await send();
      if (!moving.advance) throw new Error('the clock of this world cannot be moved');
      moving.advance(ms);
      return answer;
    },
    /** A try that takes effect, and whose answer is lost after `what` happens. The requests that `what` sends meet no faults. */
    lostAfter: (what: () => Promise<unknown>) => async (send: () => Promise<unknown>) => {
      await send();
      const faults = requests.faultsOf;
      requests.faultsOf = {};
      await what();
      requests.faultsOf = faults;
      throw networkError('ECONNRESET', 'read');
    },
    /** Runs `act` while DynamoDB leaves a table out of its answer to each BatchGetItem. @returns its result, and what each BatchGetItem asked for and when */
    leavingOut: async <Result>(table: string, act: () => Promise<Result>) => {
      const asked: { items: Record<string, object>; at: number }[] = [];
      dynamodb.middlewareStack.add(
        (next, { commandName }) =>
          async (args) => {
            const answer = await next(args);
            if (commandName !== 'BatchGetItemCommand') return answer;
            const { RequestItems: items } = args.input as { RequestItems: Record<string, object> };
            asked.push({ items, at: dependencies.clock.now() });
            const output = answer.output as { Responses?: object; UnprocessedKeys?: object };
            output.Responses = { ...output.Responses, [table]: [] };
            output.UnprocessedKeys = { [table]: items[table] };
            return answer;
          },
        { step: 'initialize', name: 'leaves out' },
      );
      const result = await act().finally(() => dynamodb.middlewareStack.remove('leaves out'));
      return { result, asked };
    },
    repair: () => repaired({}, call()),
    /** Repairs one key, as a message does. */
    repairKey: (key: string) => repaired({ key }, call()),
    repairWith: (as: Call) => repaired({}, as),
    executionEnded: (execution: string, again = false, event: Pick<ExecutionEndedInput, 'status' | 'stopDate'> = {}) =>
      ended({ execution, again, ...event }, call()),
    cancel: (key: string, ticket: string) => cancelled({ key, ticket }, call()),
    deleteRaw: (key: string) =>
      dynamodb.send(new DeleteItemCommand({ TableName: dependencies.table, Key: { key: { S: key } } })),
    /** The rows of the waiters table of a key. */
    rows: async (key: string) => {
      const query = new QueryCommand({
        TableName: dependencies.waitersTable,
        ConsistentRead: true,
        KeyConditionExpression: '#key = :key',
        ExpressionAttributeNames: { '#key': 'key' },
        ExpressionAttributeValues: { ':key': { S: key } },
      });
      const { Items: items = [] } = await dynamodb.send(query);
      return items;
    },
    /** The grant of a task. The test fails if there is none. */
    grantOf: (task: Task) => {
      if (!task.output) throw new Error(`the task was not granted: ${task.state} ${task.error ?? ''}`);
      return task.output as {
        key: string;
        leaseId: string;
        fence: number;
        expiresAt: string;
        version: string;
        previous: unknown;
      };
    },
  };
}

/** Calls in line that poll at the same moments in each run. @param terms the terms of each call */
export function steadyCalls({ dependencies }: Pick<LineWorld, 'dependencies'>, terms: object = {}) {
  const { clock, ids } = dependencies;
  const asked = { ...terms, holder: 'b', requestId: 'r', ttlSeconds: 10, waitSeconds: 20 };
  /** A call with the same random number each time. With 0 it polls every 25 milliseconds from its arrival on. */
  const steady = (key: string, more: object = {}, chance = 0) => {
    const sure = { ...dependencies, ids: { ...ids, random: () => chance } };
    return acquireGrant(sure)(inputOfAcquire.parse({ key, ...asked, ...more }), call());
  };
  return {
    steady,
    /** How a steady call fails, and how long after it came. */
    refusedAfter: async (key: string, more: object = {}) => {
      const from = clock.now();
      const { code, message, context } = await failure(steady(key, more));
      return { code, message, context, afterMs: clock.now() - from };
    },
  };
}

/** lineWorld on a timeline, with steady calls. */
export async function steadyLineWorld() {
  const timeline = new Timeline();
  const world = await lineWorld({ clock: timeline });
  return { ...world, timeline, ...steadyCalls(world) };
}
