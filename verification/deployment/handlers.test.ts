import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { CreateFunctionCommand, InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { build } from 'rolldown';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { Holdfast } from '../../clients/typescript/src/index.ts';
import {
  ACCOUNT,
  client,
  deployed,
  describeAll,
  environment,
  iam,
  REGION,
  ROOT,
  run,
  serviceRole,
} from './support/aws.ts';

// The programs of examples/handlers as a team would run them: Lambda functions with a role of their own, behind a standard and a FIFO queue.

const STAGE = 'handlers';
const POLL = { timeout: 300_000, interval: 500 };
const lambda = new LambdaClient({ endpoint: `http://127.0.0.1:${inject('port')}`, region: REGION, credentials: ROOT });
/** The bundle of each program, by name. */
const bundles: Record<string, string> = {};
let folder = '';
let endpoint = '';
let role = '';
let holdfast: Holdfast;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-handlers-'));
  endpoint = String((await deployed(STAGE)).ApiUrl);
  holdfast = client(endpoint, { holder: 'test' });
  role = await serviceRole('handlers', 'lambda.amazonaws.com');
  const api = `arn:aws:execute-api:${REGION}:${ACCOUNT}:${new URL(endpoint).hostname.split('.')[0]}`;
  const calls = ['acquire', 'heartbeat', 'release', 'withdraw'];
  const Statement = [
    {
      Effect: 'Allow',
      Action: 'execute-api:Invoke',
      Resource: calls.map((name) => `${api}/$default/POST/v1/leases/${name}`),
    },
    { Effect: 'Allow', Action: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'], Resource: '*' },
    { Effect: 'Allow', Action: ['logs:CreateLogStream', 'logs:PutLogEvents'], Resource: '*' },
  ];
  const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement });
  await iam.send(new PutRolePolicyCommand({ RoleName: 'handlers', PolicyName: 'handlers', PolicyDocument }));
  for (const name of ['order', 'queue', 'nightly']) bundles[name] = await bundled(name);
  for (const name of ['order', 'queue']) await createFunction(name);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Bundles an example with a client of the emulator in the place of its own client. */
async function bundled(name: string): Promise<string> {
  const outfile = join(folder, name, 'index.mjs');
  await build({
    input: `examples/handlers/${name}.ts`,
    platform: 'node',
    logLevel: 'warn',
    resolve: {
      alias: {
        'holdfast-client/handlers': resolve('clients/typescript/src/handlers.ts'),
        'holdfast-client': resolve('clients/typescript/src/index.ts'),
      },
    },
    plugins: [
      {
        name: 'client of the emulator',
        resolveId: (id, importer) =>
          id === './client.ts' && importer?.includes('/examples/handlers/')
            ? resolve('verification/deployment/support/handler-client.ts')
            : undefined,
      },
    ],
    output: { file: outfile, format: 'esm', codeSplitting: false },
  });
  return outfile;
}

const settings = () => ({ HOLDFAST_ENDPOINT: endpoint, EMULATOR_PORT: String(inject('port')) });

async function createFunction(name: string): Promise<void> {
  const zip = join(folder, `${name}.zip`);
  const python = resolve('.venv-ministack/bin/python');
  const { exitCode, output } = await run(python, ['-m', 'zipfile', '--create', zip, String(bundles[name])]);
  if (exitCode !== 0) throw new Error(output);
  await lambda.send(
    new CreateFunctionCommand({
      ...{ FunctionName: `example-${name}`, Role: role, Runtime: 'nodejs24.x', Handler: 'index.handler', Timeout: 30 },
      Code: { ZipFile: await readFile(zip) },
      Environment: { Variables: settings() },
    }),
  );
}

/** What the function answers to an HTTP request for the order. */
async function ship(id: string): Promise<{ statusCode: number; headers?: Record<string, string> }> {
  const Payload = JSON.stringify({ pathParameters: { id } });
  const { Payload: answer, FunctionError } = await lambda.send(
    new InvokeCommand({ FunctionName: 'example-order', Payload }),
  );
  const body = Buffer.from(answer ?? []).toString();
  if (FunctionError) throw new Error(body);
  return JSON.parse(body);
}

it('An HTTP handler in Lambda answers 409 while another holds the order', async () => {
  expect(await ship('7')).toMatchObject({ statusCode: 200 });
  const lease = await holdfast.acquire('order/7');
  const refused = await ship('7');
  expect(refused).toMatchObject({ statusCode: 409 });
  expect(Number(refused.headers?.['retry-after'])).toBeGreaterThan(0);
  expect(await ship('8')).toMatchObject({ statusCode: 200 });
  await lease.release();
  expect(await ship('7')).toMatchObject({ statusCode: 200 });
});

