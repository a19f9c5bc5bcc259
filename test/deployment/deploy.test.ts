import { randomUUID } from 'node:crypto';
import { CreateTableCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Observer } from '../../deployment/deploy.ts';
import type { ParsedRequest } from '../../deployment/request.ts';
import { testClient, watch } from '../support/emulators/aws.ts';
import { type CloudFormationDouble, deployTo, idOf, startCloudFormation } from '../support/stack/cloudformation.ts';
import { released, withParameters } from '../support/stack/template.ts';
import { aFew, counting, isFull } from '../support/time/rounds.ts';

const NAME = 'holdfast-prod';
let double: CloudFormationDouble;
/** What the operator read. */
let said: string[];
beforeEach(async () => {
  double = await startCloudFormation();
  said = [];
});
afterEach(() => double.stop());

const run = (order: Partial<ParsedRequest> = {}, observer: Partial<Observer> = {}) =>
  deployTo(double.aws, { said, order, observer });

const stack = () => double.stacks.get(NAME);
const protection = () => stack()?.parameters.deletionProtection;

describe('the protection of the tables', () => {
  it('the protection of the tables is on after a first deployment', async () => {
    const created: unknown[] = [];
    await run({}, { say: (line) => void (/Protecting/.test(line) && created.push(protection())) });
    expect(created).toEqual(['pending']);
    expect(protection()).toBe('true');
    await run();
    expect(said).toContain('Nothing to change');
  });

  /** Interrupts a first deployment before its nth action of CloudFormation. */
  const interruptedAt = (nth: number) => {
    const { cloudFormation } = double.aws;
    let asked = 0;
    cloudFormation.middlewareStack.add(
      (next) => (args) => {
        asked += 1;
        if (asked >= nth) throw new Error('^C');
        return next(args);
      },
      { step: 'initialize', name: 'interrupted' },
    );
    return run()
      .then(
        () => true,
        (error: Error) => {
          expect(error.message).toBe('^C');
          return false;
        },
      )
      .finally(() => cloudFormation.middlewareStack.remove('interrupted'));
  };

  it.runIf(isFull)('the protection of the tables is on after an interrupted deployment and the next', async () => {
    const left: unknown[] = [];
    for (const nth of counting()) {
      if (await interruptedAt(nth)) break;
      left.push(protection());
      await run();
      expect(protection(), `interrupted at ${nth}`).toBe('true');
      double.stacks.clear();
    }
    expect(left.length).toBeGreaterThan(8);
    expect(new Set(left)).toEqual(new Set([undefined, 'pending', 'true']));
    expect(said).toContain('The first deployment was interrupted before it protected the tables from deletion');
  });

  it.runIf(isFull)('the protection of the tables stays off if the operator said so', async () => {
    await run({ given: { deletionProtection: 'false' } });
    expect(protection()).toBe('false');
    await run({ given: { memoryMb: '256' } });
    expect(stack()?.parameters).toMatchObject({ deletionProtection: 'false', memoryMb: '256' });
    expect(said).not.toContain('Protecting the tables from deletion');
  });
});

describe('a failed creation', () => {
  const shell = { id: idOf(NAME, 0), status: 'ROLLBACK_COMPLETE', parameters: {}, tags: {} };
  beforeEach(() => void double.stacks.set(NAME, shell));

  it('a stack that a failed creation left is replaced after one consent', async () => {
    let asked = 0;
    const consents = async () => {
      asked += 1;
      expect(double.actions).toEqual(['DescribeStacks']);
      return true;
    };
    expect(await run({}, { confirm: consents })).toMatchObject({ StackStatus: 'UPDATE_COMPLETE' });
    expect(asked).toBe(1);
    expect(said).toContain('changes, new');
    expect(protection()).toBe('true');
  });

  it('--plan keeps a stack that a failed creation left, and says its fate', async () => {
    expect(await run({}, { confirm: async () => false })).toBeUndefined();
    expect(stack()).toBe(shell);
    expect(double.actions).toEqual(['DescribeStacks']);
    expect(said).toContain(`A failed creation of ${NAME} left an empty stack, which is deleted first`);
    expect(said).toContain('changes, new');
  });

  it.each([
    [{ given: { memoryMb: '1' } }, 'memoryMb must be'],
    [{ given: { leasesTable: 'of-nobody' } }, 'there is no table of-nobody'],
    [{ given: { codeBucket: 'of-nobody' } }, 'there is no bucket of-nobody for the code'],
    [{ untag: ['team'] }, "no tag 'team': leave out --untag team"],
  ])('a refused deployment keeps a stack that a failed creation left: %j', async (order, words) => {
    await expect(run(order)).rejects.toThrow(words);
    expect(stack()).toBe(shell);
    expect(double.actions).toEqual(['DescribeStacks']);
  });

  it.runIf(isFull)('a stack that another deployment has made since a failed creation stays', async () => {
    const another = { ...shell, id: idOf(NAME, 1), status: 'CREATE_COMPLETE' };
    const other = async () => {
      double.stacks.set(NAME, another);
      return true;
    };
    await expect(run({}, { confirm: other })).rejects.toThrow(`Stack ${NAME} is CREATE_COMPLETE`);
    expect(stack()).toBe(another);
  });
});

