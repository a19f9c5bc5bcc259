import { CreateTableCommand, PutItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deploy } from '../../deployment/deploy.ts';
import type { Order } from '../../deployment/request.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { newTable, testClient } from '../support/emulators/aws.ts';
import { type CloudFormationDouble, idOf, startCloudFormation } from '../support/stack/cloudformation.ts';
import { released } from '../support/stack/template.ts';
import { ManualClock } from '../support/time/clock.ts';

const NAME = 'holdfast-prod';
const ORDER: Order = {
  stage: 'prod',
  given: {},
  reset: [],
  tags: [],
  untag: [],
  allowedChanges: [],
  forgetPools: false,
  mayCreate: true,
  isPlan: false,
};
const artifact = { template: released, templateText: JSON.stringify(released), zips: new Map<string, Buffer>() };
const dynamodb = testClient();

let double: CloudFormationDouble;
let clock: ManualClock;
let tables: { poolsTable: string; waitersTable: string };
/** What the operator read. */
let said: string[];
/** Whether the stack has the table of pools, and acquireConcurrency, after each change. */
let changes: [version: '0.2.0' | 'new', acquireConcurrency: string | undefined][];

beforeEach(async () => {
  tables = { poolsTable: await oldTable(), waitersTable: await newTable('waiters') };
  double = await startCloudFormation(released);
  [clock, said, changes] = [new ManualClock(), [], []];
  const defaults = Object.entries(released.Parameters ?? {}).flatMap(([name, { Default }]) =>
    Default === undefined ? [] : [[name, String(Default)]],
  );
  const parameters = { ...Object.fromEntries(defaults), stage: 'prod', codeBucket: 'holdfast-code-x', ...tables };
  double.stacks.set(NAME, { id: idOf(NAME, 0), status: 'UPDATE_COMPLETE', parameters, tags: {} });
});
afterEach(() => double.stop());

/** As 0.2.0 defines its table of pools, without its index. */
async function oldTable(): Promise<string> {
  const TableName = `test-pools-${crypto.randomUUID()}`;
  const names = ['key', 'row'];
  await dynamodb.send(
    new CreateTableCommand({
      TableName,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: 'S' as const })),
      KeySchema: names.map((AttributeName, at) => ({ AttributeName, KeyType: at === 0 ? 'HASH' : 'RANGE' })),
    }),
  );
  return TableName;
}

const stack = () => double.stacks.get(NAME);
const run = (order: Partial<Order> = {}, consent = true) => {
  const observer = {
    say: (line: string) => void said.push(line),
    onChanges: () => {},
    onEvent: () => {},
    confirm: async () => consent,
  };
  return deploy({ ...double.aws, dynamodb }, { artifact, order: { ...ORDER, ...order }, clock }, observer);
};

/** Writes down the stack after each change set that CloudFormation executes. */
beforeEach(() => {
  double.aws.cloudFormation.middlewareStack.add(
    (next, context) => async (args) => {
      const result = await next(args);
      const { parameters = {} } = stack() ?? {};
      if (context.commandName === 'ExecuteChangeSetCommand')
        changes.push(['poolsTable' in parameters ? '0.2.0' : 'new', parameters.acquireConcurrency]);
      return result;
    },
    { step: 'deserialize', name: 'changes' },
  );
});

const number = (N: number) => ({ N: String(N) });
/** A permit as 0.2.0 records it. */
const putPermit = (key: string, leftMs: number) => {
  const expiresAt = systemClock.now() + leftMs;
  const times = { e: expiresAt, b: expiresAt - 60_000, t: 60_000, a: expiresAt - 60_000, w: 1 };
  const M = {
    ...{ i: { S: 'id' }, v: { S: 'version' }, h: { S: 'holder' } },
    ...Object.fromEntries(Object.entries(times).map(([part, value]) => [part, number(value)])),
  };
  const Item = {
    key: { S: key },
    row: { S: '#' },
    used: number(1),
    haaaaaaaaaaaaaaaa: { M },
    faaaaaaaaaaaaaaaa: number(7),
  };
  return dynamodb.send(new PutItemCommand({ TableName: tables.poolsTable, Item }));
};
const putWaiter = (key: string, keepMs?: number) => {
  const kept = keepMs === undefined ? {} : { keep_until: number(systemClock.now() + keepMs) };
  const Item = { key: { S: key }, ticket: { S: `1-${key}` }, weight: number(1), ...kept };
  return dynamodb.send(new PutItemCommand({ TableName: tables.waitersTable, Item }));
};
const waitersLeft = async () =>
  ((await dynamodb.send(new ScanCommand({ TableName: tables.waitersTable }))).Items ?? []).map(({ key }) => key?.S);

const DRAINED = [
  ['0.2.0', '0'],
  ['new', '0'],
  ['new', ''],
];
const AS_BEFORE = [
  ['0.2.0', '0'],
  ['0.2.0', ''],
];

