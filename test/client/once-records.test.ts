import type { DynamoDBRecord, KinesisStreamRecord, SQSRecord } from 'aws-lambda';
import { describe, expect, it, vi } from 'vitest';
import { leasedRecords, onceRecords } from '../../clients/typescript/src/handlers.ts';
import { FakeLambda, type LambdaContext } from './fake-lambda.ts';

/** Loads the module that the client imports at its first slot: a manual clock does not wait for an import. */
await import('../../clients/typescript/src/once.ts');

const sqs = (messageId: string, key: string, group?: string) =>
  ({
    ...{ messageId, receiptHandle: `handle of ${messageId}`, body: key },
    eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:orders${group === undefined ? '' : '.fifo'}`,
    attributes: { MessageGroupId: group },
  }) as SQSRecord;
const kinesis = (sequenceNumber: string, key: string) =>
  ({
    eventSourceARN: 'arn:aws:kinesis:::stream/s',
    kinesis: { sequenceNumber, partitionKey: key },
  }) as KinesisStreamRecord;
const change = (SequenceNumber: string, key: string) =>
  ({
    eventSourceARN: 'arn:aws:dynamodb:::table/t/stream/s',
    dynamodb: { SequenceNumber, Keys: { id: { S: key } } },
  }) as DynamoDBRecord;

const failed = (...ids: string[]) => ({
  value: { batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })) },
});

/** A handler of records that fails at the keys of `faulty`, and notes the others. */
function setting<Message extends SQSRecord | KinesisStreamRecord | DynamoDBRecord>(
  keyOf: (record: Message) => string | undefined,
  options: { concurrency?: number; defer?: (record: Message, ms: number) => unknown; onFailure?: () => void } = {},
) {
  const lambda = new FakeLambda();
  const done: (string | undefined)[] = [];
  const faulty = new Set<string>();
  const handler = onceRecords<Message, string | undefined>({
    ...{ holdfast: lambda.holdfast, key: keyOf, onFailure: () => {} },
    ...options,
  })(async (record, context: LambdaContext, run) => {
    const key = keyOf(record);
    if (key && faulty.has(key)) throw new Error(`${key} fails in ${context.functionName}`);
    if (key) expect(run).toMatchObject({ key, held: true });
    done.push(key);
  });
  const invoke = (...Records: Message[]) => lambda.invoke(handler, { Records });
  /** Lets another invocation work for a key. */
  const hold = (key: string) =>
    lambda.service.transport(
      'onceBegin',
      { key, holder: 'other', requestId: key, ttlSeconds: 42 },
      new AbortController().signal,
    );
  return { lambda, done, faulty, invoke, hold };
}

describe('onceRecords', () => {
  const ofQueue = ({ body }: SQSRecord) => body || undefined;

  it('onceRecords handles each key once, however often its record arrives', async () => {
    const { done, invoke, lambda } = setting(ofQueue);
    expect(await invoke(sqs('1', 'a'), sqs('2', 'b'), sqs('3', 'a'))).toEqual(failed());
    expect(await invoke(sqs('1', 'a'), sqs('4', 'c'), sqs('5', ''))).toEqual(failed());
    expect(done).toEqual(['a', 'b', 'c', undefined]);
    expect(lambda.clock.timers).toEqual([]);
  });

  it('onceRecords makes only failed records come again, and handles them then', async () => {
    const { done, faulty, invoke } = setting(ofQueue);
    faulty.add('b');
    expect(await invoke(sqs('1', 'a'), sqs('2', 'b'), sqs('3', 'c'))).toEqual(failed('2'));
    faulty.clear();
    expect(await invoke(sqs('2', 'b'))).toEqual(failed());
    expect(done).toEqual(['a', 'c', 'b']);
  });

  it('onceRecords makes a record come again that another invocation works for, and defers it', async () => {
    const deferred: unknown[] = [];
    const defer = ({ receiptHandle }: SQSRecord, ms: number) => deferred.push([receiptHandle, ms]);
    const { done, invoke, hold } = setting(ofQueue, { defer });
    await hold('a');
    expect(await invoke(sqs('1', 'a'), sqs('2', 'b'))).toEqual(failed('1'));
    expect([done, deferred]).toEqual([['b'], [['handle of 1', 42_000]]]);
  });

  it('onceRecords makes the later records of a message group come again after a failure', async () => {
    const { done, faulty, invoke } = setting(ofQueue, { concurrency: 3 });
    faulty.add('a');
    expect(await invoke(sqs('1', 'a', 'g'), sqs('2', 'b', 'g'), sqs('3', 'c', 'h'))).toEqual(failed('1', '2'));
    expect(done).toEqual(['c']);
  });

  it('onceRecords throws if every record failed, so that nothing is lost without ReportBatchItemFailures', async () => {
    const { faulty, invoke } = setting(ofQueue);
    faulty.add('a');
    expect(await invoke(sqs('1', 'a'))).toMatchObject({ error: { message: 'a fails in test' } });
    expect(await invoke()).toEqual(failed());
  });

  it.each([
    ['Kinesis', kinesis, ({ kinesis }: KinesisStreamRecord) => kinesis.partitionKey],
    ['DynamoDB', change, ({ dynamodb }: DynamoDBRecord) => dynamodb?.Keys?.id?.S],
  ] as const)('onceRecords goes on at the first record that failed in a stream of %s', async (_, recordOf, keyOf) => {
    const { done, faulty, invoke } = setting<KinesisStreamRecord | DynamoDBRecord>(keyOf as never, { concurrency: 2 });
    faulty.add('b');
    const [first, second, third] = [recordOf('11', 'a'), recordOf('12', 'b'), recordOf('13', 'c')];
    expect(await invoke(first, second, third)).toEqual(failed('12', '13'));
    expect(done).toEqual(['a']);
    faulty.clear();
    expect(await invoke(first, second, third)).toEqual(failed());
    expect(done).toEqual(['a', 'b', 'c']);
  });
});

it('a held record logs one line without a stack, a failed one its error', async () => {
  const { lambda } = setting(() => undefined);
  const { holdfast } = lambda;
  const said: unknown[][] = [];
  vi.spyOn(console, 'error').mockImplementation((...line) => said.push(line));
  const { expiresAt } = await holdfast.acquire('a');
  const handler = leasedRecords({ holdfast, key: ({ body }: SQSRecord) => body })((record) => {
    if (record.body === 'b') throw new Error('mine');
  });
  await lambda.invoke(handler, { Records: [sqs('1', 'a'), sqs('2', 'b'), sqs('3', 'c')] });
  vi.restoreAllMocks();
  expect(said).toEqual([[`held: 1: a is held by lambda until ${expiresAt}`], ['failed: 2:', new Error('mine')]]);
});