describe('a parameter', () => {
  it('a parameter returns to its default with --reset, and keeps its value otherwise', async () => {
    await run({ given: { memoryMb: '256', logLevel: 'DEBUG' } });
    await run({ reset: ['memoryMb'] });
    expect(stack()?.parameters).toMatchObject({ memoryMb: '512', logLevel: 'DEBUG' });
    expect(said).toContain("parameter memoryMb: '256' -> '512'");
  });

  it('a parameter that may change is passed to allowChange with its value', async () => {
    await run();
    double.tables.add('restored');
    const order = { given: { pointerAttributes: 'id' }, allowedChanges: ['pointerAttributes'] };
    await run(order);
    expect(stack()?.parameters.allowChange).toBe('pointerAttributes=id');
    await run({ given: { memoryMb: '256' } });
    expect(stack()?.parameters.allowChange).toBe('pointerAttributes=id');
  });

  it('a parameter that limits rights changes if the deployment names it', async () => {
    await run({ given: { executionStateMachines: 'jobs-*', breakScope: 'mine' } });
    expect(stack()?.parameters.allowChange).toBe('');
    await run({ given: { executionStateMachines: '*' }, reset: ['breakScope'] });
    expect(stack()?.parameters).toMatchObject({
      ...{ executionStateMachines: '*', breakScope: 'holdfast/leases.break' },
      allowChange: 'breakScope=holdfast/leases.break executionStateMachines=*',
    });
  });

  it.runIf(isFull)('a parameter that the release lacks is named, or refused if it is fixed', async () => {
    await run();
    const later = structuredClone(released);
    for (const name of ['graphTable', 'graphDepth'])
      Object.assign(later.Parameters ?? {}, { [name]: { Type: 'String', Default: '' } });
    Object.assign(Object(later.Resources.ChangeCheck?.Properties).values, { graphTable: { Ref: 'graphTable' } });
    const deployed = stack() as NonNullable<ReturnType<typeof stack>>;
    const { parameters } = deployed;
    const has = (more: object) =>
      double.stacks.set(NAME, { ...deployed, template: later, parameters: { ...parameters, ...more } });
    has({ graphTable: 'mine', graphDepth: '3' });
    await expect(run()).rejects.toThrow("graphTable='mine': this release does not have the parameter");
    has({ graphTable: '', graphDepth: '3' });
    await run();
    expect(said).toContain("parameter graphDepth: '3' is dropped, because this release does not have the parameter");
    expect(said.join()).not.toContain('graphTable');
  });
});

describe('the plan', () => {
  const plan = (order: Partial<ParsedRequest> = {}) => {
    const seen: string[] = [];
    const onChanges: Observer['onChanges'] = (changes) =>
      void seen.push(
        ...changes.map(({ ResourceChange: one }) => `${one?.Action} ${one?.ResourceType} ${one?.LogicalResourceId}`),
      );
    return run({ ...order, isPlan: true }, { onChanges }).then(() => seen);
  };

  it('the plan does not make a bucket, upload code, or request a change set', async () => {
    double.codeBucket.exists = false;
    expect(await plan()).toHaveLength(Object.keys(evaluated()).length);
    expect(said).toContain('The deployment creates the bucket holdfast-code-111122223333-eu-west-1 for the code');
    expect(double.actions).toEqual(['DescribeStacks']);
    expect(double.writes).toEqual([]);
  });

  it('the plan shows the parameters, the tags and the resources that change', async () => {
    await run({ tags: [{ Key: 'team', Value: 'a' }] });
    double.actions.length = 0;
    double.writes.length = 0;
    const changes = await plan({ given: { heartbeatConcurrency: '50' }, tags: [{ Key: 'team', Value: 'b' }] });
    expect(changes).toEqual(['Modify AWS::Lambda::Function HeartbeatLambdaFunction']);
    expect(said).toContain("parameter heartbeatConcurrency: '' -> '50'");
    expect(said).toContain("tag team: 'a' -> 'b'");
    expect(await plan({ given: { accessLogs: 'false' } })).toEqual([
      'Modify AWS::ApiGatewayV2::Stage HttpApiStage',
      'Remove AWS::Logs::LogGroup AccessLogGroup',
    ]);
    await plan();
    expect(said).toContain('No resource changes');
    expect(new Set(double.actions)).toEqual(new Set(['DescribeStacks', 'GetTemplate']));
    expect(double.writes).toEqual([]);
  });
});

