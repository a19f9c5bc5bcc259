import { describe, expect, it } from 'vitest';
import { repairLines } from '../../shared/locks/calls/repair.ts';
import { ANY_EXECUTION, isDescribed } from '../../shared/locks/executions/allowed.ts';
import { nameOfRequest } from '../../shared/locks/record/identity.ts';
import { call } from '../support/emulators/aws.ts';
import { lambdaContext, throughTask } from '../support/stack/adapters.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

const arn = (name: string) => `arn:aws:states:us-east-1:000000000000:execution:${name}`;
const context = lambdaContext();
const asTeam = { ...context, invokedFunctionArn: `${context.invokedFunctionArn}:team-a` };

describe('own executions', () => {
  it.each([
    [{ execution: arn('team-b-nightly:1') }, 'execution'],
    [{ execution: arn('team-a:1') }, 'execution'],
    [{ execution: arn('team-ab-x:1') }, 'execution'],
    [{ execution: arn('undefined-team-a-exclusive:1') }, 'execution'], // not a wrapper: a service without a name has none
    [{ execution: arn('team-a-x:1'), target: arn('team-b-x:2') }, 'target'],
  ])('a deployment that asks for its own executions refuses others: %j', async (named, path) => {
    const { handlers, rawItem } = await leaseWorld({ executions: { ...ANY_EXECUTION, onlyOwn: true } });
    const { outcome, body } = await throughTask(handlers.acquire, { key: 'k', holder: 'h', ...named }, asTeam);
    const message = 'must be an execution of a state machine whose name begins with team-a-';
    expect([outcome, body.issues]).toEqual(['InvalidRequest', [{ path, message }]]);
    expect(await rawItem('team-a/k')).toBeUndefined();
  });

  it('a deployment takes its own executions, and those of callers without a namespace', async () => {
    const own = await leaseWorld({ executions: { ...ANY_EXECUTION, onlyOwn: true } });
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
    arn('team-a-x:1').replace('arn:aws:', 'arn:aws-us-gov:'),
    'arn:aws:states:us-east-1:000000000000:express:team-a-x:1:2',
  ])('executions elsewhere, or of Express workflows, are refused in a namespace too: %s', async (execution) => {
    const { handlers } = await leaseWorld();
    const asked = { key: 'k', holder: 'h', execution };
    for (const as of [asTeam, context])
      expect((await throughTask(handlers.acquire, asked, as)).body.issues).toMatchObject([{ path: 'execution' }]);
  });
});

describe('named state machines', () => {
  const executions = { onlyOwn: true, stateMachines: 'jobs-*.x', service: 'holdfast-prod' };

  it.each(['jobs-1', 'jobs-1.xy', 'jobs-1-x', 'my-jobs-1.x', 'holdfast-dev-exclusive', 'holdfast-prod-other'])(
    'a deployment that is narrowed to state machines refuses other executions: %s',
    async (machine) => {
      const { handlers, rawItem } = await leaseWorld({ executions });
      const [own, other] = [arn('jobs-2.x:1'), arn(`${machine}:1`)];
      const message = 'must be an execution of a state machine named jobs-*.x';
      for (const [named, path] of [
        [{ execution: other }, 'execution'],
        [{ execution: own, target: other }, 'target'],
      ] as const) {
        const { outcome, body } = await throughTask(handlers.acquire, { key: 'k', holder: 'h', ...named });
        expect([outcome, body.issues]).toEqual(['InvalidRequest', [{ path, message }]]);
      }
      expect(await rawItem('k')).toBeUndefined();
    },
  );

  it.each(['jobs-1.x', 'jobs-.x', 'holdfast-prod-exclusive', 'holdfast-prod-team-a-exclusive'])(
    'executions of the named state machines and of the wrappers are taken: %s',
    async (machine) => {
      const { handlers } = await leaseWorld({ executions });
      const asked = { key: 'k', holder: 'h', execution: arn(`${machine}:1`) };
      expect((await throughTask(handlers.acquire, asked)).outcome).toBe('ok');
    },
  );

  it('executions in a namespace are its own, and those of its own wrapper', async () => {
    const { handlers } = await leaseWorld({ executions: { ...executions, stateMachines: '*' } });
    const outcome = async (machine: string, namespace = 'team-a') => {
      const as = { ...context, invokedFunctionArn: `${context.invokedFunctionArn}:${namespace}` };
      const asked = { key: machine, holder: 'h', execution: arn(`${machine}:1`) };
      return (await throughTask(handlers.acquire, asked, as)).outcome;
    };
    expect(await outcome('holdfast-prod-team-a-exclusive')).toBe('ok');
    for (const machine of [
      'holdfast-prod-exclusive',
      'holdfast-prod-team-b-exclusive',
      'holdfast-prod-team-a-x-exclusive',
    ])
      expect(await outcome(machine), machine).toBe('InvalidRequest');
    // For the namespace `holdfast`, the name of the service and of every wrapper begins with the namespace.
    expect(await outcome('holdfast-prod-team-b-exclusive', 'holdfast')).toBe('InvalidRequest');
    expect(await outcome('holdfast-jobs', 'holdfast')).toBe('ok');
  });

  it.each([
    [arn('jobs-1.x:1'), true],
    [arn('others:1'), false],
    [arn('jobs-1.x:1').replace(':execution:', ':express:'), false],
    [arn('jobs-1.x:1').replace('us-east-1', 'eu-west-1'), false],
    // IAM denies these, because no execution has such an ARN.
    [arn('jobs-1.x'), false],
    [arn('jobs-1.x:'), false],
    [arn('jobs-1.x:1:2'), false],
  ])('executions that a deployment takes are those that it may describe (%s: %s)', (execution, isAllowed) => {
    expect(isDescribed(executions, execution, call({ home: 'aws:us-east-1:000000000000' }))).toBe(isAllowed);
  });

  it('the repair leaves grants of executions it may not describe to their expiry', async () => {
    // Written before the deployment was narrowed.
    const { dependencies, acquire, park, release, read, steps, clock } = await lineWorld();
    const execution = arn('others:1');
    const first = await acquire({ key: 'k' });
    await park({ key: 'k', execution, ttlSeconds: 60 });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    clock.advance(11_000);
    steps.foreign.add(execution);
    const own = call({ home: 'aws:us-east-1:000000000000' });
    // A deployment that should be able to describe the execution must show the fault.
    await expect(repairLines(dependencies)({}, own)).rejects.toMatchObject({ code: 'Unavailable' });
    const narrowed = { ...dependencies, executions: { ...executions, onlyOwn: false } };
    expect(await repairLines(narrowed)({}, own)).toMatchObject({ complete: true, granted: 0 });
    expect(await read({ key: 'k' })).toMatchObject({ state: 'held' });
    await steps.stop();
  });
});

