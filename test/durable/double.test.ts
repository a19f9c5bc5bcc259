import { type DurableContext, type DurableOperationError, withDurableExecution } from '@aws/durable-execution-sdk-js';
import {
  GetDurableExecutionCommand,
  InvokeCommand,
  LambdaClient,
  ListDurableExecutionsByFunctionCommand,
  SendDurableExecutionCallbackFailureCommand,
} from '@aws-sdk/client-lambda';
import { afterAll, expect, it } from 'vitest';
import { startDurableFunctions } from '../../local/durable/start.ts';
import type { BusEvent } from '../../local/events.ts';
import type { LambdaHandler } from '../../local/lambda.ts';

type Work = (event: { [field: string]: unknown }, ctx: DurableContext) => Promise<unknown>;

const events: BusEvent[] = [];
const works: Record<string, Work> = {};
/** The double, with the handler of the real SDK. A second of a wait takes 20 ms. */
const double = await startDurableFunctions(
  { dispatch: (event) => void events.push(event) },
  {
    handlers: Object.fromEntries(
      ['order', 'other'].map((name) => [
        name,
        async () =>
          withDurableExecution((event, ctx) => (works[name] as Work)(event, ctx), { client: lambda }) as LambdaHandler,
      ]),
    ),
    port: 0,
    secondMs: 20,
  },
);
const lambda = new LambdaClient({
  endpoint: double.endpoint,
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  maxAttempts: 1,
});
afterAll(async () => {
  lambda.destroy();
  await double.stop();
});

const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

async function start(work: Work, input: object = {}, name?: string): Promise<string> {
  works.order = work;
  const { DurableExecutionArn } = await lambda.send(
    new InvokeCommand({
      ...{ FunctionName: 'order:$LATEST', InvocationType: 'Event', Payload: bytes(input) },
      ...(name && { DurableExecutionName: name }),
    }),
  );
  return DurableExecutionArn as string;
}

const get = (arn: string) => lambda.send(new GetDurableExecutionCommand({ DurableExecutionArn: arn }));

/** The description of an execution after its end. */
async function ended(arn: string) {
  await double.service.execution(arn).ended;
  return get(arn);
}

it("The double runs a failed step again after the handler's delay", async () => {
  let runs = 0;
  const arn = await start(async (_event, ctx) =>
    ctx.step(
      'flaky',
      async () => {
        if (++runs < 3) throw new Error('not yet');
        return runs;
      },
      { retryStrategy: () => ({ shouldRetry: true, delay: { seconds: 1 } }) },
    ),
  );
  expect(await ended(arn)).toMatchObject({ Status: 'SUCCEEDED', Result: '3' });
});

it.each(['größe', 'k'.repeat(257), 'two\nlines'])(
  'The double refuses a name that AWS does not allow: %j',
  async (name) => {
    const arn = await start(async (_event, ctx) => ctx.step(name, async () => 1));
    const { Status, Error: error } = await ended(arn);
    expect([Status, error?.ErrorMessage]).toEqual(['FAILED', expect.stringContaining('printable ASCII')]);
  },
);

it('A callback that fails keeps its message and its data, and loses its type', async () => {
  const arn = await start(async (_event, ctx) => {
    const [result, id] = await ctx.createCallback('approval');
    await ctx.step(
      'ask',
      async () =>
        void (await lambda.send(
          new SendDurableExecutionCallbackFailureCommand({
            CallbackId: id,
            Error: { ErrorType: 'LeaseHeld', ErrorMessage: 'held', ErrorData: '{"code":"LeaseHeld"}' },
          }),
        )),
    );
    return result.catch((error) => {
      const { name, message, errorData } = error as DurableOperationError;
      return { name, message, errorData };
    });
  });
  expect(JSON.parse((await ended(arn)).Result ?? '')).toEqual({
    ...{ name: 'CallbackExternalError', message: 'held', errorData: '{"code":"LeaseHeld"}' },
  });
});

it('A callback without an answer times out', async () => {
  const arn = await start(async (_event, ctx) => {
    const [result] = await ctx.createCallback('approval', { timeout: { seconds: 3 } });
    return result.catch((error) => (error as DurableOperationError).errorType);
  });
  expect(await ended(arn)).toMatchObject({ Result: '"CallbackTimeoutError"' });
});

it('Both ends of an execution are events of the bus', async () => {
  events.length = 0;
  const arn = await start(async () => {
    throw new Error('no');
  });
  const { EndTimestamp, StartTimestamp } = await ended(arn);
  const detail = {
    ...{ durableExecutionArn: arn, durableExecutionName: arn.split('/')[2] },
    ...{ functionArn: arn.split('/')[0], startTimestamp: StartTimestamp?.toISOString() },
  };
  const event = { source: 'aws.lambda', 'detail-type': 'Durable Execution Status Change', resources: [] };
  expect(events).toEqual([
    { ...event, detail: { ...detail, status: 'RUNNING' } },
    { ...event, detail: { ...detail, status: 'FAILED', endTimestamp: EndTimestamp?.toISOString() } },
  ]);
});

it('A name starts one execution for one input', async () => {
  const one = await start(async () => 1, { a: 1 }, 'named');
  expect(await start(async () => 2, { a: 1 }, 'named')).toBe(one);
  await expect(start(async () => 2, { a: 2 }, 'named')).rejects.toMatchObject({
    name: 'DurableExecutionAlreadyStartedException',
  });
  const list = await lambda.send(new ListDurableExecutionsByFunctionCommand({ FunctionName: 'order' }));
  expect(list.DurableExecutions?.[0]).toMatchObject({ DurableExecutionName: 'named', DurableExecutionArn: one });
});

it('A caller that waits receives the result, or the error of the handler', async () => {
  const invoke = async (work: Work) => {
    works.other = work;
    const { Payload, FunctionError } = await lambda.send(new InvokeCommand({ FunctionName: 'other:$LATEST' }));
    return [FunctionError, JSON.parse(Payload?.transformToString() ?? '')];
  };
  expect(await invoke(async () => ({ done: true }))).toEqual([undefined, { done: true }]);
  const failing: Work = async () => {
    throw new TypeError('no');
  };
  expect(await invoke(failing)).toEqual(['Unhandled', { errorType: 'TypeError', errorMessage: 'no' }]);
  await expect(lambda.send(new InvokeCommand({ FunctionName: 'none' }))).rejects.toMatchObject({
    ...{ name: 'ResourceNotFoundException', message: expect.stringContaining('order, other') },
  });
});
