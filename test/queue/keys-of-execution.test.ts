import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createTables } from '../../local/dynamodb.ts';
import { dynamodbEndpoint } from '../support/emulators/endpoint.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, read, executionEnded, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

it('a leases table without the index is named, and so is the index', async () => {
  const table = `test-leases-without-index-${randomUUID()}`;
  const definition = {
    TableName: table,
    BillingMode: 'PAY_PER_REQUEST' as const,
    AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' as const }],
    KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' as const }],
  };
  await createTables(dynamodbEndpoint(), [{ definition, ttlAttribute: undefined }]);
  const foreign = await queueWorld({ table });
  const execution = steps.newExecution();
  const grant = await foreign.acquire({ key: 'k', execution }); // it is stored, and found by nobody
  await expect(foreign.executionEnded(execution)).rejects.toMatchObject({
    code: 'Unavailable',
    message: `table ${table} has no index by-execution: leases of executions that end there stay until they expire`,
  });
  const { task } = await foreign.park({ key: 'k' });
  await foreign.release(grant);
  expect(task.state).toBe('succeeded');
  await foreign.steps.stop();
});

describe('a table that finds nothing by the execution', () => {
  const { waitersTable, poolsTable } = world.dependencies;

  it.each([
    ['tickets', waitersTable, 'leases', 0],
    ['pools', poolsTable, 'permits', 2],
  ])('is named where it has no index: that of %s', async (_, table, what, before) => {
    const execution = steps.newExecution();
    requests.faultsOf.Query = [...Array(before).fill('none'), { name: 'ValidationException', status: 400 }];
    expect(await failure(executionEnded(execution))).toMatchObject({
      code: 'Unavailable',
      message: `table ${table} has no index by-execution: ${what} of executions that end there stay until they expire`,
      context: { retryAfterMs: 1000 },
    });
  });

  it('is not said to have no index where it answers that it is too busy', async () => {
    requests.faultsOf.Query = ['throttle', 'throttle', 'throttle'];
    const { code, message } = await failure(executionEnded(steps.newExecution()));
    expect(code).toBe('Throttled');
    expect(message).not.toContain('index');
  });
});

it('a table of pools that does not answer keeps no lease from being freed, and the failure is reported', async () => {
  const execution = steps.newExecution();
  await acquire({ key: 'beside pools', execution });
  requests.faultsOf.Query = ['none', 'none', { name: 'AccessDeniedException', status: 400 }]; // tickets, leases, permits
  requests.sent.length = 0;
  expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
  expect(requests.sent).toEqual(['Query', 'Query', 'Query', 'GetItem', 'UpdateItem']);
  expect(await read({ key: 'beside pools' })).toMatchObject({ state: 'released' });
});