const evaluated = () => withParameters({}).Resources;

describe('the changes of CloudFormation', () => {
  it.runIf(isFull)('the changes of CloudFormation are all shown before the consent, on every page', async () => {
    const page = (id: string, more = {}) => [{ Action: 'Modify', LogicalResourceId: id, ...more }];
    double.changes.push(page('One'), page('Two'), page('Three', { Action: 'Modify', Replacement: 'True' }));
    const shown: unknown[] = [];
    await run({}, { onChanges: (changes) => void shown.push(...changes.map(({ ResourceChange: one }) => one)) });
    expect(shown).toMatchObject([
      { LogicalResourceId: 'One' },
      { LogicalResourceId: 'Two' },
      { LogicalResourceId: 'Three', Replacement: 'True' },
    ]);
  });

  it.runIf(isFull)('changes that fail are shown with the reason of the first failure', async () => {
    const events = Array.from({ length: 250 }, (_, at) => ({
      ...{ id: `e${at}`, resource: `R${at}` },
      ...(at === 3 ? { status: 'CREATE_FAILED', reason: 'the limit is reached' } : { status: 'DELETE_COMPLETE' }),
    }));
    double.outcome.of = () => ({ status: 'ROLLBACK_COMPLETE', events });
    const seen: unknown[] = [];
    await expect(run({}, { onEvent: ({ EventId }) => void seen.push(EventId) })).rejects.toThrow(
      /is ROLLBACK_COMPLETE\nR3: the limit is reached$/,
    );
    expect(seen).toEqual(events.map(({ id }) => id));
  });

  it.runIf(isFull)('a deployment waits for the clean-up of the one before, and its own', async () => {
    const cleaning = 'UPDATE_COMPLETE_CLEANUP_IN_PROGRESS';
    let cleanUps = 0;
    const cleanUp = () => {
      const deployed = stack();
      if (deployed?.status !== cleaning) return;
      deployed.status = 'UPDATE_COMPLETE';
      cleanUps += 1;
    };
    await run();
    const cleaner = setInterval(cleanUp, 1000);
    try {
      double.outcome.of = () => ({ status: cleaning, events: [] });
      expect(await run({ given: { memoryMb: '256' } })).toMatchObject({ StackStatus: 'UPDATE_COMPLETE' });
      double.outcome.of = undefined;
      Object.assign(stack() ?? {}, { status: cleaning });
      expect(await run({ given: { memoryMb: '512' } })).toMatchObject({ StackStatus: 'UPDATE_COMPLETE' });
    } finally {
      clearInterval(cleaner);
    }
    expect(cleanUps).toBe(2);
  });

  it.each(
    aFew(2, [
      ['UPDATE_ROLLBACK_FAILED', 'aws cloudformation continue-update-rollback --stack-name holdfast-prod'],
      ['UPDATE_ROLLBACK_FAILED', 'If the resource ChangeCheck fails again, add --resources-to-skip ChangeCheck'],
      ['DELETE_FAILED', 'If the resource ChangeCheck fails again, add --retain-resources ChangeCheck'],
      ['DELETE_FAILED', 'aws cloudformation delete-stack --stack-name holdfast-prod --region eu-west-1'],
      ['UPDATE_FAILED', 'aws cloudformation rollback-stack --stack-name holdfast-prod'],
      ['UPDATE_IN_PROGRESS', 'deploy when the operation is complete'],
    ] as const),
  )('a deployment to a stack that is %s is refused with the next step', async (status, words) => {
    await run();
    Object.assign(stack() ?? {}, { status });
    await expect(run()).rejects.toThrow(words);
  });
});