describe('functions without a namespace', () => {
  it.each(['team-a', 'HTTP', '7'])('a function that belongs to no namespace refuses the alias %s', async (alias) => {
    const { handlers, steps, acquire, park, read, clock } = await lineWorld();
    const execution = steps.newExecution();
    await acquire({ key: 'team-b/k', execution, ttlSeconds: 3600 });
    await park({ key: 'team-b/k' });
    const before = await read({ key: 'team-b/k' });
    const as = { ...context, invokedFunctionArn: `${context.invokedFunctionArn}:${alias}` };
    const event = { execution, status: 'FAILED', stopDate: clock.now() };
    for (const [handler, payload] of [
      [handlers.executionEnded, event],
      [handlers.executionEnded, { ...event, again: true }],
      [handlers.repairQueues, { key: 'team-b/k' }],
      [handlers.repairQueues, {}],
    ] as const) {
      const { outcome, body } = await throughTask(handler, payload, as);
      expect([outcome, body.missing]).toEqual(['Forbidden', 'the function without an alias']);
    }
    expect(await read({ key: 'team-b/k' })).toEqual(before);
    await steps.stop();
  });

  it('a running execution counts as ended only if its event says how it ended', async () => {
    const { handlers, steps, clock, acquire, read } = await lineWorld();
    const execution = steps.newExecution();
    steps.executions.set(execution, 'RUNNING');
    await acquire({ key: 'k', execution, ttlSeconds: 3600 });
    const ended = async (more: object) => (await throughTask(handlers.executionEnded, { execution, ...more })).body;
    expect(await ended({})).toMatchObject({ freed: 0 });
    expect(await read({ key: 'k' })).toMatchObject({ state: 'held' });
    const stopDate = new Date(clock.now()).toISOString();
    expect(await ended({ status: 'SUCCEEDED', stopDate })).toMatchObject({ freed: 1 });
    await steps.stop();
  });
});

it('tasks of two aliases are different callers, even with the same ids', async () => {
  const { handlers, rawItem } = await leaseWorld();
  const asked = { key: 'k', holder: 'h', requestId: 'r' };
  expect((await throughTask(handlers.acquire, asked, asTeam)).outcome).toBe('ok');
  const name = nameOfRequest({ holder: 'h', requestId: 'r', principal: 'alias:team-a' });
  expect((await rawItem('team-a/k'))?.h?.M?.m).toEqual({ S: name });
  expect((await throughTask(handlers.acquire, { ...asked, key: 'team-a/k' }, context)).outcome).toBe('LeaseHeld');
});
