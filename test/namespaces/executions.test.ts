import { describe, expect, it } from 'vitest';
import { lambdaContext, throughTask } from '../support/adapters.ts';
import { leaseWorld } from '../support/leases.ts';

const arn = (name: string) => `arn:aws:states:us-east-1:000000000000:execution:${name}`;
const context = lambdaContext();
const asTeam = { ...context, invokedFunctionArn: `${context.invokedFunctionArn}:team-a` };

describe('executions that a lease of a namespace names', () => {
  it.each([
    [{ execution: arn('team-b-nightly:1') }, 'execution'],
    [{ execution: arn('team-a:1') }, 'execution'],
    [{ execution: arn('team-ab-x:1') }, 'execution'],
    [{ execution: arn('team-a-x:1'), target: arn('team-b-x:2') }, 'target'],
  ])('of other state machines are refused where a deployment asks for its own: %j', async (named, path) => {
    const { handlers, rawItem } = await leaseWorld({ ownExecutions: true });
    const { outcome, body } = await throughTask(handlers.acquire, { key: 'k', holder: 'h', ...named }, asTeam);
    const message = 'must be an execution of a state machine whose name begins with team-a-';
    expect([outcome, body.issues]).toEqual(['InvalidRequest', [{ path, message }]]);
    expect(await rawItem('team-a/k')).toBeUndefined();
  });

  it('are taken where they are its own, where no deployment asks, and from callers without a namespace', async () => {
    const own = await leaseWorld({ ownExecutions: true });
    const named = { key: 'k', holder: 'h', execution: arn('team-a-nightly:1'), target: arn('team-a-child:1') };
    expect((await throughTask(own.handlers.acquire, named, asTeam)).outcome).toBe('ok');
    const foreign = { key: 'other', holder: 'h', execution: arn('team-b-nightly:1') };
    expect((await throughTask(own.handlers.acquire, foreign)).outcome).toBe('ok');
    const any = await leaseWorld();
    expect((await throughTask(any.handlers.acquire, foreign, asTeam)).outcome).toBe('ok');
  });

  it.each([
    arn('team-a-x:1').replace('us-east-1', 'eu-west-1'),
    arn('team-a-x:1').replace('000000000000', '111111111111'),
    'arn:aws:states:us-east-1:000000000000:express:team-a-x:1:2',
  ])('of elsewhere, or of Express workflows, are refused in a namespace as without one: %s', async (execution) => {
    const { handlers } = await leaseWorld();
    const asked = { key: 'k', holder: 'h', execution };
    for (const as of [asTeam, context])
      expect((await throughTask(handlers.acquire, asked, as)).body.issues).toMatchObject([{ path: 'execution' }]);
  });
});

it('the task of one alias is another caller than that of another, also with its ids', async () => {
  const { handlers, rawItem } = await leaseWorld();
  const asked = { key: 'k', holder: 'h', requestId: 'r' };
  expect((await throughTask(handlers.acquire, asked, asTeam)).outcome).toBe('ok');
  expect((await rawItem('team-a/k'))?.principal).toEqual({ S: 'alias:team-a' });
  expect((await throughTask(handlers.acquire, { ...asked, key: 'team-a/k' }, context)).outcome).toBe('LeaseHeld');
});
