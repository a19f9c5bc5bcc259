import { type AttributeValue, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import type { SFNClient } from '@aws-sdk/client-sfn';
import { acquire } from '../../../functions/leases/acquire.ts';
import { breakLease } from '../../../functions/leases/break.ts';
import { cancelWaiter } from '../../../functions/leases/cancel.ts';
import { capKey } from '../../../functions/leases/cap.ts';
import { executionEnded } from '../../../functions/leases/execution-ended.ts';
import { heartbeat } from '../../../functions/leases/heartbeat.ts';
import { runNext } from '../../../functions/leases/next.ts';
import { readLeases } from '../../../functions/leases/read.ts';
import { release } from '../../../functions/leases/release.ts';
import { repairQueues } from '../../../functions/leases/repair.ts';
import { withdraw } from '../../../functions/leases/withdraw.ts';
import { acquireGrant } from '../../../shared/locks/calls/acquire.ts';
import { breakByFence } from '../../../shared/locks/calls/break.ts';
import { capKey as capped } from '../../../shared/locks/calls/cap.ts';
import { extendGrant } from '../../../shared/locks/calls/heartbeat.ts';
import { acquireInput, capInput } from '../../../shared/locks/calls/inputs.ts';
import { readKeyOrList, readOneKey } from '../../../shared/locks/calls/read.ts';
import { releaseGrant } from '../../../shared/locks/calls/release.ts';
import { withdrawOwnRequest } from '../../../shared/locks/calls/withdraw.ts';
import { type LeaseDependencies, memoized, type RepairMessage } from '../../../shared/locks/dependencies.ts';
import { worldIds } from '../chance/seed.ts';
import { call, madeAtFirstCall, newTable, noteCommands, testClient, watch } from '../emulators/aws.ts';
import { documented } from '../stack/contract.ts';
import { ManualClock } from '../time/clock.ts';

const factories = {
  acquire,
  heartbeat,
  release,
  breakLease,
  readLeases,
  cancelWaiter,
  capKey,
  runNext,
  withdraw,
  repairQueues,
  executionEnded,
};

/** The Step Functions of a world without tasks. A test with tasks passes its own. */
export const noStepFunctions = async (): Promise<SFNClient> => {
  throw new Error('this test has no Step Functions');
};

const inputOfAcquire = acquireInput();
const inputOfCap = capInput();

/** A table of its own, a clock to move, and the lease calls over them: as domain calls and as handlers. */
export async function leaseWorld(overrides: Partial<LeaseDependencies> = {}) {
  const clock = new ManualClock();
  const dynamodb = testClient();
  const requests = watch(dynamodb);
  const messages: RepairMessage[] = [];
  const ids = worldIds(); // before anything is waited for: worlds that are made at once get theirs in order
  const tables = await Promise.all([newTable('leases'), newTable('waiters')]);
  const dependencies = {
    dynamodb,
    clock,
    ids,
    table: tables[0],
    clockSkewMs: 500,
    maxWaitSeconds: 20,
    fenceRetentionSeconds: 3600,
    waitersTable: tables[1],
    repairLater: async (message: RepairMessage) => void messages.push(message),
    ...overrides,
    stepFunctions: memoized(overrides.stepFunctions ?? noStepFunctions),
  };
  const { table } = dependencies;
  const acquired = documented('acquire', acquireGrant(dependencies));
  const heartbeaten = documented('heartbeat', extendGrant(dependencies));
  const released = documented('release', releaseGrant(dependencies));
  const broken = documented('breakLease', breakByFence(dependencies));
  const cap = documented('capKey', capped(dependencies));
  const read = documented('readLeases', readKeyOrList(dependencies));
  const withdrawn = documented('withdraw', withdrawOwnRequest(dependencies));

  return {
    clock,
    dynamodb,
    requests,
    dependencies,
    table,
    /** The schema fills in the defaults. */
    acquire: (input: object, as = call()) => acquired(inputOfAcquire.parse({ holder: 'tester', ...input }), as),
    heartbeat: (input: Parameters<typeof heartbeaten>[0], as = call()) => heartbeaten(input, as),
    release: (input: Parameters<typeof released>[0], as = call()) => released(input, as),
    breakLease: (input: Parameters<typeof broken>[0], as = call()) => broken(input, as),
    cap: (input: object, as = call()) => cap(inputOfCap.parse(input), as),
    read: (input: Parameters<typeof read>[0], as = call()) => read(input, as),
    /** Reads one key with all its holders. */
    readKey: (key: string) => readOneKey(dependencies)({ key }, call()),
    withdraw: (input: Parameters<typeof withdrawn>[0], as = call()) => withdrawn(input, as),
    /** The messages that asked for the repair of a key, with their delays. */
    messages,
    /** The deployed handlers, each with a client of its own. */
    handlers: functionHandlers({ ...dependencies, stepFunctions: overrides.stepFunctions ?? noStepFunctions }),
    rawItem: async (key: string): Promise<Record<string, AttributeValue> | undefined> =>
      (await dynamodb.send(new GetItemCommand({ TableName: table, Key: { key: { S: key } }, ConsistentRead: true })))
        .Item,
    putRaw: (item: Record<string, AttributeValue>) =>
      dynamodb.send(new PutItemCommand({ TableName: table, Item: item })),
  };
}

/** The failure of `act`. The test fails if `act` does not. */
export async function failure(
  act: Promise<unknown>,
): Promise<{ code: string; message: string; context: Record<string, unknown>; cause?: unknown }> {
  const error = await act.then(
    (value) => new Error(`expected a failure, got ${JSON.stringify(value)}`),
    (reason) => reason,
  );
  if (!('code' in error)) throw error;
  return error;
}

function functionHandlers(dependencies: LeaseDependencies) {
  const handlerOf = <Name extends keyof typeof factories>(name: Name) => {
    const dynamodb = testClient();
    noteCommands(name, dynamodb);
    const requests = watch(dynamodb);
    const stepFunctions = memoized(async () => {
      const client = await dependencies.stepFunctions();
      noteCommands(name, client);
      return client;
    });
    const handler = madeAtFirstCall(() => factories[name]({ ...dependencies, dynamodb, stepFunctions }));
    return Object.assign(handler, { requests });
  };
  return {
    acquire: handlerOf('acquire'),
    heartbeat: handlerOf('heartbeat'),
    release: handlerOf('release'),
    breakLease: handlerOf('breakLease'),
    readLeases: handlerOf('readLeases'),
    cancelWaiter: handlerOf('cancelWaiter'),
    capKey: handlerOf('capKey'),
    runNext: handlerOf('runNext'),
    withdraw: handlerOf('withdraw'),
    repairQueues: handlerOf('repairQueues'),
    executionEnded: handlerOf('executionEnded'),
  };
}
