import { setTimeout as delay } from 'node:timers/promises';
import { CreateStateMachineCommand, DescribeExecutionCommand, StartExecutionCommand } from '@aws-sdk/client-sfn';
import { beforeAll, describe, expect, it } from 'vitest';
import { replay, type Step } from '../../contract/examples/replay.ts';
import { SCENARIOS } from '../../contract/examples.ts';
import { ROUTES } from '../../contract/routes.ts';
import { readService } from '../../infrastructure/read.ts';
import { ACCOUNT, allow, call, deployed, REGION, ROOT, serviceRole, sfn, user } from './support/aws.ts';

const STAGE = 'calls';
let outputs: Record<string, string>;
const api = () => String(outputs.ApiUrl);

beforeAll(async () => {
  outputs = await deployed(STAGE, ['--param', 'exclusiveTargets=nightly-*,target-*']);
});

/** Calls whose examples need a task, an upload, or a record that only the recording has. */
const UNSENT = ['cancelWaiter', 'stageUpload', 'resetFence', 'readCommit', 'readInFlight'];
const isSent = ({ function: name, request }: Step) =>
  !UNSENT.includes(name) &&
  !('taskToken' in request) &&
  !('waiters' in request) &&
  !('fence' in request && name === 'commit');

it.each(['leases', 'permits', 'commits', 'nameservice'])(
  'a deployment answers the signed examples of contract/examples/%s.json as recorded',
  async (name) => {
    const steps = SCENARIOS[name]?.filter(isSent) ?? [];
    expect(steps.length).toBeGreaterThan(2);
    // The bucket of the recording keeps no versions.
    const replayed = await replay(steps, async (step) => {
      const { status, body } = await sent(step);
      const { versionId, ...answer } = body as { versionId?: string };
      return { status, answer };
    });
    expect(replayed).toEqual(steps);
  },
);

function sent({ function: name, request }: Step) {
  const { method = '', path } = ROUTES.find((route) => route.function === name) ?? {};
  const query = method === 'GET' ? `?${new URLSearchParams(request as Record<string, string>)}` : '';
  return call(`${api()}${path}${query}`, { method, credentials: ROOT, ...(method === 'POST' && { body: request }) });
}

describe('who may call', () => {
  const calls: { method: string; path: string }[] = [];
  beforeAll(async () => {
    const { functions } = await readService();
    calls.push(...functions.flatMap(({ routes }) => routes));
  });
  const arn = ({ method, path }: { method: string; path: string }) =>
    `arn:aws:execute-api:${REGION}:${ACCOUNT}:${new URL(api()).hostname.split('.')[0]}/$default/${method}${path}`;
  const status = async ({ method, path }: { method: string; path: string }, credentials?: typeof ROOT) =>
    (await call(`${api()}${path}`, { method, credentials, ...(method === 'POST' && { body: {} }) })).status;

  it('a route does not let in a caller without a right to it', async () => {
    expect(calls.length).toBeGreaterThan(15);
    const nobody = await user('nobody', []);
    const other = await user('other', []);
    for (const one of calls) {
      expect(await status(one), `unsigned ${one.path}`).toBe(403);
      expect(await status(one, nobody), `without rights ${one.path}`).toBe(403);
      const Resource = calls.filter((another) => another !== one).map(arn);
      await allow('other', [{ Effect: 'Allow', Action: 'execute-api:Invoke', Resource }]);
      expect(await status(one, other), `with other rights ${one.path}`).toBe(403);
    }
  });

  it('each route lets in only callers with the right to it', async () => {
    const single = await user('single', []);
    for (const one of calls) {
      await allow('single', [{ Effect: 'Allow', Action: 'execute-api:Invoke', Resource: arn(one) }]);
      expect(await status(one, single), one.path).not.toBe(403);
    }
  });
});

it('exclusive runs five executions on one key, one after the other', async () => {
  const role = await serviceRole('target', 'states.amazonaws.com');
  const definition = JSON.stringify({ StartAt: 'Work', States: { Work: { Type: 'Wait', Seconds: 1, End: true } } });
  const { stateMachineArn } = await sfn.send(
    new CreateStateMachineCommand({ name: 'target-work', roleArn: role, definition }),
  );
  const input = JSON.stringify({ key: 'one key', ttlSeconds: 900, stateMachineArn, input: {} });
  const started = await Promise.all(
    Array.from({ length: 5 }, () =>
      sfn.send(new StartExecutionCommand({ stateMachineArn: String(outputs.ExclusiveStateMachineArn), input })),
    ),
  );
  const ends = await Promise.all(started.map(({ executionArn }) => ended(String(executionArn))));
  expect(ends.map(({ status }) => status)).toEqual(Array(5).fill('SUCCEEDED'));
  const { body } = await call(`${api()}/v1/leases?key=one%20key`, { method: 'GET', credentials: ROOT });
  expect(body).toMatchObject({ state: 'released' });
});

async function ended(executionArn: string) {
  for (;;) {
    const execution = await sfn.send(new DescribeExecutionCommand({ executionArn }));
    if (execution.status !== 'RUNNING') return execution;
    await delay(200);
  }
}