/** A queue with a dead letter queue behind the handler. @returns their addresses */
async function makeQueues(name: string, suffix: '' | '.fifo') {
  const fifo = suffix && { FifoQueue: 'true' };
  const create = (QueueName: string, Attributes: object) => ['sqs', 'create_queue', { QueueName, Attributes }] as const;
  const arn = (queue: string) => `arn:aws:sqs:${REGION}:${ACCOUNT}:${queue}${suffix}`;
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: arn(`${name}-dead`), maxReceiveCount: '3' });
  const [dead, live, source] = await describeAll([
    [...create(`${name}-dead${suffix}`, { ...fifo })],
    [...create(`${name}${suffix}`, { ...fifo, RedrivePolicy, VisibilityTimeout: '2' })],
    [
      'lambda',
      'create_event_source_mapping',
      {
        ...{ EventSourceArn: arn(name), FunctionName: 'example-queue', BatchSize: 10 },
        FunctionResponseTypes: ['ReportBatchItemFailures'],
      },
    ],
  ]);
  for (const answer of [dead, live, source]) expect(answer.error).toBeUndefined();
  return { live: String(live.QueueUrl), dead: String(dead.QueueUrl) };
}

/** How many messages a queue has, seen or in flight. */
async function countOf(QueueUrl: string): Promise<number> {
  const AttributeNames = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'];
  const [{ Attributes }] = await describeAll([['sqs', 'get_queue_attributes', { QueueUrl, AttributeNames }]]);
  return AttributeNames.reduce((sum, name) => sum + Number(Attributes[name]), 0);
}

/** The bookings that the function has printed for an account, by amount: a standard queue keeps no order. */
async function booked(account: string): Promise<number[]> {
  const [{ events }] = await describeAll([
    ['logs', 'filter_log_events', { logGroupName: '/aws/lambda/example-queue' }],
  ]);
  const lines = (events as { message: string }[]).map(({ message }) => message).join('\n');
  return [...lines.matchAll(new RegExp(`booked (\\d+) for ${account},`, 'g'))]
    .map(([, amount]) => Number(amount))
    .toSorted((left, right) => left - right);
}

it.each([
  { queue: 'a standard queue', suffix: '', books: [10, 20], gives: 'each message but the one that fails', fails: 1 },
  // The message behind the failure is returned with it each time, or the group would lose its order.
  {
    queue: 'a FIFO queue',
    suffix: '.fifo',
    books: [10],
    gives: 'what stands before the failure in its group',
    fails: 2,
  },
] as const)(
  'A function behind $queue books $gives, and the rest becomes dead letters',
  async ({ suffix, books, fails }) => {
    const account = suffix ? 'fifo' : 'standard';
    const { live, dead } = await makeQueues('bookings', suffix);
    const send = (amount: number) => [
      'sqs',
      'send_message',
      {
        ...{ QueueUrl: live, MessageBody: JSON.stringify({ account, amount }) },
        ...(suffix && { MessageGroupId: 'g', MessageDeduplicationId: `m${amount}` }),
      },
    ];
    await describeAll([10, -1, 20].map(send) as never);
    await expect.poll(() => countOf(dead), POLL).toBe(fails);
    await expect.poll(() => countOf(live), POLL).toBe(0);
    await expect.poll(() => booked(account), POLL).toEqual(books);
    expect(await holdfast.readLease(`account/${account}`)).toMatchObject({ state: 'released' });
  },
);

/** Runs a task of ECS, as a process with a role. */
function task(holder: string, steps: number): { child: ChildProcess; printed: Promise<string> } {
  const child = spawn(process.execPath, [String(bundles.nightly)], {
    env: { ...environment(), AWS_REGION: REGION, ...settings(), HOLDER: holder, STEPS: String(steps) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return { child, printed: text(child.stdout) };
}

it('A nightly job that is started twice runs once', async () => {
  const first = task('first', 10_000);
  await expect.poll(() => holdfast.readLease('nightly-report'), POLL).toMatchObject({ state: 'held', holder: 'first' });
  expect(await task('second', 1).printed).toBe('first is at it already\n');
  first.child.kill('SIGTERM');
  expect(await first.printed).toContain('stopped, and the lease is released');
  expect(await task('third', 1).printed).toContain('the report is written');
});
