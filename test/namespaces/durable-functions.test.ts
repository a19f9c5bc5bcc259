import { expect, it } from 'vitest';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import { newExecutionArn } from '../support/emulators/callback-model.ts';
import { lambdaContext, throughTask } from '../support/stack/adapters.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const context = lambdaContext();
const asTeam = { ...context, invokedFunctionArn: `${context.invokedFunctionArn}:team-a` };
const serving = (durableFunctions: string | undefined, onlyOwn = false) =>
  leaseWorld({ executions: { ...ANY_EXECUTION, durableFunctions, onlyOwn } });
const asked = { key: 'k', holder: 'h' };
const ARN = newExecutionArn('billing');
const MACHINE = 'arn:aws:states:us-east-1:000000000000:execution:machine:run';

it("a callback is refused by the parameter's name if durable functions are not served", async () => {
  const { handlers, rawItem } = await serving(undefined);
  const { outcome, body } = await throughTask(handlers.acquire, { ...asked, callbackId: 'Ab3+/w==', execution: ARN });
  expect(outcome).toBe('InvalidRequest');
  expect(body.issues).toEqual([
    { path: 'callbackId', message: 'needs the parameter durableFunctions of the deployment, which is empty' },
  ]);
  expect(await rawItem('k')).toBeUndefined();
});

it('an execution of a durable function is refused if the deployment serves none', async () => {
  const { handlers } = await serving(undefined);
  const message = 'must be an execution of a state machine: the parameter durableFunctions of the deployment is empty';
  const { body } = await throughTask(handlers.acquire, { ...asked, execution: ARN, target: ARN });
  expect(body.issues).toEqual(['execution', 'target'].map((path) => ({ path, message })));
});

it.each([ARN, ARN.replace('$LATEST', '$LATEST.PUBLISHED'), ARN.replace('$LATEST', '17')])(
  'an execution of a version of a named function is taken: %s',
  async (execution) => {
    const { handlers } = await serving('bill*');
    expect((await throughTask(handlers.acquire, { ...asked, execution })).outcome).toBe('ok');
    const permit = { ...asked, key: 'gpus', limit: 2, execution };
    expect((await throughTask(handlers.acquire, permit)).outcome).toBe('ok');
  },
);

it.each([
  [newExecutionArn('approvals'), 'must be an execution of a durable function named bill*'],
  [ARN.replace('us-east-1', 'eu-west-1'), 'must be an execution in the account and region of this deployment'],
  [ARN.replace('000000000000', '111111111111'), 'must be an execution in the account and region of this deployment'],
  [ARN.replace('$LATEST', 'live'), 'must be the ARN of an execution of a Standard workflow or of a durable function'],
  [
    ARN.replace('/durable-execution/', '/'),
    'must be the ARN of an execution of a Standard workflow or of a durable function',
  ],
  [`${ARN}${'x'.repeat(320)}`, 'must be at most 320 bytes of UTF-8'],
])('another execution is refused: %s', async (execution, message) => {
  const { handlers } = await serving('bill*');
  const { body } = await throughTask(handlers.acquire, { ...asked, execution });
  expect(body.issues).toContainEqual({ path: 'execution', message });
});

it('in a namespace with own executions, function names begin with the namespace', async () => {
  const { handlers } = await serving('*', true);
  const named = (name: string) => ({ ...asked, execution: newExecutionArn(name) });
  expect((await throughTask(handlers.acquire, named('team-a-bill'), asTeam)).outcome).toBe('ok');
  expect((await throughTask(handlers.acquire, named('team-b-bill'), asTeam)).body.issues).toEqual([
    { path: 'execution', message: 'must be an execution of a durable function whose name begins with team-a-' },
  ]);
  expect((await throughTask(handlers.acquire, { ...named('team-b-bill'), key: 'free' })).outcome).toBe('ok');
});

const id = { callbackId: 'Ab3+/w==' };
it.each([
  [{ callbackId: '' }, { callbackId: 'must be the id of a callback of a durable function' }],
  [{ callbackId: 'a'.repeat(1025) }, { callbackId: 'must be at most 1,024 bytes of UTF-8' }],
  [{ callbackId: 'a-b' }, { callbackId: 'must be the id of a callback of a durable function' }],
  [{ callbackId: 'ab===' }, { callbackId: 'must be the id of a callback of a durable function' }],
  [{ ...id, taskToken: 't' }, { taskToken: 'cannot be combined with callbackId' }],
  [{ ...id, waitSeconds: 5 }, { waitSeconds: 'cannot be combined with callbackId' }],
  [{ ...id, fair: false }, { fair: 'cannot be combined with callbackId' }],
  [{ ...id, ticket: 't', requestId: 'r' }, { ticket: 'cannot be combined with callbackId' }],
  [id, { execution: 'must be the durable execution of the callback' }],
  [{ ...id, execution: MACHINE }, { execution: 'must be the durable execution of the callback' }],
  [{ parkSeconds: 5 }, { parkSeconds: 'needs a taskToken or a callbackId' }],
])('a request with contradicting fields names the field: %j', async (fields, issues) => {
  const { handlers } = await serving('*');
  const { body } = await throughTask(handlers.acquire, { ...asked, ...fields });
  const shown = (body.issues as { path: string; message: string }[]).map(({ path, message }) => [path, message]);
  expect(Object.fromEntries(shown)).toMatchObject(issues);
});