describe('the stack', () => {
  const isProtected = () => stack()?.isProtected;

  it.runIf(isFull)('a stack cannot be deleted while its tables are protected', async () => {
    await run();
    expect(isProtected()).toBe(true);
    await run({ given: { deletionProtection: 'false' } });
    expect(isProtected()).toBe(false);
    // What an operator has protected stays.
    Object.assign(stack() ?? {}, { isProtected: true });
    await run({ given: { memoryMb: '256' } });
    expect(isProtected()).toBe(true);
  });

  it('a stack is not created unless the operator allows it', async () => {
    await expect(run({ mayCreate: false })).rejects.toThrow(
      'there is no stack holdfast-prod in account 111122223333, region eu-west-1. To create the stack, add --create',
    );
    expect(double.actions).toEqual(['DescribeStacks']);
    expect(double.writes).toEqual([]);
  });

  it.runIf(isFull)('two stages cannot have a state machine of the same name', async () => {
    await run({ given: { namespaces: 'team-a' } });
    await expect(run({ stage: 'prod-team-a' })).rejects.toThrow(
      'the stage must not be prod-team-a: the namespace team-a of the stage prod has a state machine of the same name',
    );
    await run({ stage: 'prod-team-b' });
    await expect(run({ given: { namespaces: 'team-a,team-b' } })).rejects.toThrow(
      'namespaces must not contain team-b: the stage prod-team-b has a state machine of the same name',
    );
    await run({ given: { namespaces: 'team-a,,team-c' } });
    expect(stack()?.parameters.namespaces).toBe('team-a,,team-c');
  });

  it('a stage must have a name short enough for IAM roles in its region', async () => {
    await expect(
      deployTo({ ...double.aws, region: 'ap-southeast-1' }, { said, order: { stage: 'fifteen-letters' } }),
    ).rejects.toThrow('the stage must have at most 14 characters in ap-southeast-1, not 15');
    const stage = 'a-stage-of-19-lette';
    await expect(run({ stage })).resolves.toBeDefined();
    await expect(run({ stage: 'code' })).rejects.toThrow('not begin with code');
  });
});

describe('a foreign stack', () => {
  const withStack = async (other: object) => {
    await run();
    const deployed = stack() as NonNullable<ReturnType<typeof stack>>;
    double.stacks.set(NAME, { ...deployed, ...other });
    double.actions.length = 0;
    double.writes.length = 0;
  };
  const payroll = { ...released, Resources: { Db: { Type: 'AWS::DynamoDB::Table' } } };

  it.each(aFew(1, [[{}], [{ stage: 'prod' }], [{ env: 'prod' }]]))(
    'a stack without the functions of Holdfast is refused, whatever its parameters: %j',
    async (parameters) => {
      await withStack({ template: payroll, parameters });
      await expect(run()).rejects.toThrow(`the stack ${NAME} is not a stack of Holdfast`);
      await expect(run({ isPlan: true })).rejects.toThrow('Choose another stage');
      expect(new Set(double.actions)).toEqual(new Set(['DescribeStacks', 'GetTemplate']));
      expect(double.writes).toEqual([]);
    },
  );

  it.each(aFew(1, [[{}], [{ BootstrapVersion: '/cdk-bootstrap/hnb659fds/version' }]]))(
    'a stack of Holdfast that another tool deployed is refused: %j',
    async (parameters) => {
      await withStack({ parameters });
      await expect(run({ given: { memoryMb: '256' } })).rejects.toThrow(`${NAME} was deployed by another tool`);
    },
  );
});

describe('a table or a bucket', () => {
  it('a deployment is refused if AWS does not let it describe a table', async () => {
    watch(double.aws.dynamodb).faultsOf.DescribeTable = [{ name: 'AccessDeniedException', status: 400 }];
    await expect(run()).rejects.toThrow('cannot check whether there is a table holdfast-prod-');
    expect(double.stacks.size).toBe(0);
  });

  it('a table of waiters needs the index of executions, unless execution events are off', async () => {
    const waitersTable = `test-waiters-${randomUUID()}`;
    const dynamodb = testClient();
    await dynamodb.send(
      new CreateTableCommand({
        TableName: waitersTable,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: ['key', 'ticket'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
        KeySchema: [
          { AttributeName: 'key', KeyType: 'HASH' },
          { AttributeName: 'ticket', KeyType: 'RANGE' },
        ],
      }),
    );
    const plan = (given: Record<string, string>) =>
      deployTo({ ...double.aws, dynamodb }, { said, order: { given, isPlan: true } });
    await expect(plan({ waitersTable })).rejects.toThrow('lacks the index by-execution');
    await expect(plan({ waitersTable, executionEvents: 'DISABLED' })).resolves.toBeUndefined();
  });
});

it.runIf(isFull)('a stack keeps namespaceExecutions=any until a deployment resets it', async () => {
  const namespaceExecutions = () => stack()?.parameters.namespaceExecutions;
  await run({ given: { namespaces: 'team-a', namespaceExecutions: 'any' } });
  await run({ given: { memoryMb: '256' } });
  expect(namespaceExecutions()).toBe('any');
  await run({ reset: ['namespaceExecutions'] });
  expect([undefined, 'auto']).toContain(namespaceExecutions());
});

it.runIf(isFull)('tags stay, change and go as the deployment says', async () => {
  await run({
    tags: [
      { Key: 'team', Value: 'a' },
      { Key: 'cost', Value: '1' },
    ],
  });
  await run({ tags: [{ Key: 'team', Value: 'b' }] });
  expect(stack()?.tags).toEqual({ team: 'b', cost: '1' });
  await run({ untag: ['team'] });
  expect(stack()?.tags).toEqual({ cost: '1' });
  await run({ untag: ['cost'] });
  expect(stack()?.tags).toEqual({});
});
