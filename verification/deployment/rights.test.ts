import { readFile } from 'node:fs/promises';
import { PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  CreateStateMachineCommand,
  DescribeExecutionCommand,
  ListExecutionsCommand,
  StartExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { pathInNamespace } from '../../contract/routes/route.ts';
import { ROUTES } from '../../contract/routes.ts';
import { ACCOUNT, call, deployed, iam, REGION, ROOT, serviceRole, sfn, user } from './support/aws.ts';

// The policies of docs/authorization.md as they stand there, and whom they let in; and what a deployment that is narrowed to some state
// machines learns of executions.

const STAGE = 'rights';

/** A busy machine takes minutes for what another one does in seconds. */
const POLL = { timeout: 300_000, interval: 500 };

interface Policy {
  Statement: object[];
}
let policies: { worker: Policy; operator: Policy; reader: Policy; administrator: Policy; stateMachine: Policy };
let outputs: Record<string, string>;
let api = '';

beforeAll(async () => {
  const parameters = ['namespaces=team-a', 'exclusiveTargets=jobs-*', 'executionStateMachines=jobs-*'];
  outputs = await deployed(
    STAGE,
    parameters.map((one) => `--param=${one}`),
  );
  api = String(outputs.ApiUrl);
  const blocks = [...(await readFile('docs/authorization.md', 'utf8')).matchAll(/```json\n(.*?)```/gs)];
  const [worker, operator, reader, administrator, stateMachine, ...others] = blocks.map(([, text = '']) =>
    policy(text),
  );
  if (!worker || !operator || !reader || !administrator || !stateMachine || others.length > 0)
    throw new Error('docs/authorization.md has other policies than this test knows');
  policies = { worker, operator, reader, administrator, stateMachine };
});

/** The policies, with the names of this deployment. */
const policy = (text: string): Policy =>
  JSON.parse(
    text
      .replaceAll('<api>', `arn:aws:execute-api:${REGION}:${ACCOUNT}:${new URL(api).hostname.split('.')[0]}`)
      .replaceAll('holdfast-prod-', `holdfast-${STAGE}-`)
      .replaceAll('123456789012', ACCOUNT),
  );

/** Every route, of the whole deployment and of two teams. */
const CELLS = ROUTES.flatMap((route) => {
  const { function: name, method } = route;
  const inTeam = (team: string) => pathInNamespace(route).replace('{ns}', team);
  return [
    { name, method, team: undefined, path: route.path },
    ...['team-a', 'team-b'].map((team) => ({ name, method, team, path: inTeam(team) })),
  ];
});
type Cell = (typeof CELLS)[number];
type Credentials = Awaited<ReturnType<typeof user>>;

/** The cells that let the caller in, each by a signed call. Empty bodies: what becomes of a call in the function is not the question. */
async function letIn(credentials: Credentials): Promise<string[]> {
  const found: string[] = [];
  for (const { method, path } of CELLS) {
    const { status } = await call(`${api}${path}`, { method, credentials, ...(method === 'POST' && { body: {} }) });
    if (status !== 403) found.push(`${method} ${path}`);
  }
  return found;
}

const expected = (isIn: (cell: Cell) => boolean) => CELLS.filter(isIn).map(({ method, path }) => `${method} ${path}`);

const OF_WORKERS = [
  ...['readLeases', 'acquire', 'heartbeat', 'release', 'withdraw', 'readOnce', 'onceBegin', 'onceComplete'],
  ...['readRates', 'rateReserve', 'rateSettle'],
  ...['commit', 'readCommit', 'stageUpload', 'readNames', 'publish', 'whoami'],
];

describe('docs/authorization.md', () => {
  it('the policies let a worker work only in the team of its tag', async () => {
    const { Statement } = policies.worker;
    for (const team of ['team-a', 'team-b']) {
      const worker = await user(`worker-${team}`, Statement, { team });
      expect(await letIn(worker)).toEqual(expected((cell) => cell.team === team && OF_WORKERS.includes(cell.name)));
    }
    expect(await letIn(await user('worker-of-none', Statement))).toEqual([]);
    // No tag of the caller makes more of the variable than one segment of the path.
    const sly = await user('worker-sly', Statement, { team: 'team-a/leases/break' });
    expect(await letIn(sly)).toEqual([]);
  });

  it('the policies let an operator of a team call all of the team', async () => {
    const operator = await user('operator', policies.operator.Statement);
    expect(await letIn(operator)).toEqual(expected(({ team }) => team === 'team-a'));
  });

  it('the policies let a reader read in all teams', async () => {
    const reader = await user('reader', policies.reader.Statement);
    expect(await letIn(reader)).toEqual(expected(({ method }) => method === 'GET'));
  });

  /** Paths of team-b or of the whole deployment once they are cut at the decoded question mark. What is cut off is a path of team-a. */
  const CUT: [method: 'GET' | 'POST', path: string][] = [
    ['GET', '/v1/ns/team-b/leases%3F/v1/ns/team-a/leases'],
    ['GET', '/v1/ns/team-b/leases%3F/GET/v1/ns/team-a/leases'],
    ['GET', '/v1/leases%3F/v1/ns/team-a/leases'],
    ['POST', '/v1/ns/team-b/leases/acquire%3F/POST/v1/ns/team-a/leases/acquire'],
    ['POST', '/v1/ns/team-b/leases/acquire%3F/v1/ns/team-a/leases/acquire'],
    ['POST', '/v1/leases/break%3F/v1/ns/team-a/leases'],
    ['POST', '/v1/ns/team-b/expired/clean%3F/v1/ns/team-a/commits'],
    ['POST', '/v1/ns/team-b/leases/break%3F/POST/v1/ns/team-a/leases/break'],
  ];

  it.each(['whole', 'cut', 'encoded'])(
    "the policies keep a team from another team's paths if IAM compares %s",
    async (form) => {
      const reached = async (credentials: Credentials) => {
        const found: string[] = [];
        for (const [method, path] of CUT) {
          const body = method === 'POST' && { body: {} };
          const { status } = await call(api + path, { method, credentials, ...body, headers: { 'x-iam-path': form } });
          // The route of the path before the cut is there: the administrator reaches its function.
          expect([200, 400, 403]).toContain(status);
          if (status !== 403) found.push(`${method} ${path}`);
        }
        return found;
      };
      const all = CUT.map(([method, path]) => `${method} ${path}`);
      const { worker, operator, reader, administrator } = policies;
      expect(await reached(await user(`administrator-${form}`, administrator.Statement))).toEqual(all);
      expect(await reached(await user(`worker-${form}`, worker.Statement, { team: 'team-a' }))).toEqual([]);
      expect(await reached(await user(`operator-${form}`, operator.Statement))).toEqual([]);
      expect(await reached(await user(`reader-${form}`, reader.Statement))).toEqual(
        all.filter((one) => one.startsWith('GET')),
      );
    },
  );

  it('the policies let the administrator call everything', async () => {
    const administrator = await user('administrator', policies.administrator.Statement);
    expect(await letIn(administrator)).toEqual(expected(() => true));
  });

  it("the policies let a team's state machine invoke only the team's alias", async () => {
    const { accessKeyId, secretAccessKey } = await user('state-machine', policies.stateMachine.Statement);
    const credentials = { accessKeyId, secretAccessKey };
    const lambda = new LambdaClient({ endpoint: `http://127.0.0.1:${inject('port')}`, region: REGION, credentials });
    const payload = JSON.stringify({ key: 'nightly', holder: 'task' });
    const invoke = (name: string) => {
      const FunctionName = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:holdfast-${STAGE}-${name}`;
      return lambda.send(new InvokeCommand({ FunctionName, Payload: Buffer.from(payload) })).then(
        ({ FunctionError, Payload }) => FunctionError ?? JSON.parse(Payload?.transformToString() ?? ''),
        (error: Error) => error.name,
      );
    };
    expect(await invoke('acquire:team-a')).toMatchObject({ key: 'nightly', holder: 'task' });
    for (const name of ['acquire', 'acquire:HTTP', 'acquire:team-b', 'commit:team-a', 'heartbeat:team-a', 'breakLease'])
      expect(await invoke(name), name).toBe('AccessDeniedException');
  });
});

describe('executionStateMachines', () => {
  const functionArn = (name: string) => `arn:aws:lambda:${REGION}:${ACCOUNT}:function:holdfast-${STAGE}-${name}`;
  const lease = async (key: string) =>
    (await call(`${api}/v1/leases?key=${key}`, { method: 'GET', credentials: ROOT })).body;

  /** A state machine that acquires the lease of a key, and ends without a release. */
  async function holder(name: string, key: string): Promise<string> {
    const Payload = { key, holder: name, ttlSeconds: 900, 'execution.$': '$$.Execution.Id' };
    const Parameters = { FunctionName: functionArn('acquire'), Payload };
    const Acquire = { Type: 'Task', Resource: 'arn:aws:states:::lambda:invoke', Parameters, End: true };
    return machine(name, { StartAt: 'Acquire', States: { Acquire } });
  }

  async function machine(name: string, definition: object): Promise<string> {
    const roleArn = await serviceRole(name, 'states.amazonaws.com');
    const Statement = [{ Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: functionArn('acquire') }];
    const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement });
    await iam.send(new PutRolePolicyCommand({ RoleName: name, PolicyName: 'acquire', PolicyDocument }));
    const made = { name, roleArn, definition: JSON.stringify(definition) };
    const { stateMachineArn } = await sfn.send(new CreateStateMachineCommand(made));
    return String(stateMachineArn);
  }

  const start = async (stateMachineArn: string, input: object = {}) =>
    String((await sfn.send(new StartExecutionCommand({ stateMachineArn, input: JSON.stringify(input) }))).executionArn);

  it('the parameter executionStateMachines lets executions of these state machines hold leases', async () => {
    const execution = await start(await holder('jobs-nightly', 'of-a-job'));
    await expect.poll(() => lease('of-a-job'), POLL).toMatchObject({ state: 'released', holder: 'jobs-nightly' });
    expect((await sfn.send(new DescribeExecutionCommand({ executionArn: execution }))).status).toBe('SUCCEEDED');
  });

  it('the parameter executionStateMachines refuses executions of others, whose ends it would not receive', async () => {
    const executionArn = await start(await holder('others-nightly', 'of-another'));
    const end = () => sfn.send(new DescribeExecutionCommand({ executionArn }));
    const cause = expect.stringContaining('execution: must be an execution of a state machine named jobs-*');
    await expect.poll(end, POLL).toMatchObject({ status: 'FAILED', cause });
    expect(await lease('of-another')).toMatchObject({ state: 'free' });
  });

  it('the parameter executionStateMachines covers the wrapper too, and what the wrapper runs', async () => {
    const Wait = { Type: 'Wait', Seconds: 900, End: true };
    const stateMachineArn = await machine('jobs-long', { StartAt: 'Wait', States: { Wait } });
    const input = { key: 'of-a-wrapper', ttlSeconds: 900, stateMachineArn };
    const executionArn = await start(String(outputs.ExclusiveStateMachineArn), input);
    await expect.poll(() => lease('of-a-wrapper'), POLL).toMatchObject({ state: 'held', execution: executionArn });
    // If the wrapper is stopped before it has started the target, the lease is free.
    const running = async () => (await sfn.send(new ListExecutionsCommand({ stateMachineArn }))).executions;
    await expect.poll(running, POLL).toMatchObject([{ status: 'RUNNING' }]);
    await sfn.send(new StopExecutionCommand({ executionArn }));
    // The emulator lets the target of a stopped execution run, and puts no event on the bus at its end: the lease passes to it, and stays.
    const ofTarget = { state: 'held', execution: expect.stringContaining(':execution:jobs-long:') };
    await expect.poll(() => lease('of-a-wrapper'), POLL).toMatchObject(ofTarget);
  });
});