describe('a deployment over a stack of 0.2.0', () => {
  it('a deployment over a stack of 0.2.0 stops acquire before it changes the functions, and starts acquire again afterwards', async () => {
    expect(await run({ given: { memoryMb: '256' } })).toMatchObject({ StackStatus: 'UPDATE_COMPLETE' });
    expect(changes).toEqual(DRAINED);
    expect(stack()?.parameters).toMatchObject({ memoryMb: '256', waitersTable: tables.waitersTable });
    expect(said.join('\n')).toContain(`in the table ${tables.poolsTable}, which this version does not read`);
    expect(said.join('\n')).toContain('First stop every process that uses directTransport of 0.2.0');
    expect(said).toContain(
      'Stopping acquire. If this command is interrupted, run it again with --reset acquireConcurrency',
    );
    await run();
    expect(changes).toEqual(DRAINED);
    expect(said.at(-1)).toBe('Nothing to change');
  });

  it('a deployment over a stack of 0.2.0 restores the concurrency that acquire had', async () => {
    Object.assign(stack()?.parameters ?? {}, { acquireConcurrency: '40' });
    await run();
    expect(changes.map(([, concurrency]) => concurrency)).toEqual(['0', '0', '40']);
    expect(said.join('\n')).toContain('run it again with --param acquireConcurrency=40');
  });

  it('a deployment over a stack of 0.2.0 waits for the longest call of acquire, and then until no permit is held and no waiter is in line', async () => {
    await Promise.all([putPermit('render', 60_000), putWaiter('holdfast:pool:gpus', 60_000)]);
    const start = clock.now();
    clock.at(start + 45_000, () => putPermit('render', -60_000));
    clock.at(start + 95_000, () => putWaiter('holdfast:pool:gpus', -5000));
    clock.at(start + 95_000, () => void expect(changes).toEqual([['0.2.0', '0']]));
    await run();
    expect(changes).toEqual(DRAINED);
    expect(clock.now() - start).toBe(100_000);
    expect(said).toContain('Waiting: permits of gpus, render are held, or callers wait for them');
    expect(said).toContain('Waiting: permits of gpus are held, or callers wait for them');
  });

  it('a deployment over a stack of 0.2.0 waits for a parked task, and neither for a lease in line nor for a row that is left of a call', async () => {
    await Promise.all([putWaiter('holdfast:pool:gpus'), putWaiter('job'), putWaiter('holdfast:pool:over', -5000)]);
    await expect(run()).rejects.toThrow(
      'permits of gpus are held, or callers wait for them. Stop those holders and waiters, and deploy again, or add --forget-pools',
    );
  });

  it('a deployment over a stack of 0.2.0 leaves the stack as before if permits are still held after an hour', async () => {
    await putPermit('render', 60_000);
    const start = clock.now();
    await expect(run()).rejects.toThrow('Nothing was changed');
    expect(changes).toEqual(AS_BEFORE);
    expect(clock.now() - start).toBeGreaterThanOrEqual(3_600_000);
  });

  it('a deployment over a stack of 0.2.0 starts acquire again if CloudFormation refuses the new functions', async () => {
    double.aws.cloudFormation.middlewareStack.add(
      (next) => async (args) => {
        const { ChangeSetType, TemplateURL } = args.input as { ChangeSetType?: string; TemplateURL?: string };
        if (ChangeSetType && TemplateURL && changes.length > 0) throw new Error('no such bucket');
        return next(args);
      },
      { step: 'initialize', name: 'refuses' },
    );
    await expect(run()).rejects.toThrow('no such bucket');
    expect(changes).toEqual(AS_BEFORE);
  });

  it('a deployment over a stack of 0.2.0 does not wait with --forget-pools, and takes the waiters out of the lines of pools alone', async () => {
    await Promise.all([putPermit('render', 60_000), putWaiter('holdfast:pool:gpus'), putWaiter('job')]);
    const start = clock.now();
    await run({ forgetPools: true });
    expect(changes).toEqual(DRAINED);
    expect(clock.now() - start).toBe(30_000);
    expect(await waitersLeft()).toEqual(['job']);
    expect(said.join('\n')).toContain('forgets all permits and their waiters');
  });

  it('a deployment over a stack of 0.2.0 changes no stack without consent', async () => {
    await run({}, false);
    expect(changes).toEqual([]);
    expect(said.join('\n')).toContain('waits until no permit is held');
  });
});

it('a deployment with acquireConcurrency=0 says how acquire starts again', async () => {
  await run({ given: { acquireConcurrency: '0' } });
  expect(changes.at(-1)).toEqual(['new', '0']);
  expect(said).toContain(
    'With acquireConcurrency=0 no call of acquire runs. --reset acquireConcurrency starts acquire again',
  );
});
