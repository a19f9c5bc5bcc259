import { QueryCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { acquire as acquireOrPark } from '../../../shared/locks/calls/acquire.ts';
import { breakByFence } from '../../../shared/locks/calls/break.ts';
import { extendGrant } from '../../../shared/locks/calls/heartbeat.ts';
import { acquireInput } from '../../../shared/locks/calls/inputs.ts';
import { readOneKey } from '../../../shared/locks/calls/read.ts';
import { releaseGrant } from '../../../shared/locks/calls/release.ts';
import type { Parked } from '../../../shared/locks/calls/types.ts';
import { cancelWaiter } from '../../../shared/locks/calls/withdraw.ts';
import { call } from '../emulators/aws.ts';
import type { Task } from '../emulators/step-functions.ts';
import { documented } from '../stack/contract.ts';
import { lineWorld, type Overrides } from './line.ts';
import { rawKeys } from './permits.ts';

const inputOfAcquire = acquireInput();

interface Proof {
  key: string;
  leaseId: string;
}

/** The permits of lineWorld, with a Step Functions that takes the messages to tasks. */
export async function permitLineWorld(overrides: Overrides = {}) {
  const world = await lineWorld(overrides);
  const { clock, dynamodb, requests, steps } = world;
  const dependencies = world.dependencies;
  const entered = documented('acquire', acquireOrPark(dependencies));
  const heartbeaten = documented('heartbeat', extendGrant(dependencies));
  const released = documented('release', releaseGrant(dependencies));
  const broken = documented('breakLease', breakByFence(dependencies));
  const cancelled = documented('cancelWaiter', cancelWaiter(dependencies));
  const read = documented('readLeases', readOneKey(dependencies));
  const ask = (input: object, as = call()) => entered(inputOfAcquire.parse({ holder: 'tester', ...input }), as);
  /** A task of its own each time, a millisecond after the one before. */
  const park = async (input: object, task: Task = steps.newTask()) => {
    clock.advance(1);
    return { ...((await ask({ taskToken: task.token, ...input })) as Parked), task };
  };
  const release = ({ key, leaseId }: Proof, as = call()) => released({ key, leaseId }, as);

  return {
    ...world,
    dependencies,
    acquire: async (input: object, as = call()) => {
      const answer = await ask(input, as);
      if ('parked' in answer) throw new Error('this one parks no task');
      return answer;
    },
    park,
    heartbeat: (input: Parameters<typeof heartbeaten>[0], as = call()) => heartbeaten(input, as),
    release,
    breakPermit: (input: Parameters<typeof broken>[0], as = call()) => broken(input, as),
    cancel: (key: string, ticket: string) => cancelled({ key, ticket }, call()),
    read: (key: string, more: { waiters?: boolean } = {}) => read({ key, ...more }, call()),
    repairLine: (key: string) => world.repairKey(key),
    /** The waiters of the key, without the rows of executions. */
    rows: async (key: string) => (await world.rows(key)).filter(({ ticket }) => !ticket?.S?.startsWith('x')),
    ...rawKeys(dynamodb, dependencies.table),
    /** A task that receives the permit of `first` from the line, without a notice. */
    unnotified: async (first: Proof, terms: object) => {
      const parked = await park({ key: first.key, holder: 'unnotified', ...terms });
      steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
      await release(first);
      steps.faults = {};
      if (parked.task.state !== 'waiting') throw new Error('the task was notified of its permit');
      return parked;
    },
    /** How often a command was sent. */
    sent: (name: string) => requests.sent.filter((command) => command === name).length,
    /** Gives a row the times of a call that waits until then, and has exited. */
    keepWaiting: (key: string, ticket: string, deadline: number) =>
      dynamodb.send(
        new UpdateItemCommand({
          TableName: dependencies.waitersTable,
          Key: { key: { S: key }, ticket: { S: ticket } },
          UpdateExpression: 'SET deadline = :deadline, keep_until = :keep',
          ExpressionAttributeValues: { ':deadline': { N: `${deadline}` }, ':keep': { N: `${deadline + 5000}` } },
        }),
      ),
    removeMark: (key: string) =>
      dynamodb.send(
        new UpdateItemCommand({
          TableName: dependencies.table,
          Key: { key: { S: key } },
          UpdateExpression: 'REMOVE mark, arrivals',
        }),
      ),
    /** The rows of executions that may hold permits of the key. */
    executionRows: async (key: string) => {
      const command = new QueryCommand({
        TableName: dependencies.waitersTable,
        ConsistentRead: true,
        KeyConditionExpression: '#key = :key AND ticket >= :executions',
        ExpressionAttributeNames: { '#key': 'key' },
        ExpressionAttributeValues: { ':key': { S: key }, ':executions': { S: 'x' } },
      });
      return (await dynamodb.send(command)).Items ?? [];
    },
  };
}
