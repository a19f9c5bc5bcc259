import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deploy, type Observer } from '../../deployment/deploy.ts';
import type { Order } from '../../deployment/request.ts';
import { type CloudFormationDouble, idOf, startCloudFormation } from '../support/stack/cloudformation.ts';
import { released } from '../support/stack/template.ts';

const NAME = 'holdfast-prod';
const ORDER: Order = {
  stage: 'prod',
  given: {},
  reset: [],
  tags: [],
  untag: [],
  allowedChanges: [],
  forgetPools: false,
};
const artifact = { template: released, templateText: JSON.stringify(released), zips: new Map<string, Buffer>() };

let double: CloudFormationDouble;
/** What the operator read. */
let said: string[];
beforeEach(async () => {
  double = await startCloudFormation(released);
  said = [];
});
afterEach(() => double.stop());

const observer = (other: Partial<Observer> = {}): Observer => ({
  say: (line) => void said.push(line),
  onChanges: (changes, isNew) => void said.push(`${changes.length > 0 ? 'changes' : 'none'}, ${isNew ? 'new' : 'old'}`),
  onEvent: () => {},
  confirm: async () => true,
  ...other,
});

const run = (order: Partial<Order> = {}, other: Partial<Observer> = {}) =>
  deploy(double.aws, { artifact, order: { ...ORDER, ...order } }, observer(other));

const stack = () => double.stacks.get(NAME);
const protection = () => stack()?.parameters.deletionProtection;

describe('the bucket for the code', () => {
  it.each(['BucketAlreadyOwnedByYou', 'OperationAborted'])(
    'may be made by another deployment at the same time (%s)',
    async (answer) => {
      double.race.answer = answer;
      await run();
      expect(stack()?.status).toMatch(/_COMPLETE$/);
    },
  );

  it('of another account is no bucket for it', async () => {
    double.race.answer = 'BucketAlreadyExists';
    await expect(run()).rejects.toThrow('another deployment makes it');
    expect(stack()).toBeUndefined();
  });
});

describe('the protection of the tables', () => {
  it('is on after a first deployment, which creates them without it', async () => {
    const created: unknown[] = [];
    await run({}, { say: (line) => void (/Protecting/.test(line) && created.push(protection())) });
    expect(created).toEqual(['pending']);
    expect(protection()).toBe('true');
    await run();
    expect(said).toContain('Nothing to change');
  });

  /** Lets a first deployment do n - 1 actions of CloudFormation and no more. */
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

  it('is on after the next deployment, wherever the first was interrupted', async () => {
    const left: unknown[] = [];
    for (let nth = 1; !(await interruptedAt(nth)); nth += 1) {
      left.push(protection());
      await run();
      expect(protection(), `interrupted at ${nth}`).toBe('true');
      double.stacks.clear();
    }
    expect(new Set(left)).toEqual(new Set([undefined, 'pending', 'true']));
    expect(left.length).toBeGreaterThan(8);
    expect(said).toContain('The first deployment was interrupted before it protected the tables from deletion');
  });

  it('stays off where the operator said so', async () => {
    await run({ given: { deletionProtection: 'false' } });
    expect(protection()).toBe('false');
    await run({ given: { memoryMb: '256' } });
    expect(stack()?.parameters).toMatchObject({ deletionProtection: 'false', memoryMb: '256' });
    expect(said).not.toContain('Protecting the tables from deletion');
  });
});

describe('what a failed creation left', () => {
  const shell = { id: idOf(NAME, 0), status: 'ROLLBACK_COMPLETE', parameters: {}, tags: {} };
  beforeEach(() => void double.stacks.set(NAME, shell));

  it('is deleted, and the stack created, after one consent', async () => {
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

  it('stays with --plan, which says that it would be deleted', async () => {
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
    [{ untag: ['team'] }, "no tag 'team' to take off"],
  ])('stays where the deployment is refused: %j', async (order, words) => {
    await expect(run(order)).rejects.toThrow(words);
    expect(stack()).toBe(shell);
    expect(double.actions).toEqual(['DescribeStacks']);
  });

  it('is deleted by its id: what another deployment has made meanwhile stays', async () => {
    const another = { ...shell, id: idOf(NAME, 1), status: 'CREATE_COMPLETE' };
    const other = async () => {
      double.stacks.set(NAME, another);
      return true;
    };
    await expect(run({}, { confirm: other })).rejects.toThrow(`Stack ${NAME} is CREATE_COMPLETE`);
    expect(stack()).toBe(another);
  });
});

it('a stack that lets namespaces name the executions of all state machines goes on to, until a deployment says otherwise', async () => {
  const namespaceExecutions = () => stack()?.parameters.namespaceExecutions;
  await run({ given: { namespaces: 'team-a', namespaceExecutions: 'any' } });
  await run({ given: { memoryMb: '256' } });
  expect(namespaceExecutions()).toBe('any');
  await run({ reset: ['namespaceExecutions'] });
  expect([undefined, 'auto']).toContain(namespaceExecutions());
});

it('tags stay, change and go as the deployment says', async () => {
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
