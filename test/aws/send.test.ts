import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { conditionalWrite, dynamodbClient } from '../../shared/aws/dynamodb.ts';
import { headObject, s3Client } from '../../shared/aws/s3.ts';
import { addRetryWith, reading, send, writing } from '../../shared/aws/send.ts';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import { type ErrorCode, HoldfastError } from '../../shared/errors.ts';
import { call, type Fault, newBucket, newTable, testClient, testS3, watch } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';

describe('the clients of the functions', () => {
  const server = createServer(() => {}); // takes every request, and answers none
  let endpoint: string;
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => void vi.useRealTimers());
  afterAll(() => void server.close());

  const item = new GetItemCommand({ TableName: 't', Key: { key: { S: 'k' } } });
  const object = new HeadObjectCommand({ Bucket: 'b', Key: 'k' });

  it.each([
    ['DynamoDB', 2000, () => dynamodbClient({ endpoint, maxAttempts: 1 }).send(item)],
    ['S3', 5000, () => s3Client({ endpoint, maxAttempts: 1, forcePathStyle: true }).send(object)],
  ])('a client of %s cuts a try without an answer after %i ms', async (_, ms, ask) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const asked = once(server, 'request');
    let settled = false;
    const answer = ask().finally(() => {
      settled = true;
    });
    const cut = expect(answer).rejects.toMatchObject({ name: 'TimeoutError' });
    await asked;
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    server.closeAllConnections(); // a try that was not cut ends here, with another error
    await cut;
  });
});

describe('a store that fails', async () => {
  const [table, bucket] = await Promise.all([newTable('leases'), newBucket()]);
  /** A write and a read whose every try meets the fault. */
  function under(fault: Fault) {
    const [dynamodb, s3] = [testClient(), testS3()];
    for (const client of [dynamodb, s3]) watch(client).faults = Array<Fault>(3).fill(fault);
    const command = new PutItemCommand({ TableName: table, Item: { key: { S: 'k' } } });
    return {
      write: (retryWith?: Record<string, string>, as = call()) =>
        conditionalWrite(dynamodb, { command, operation: writing('table t', retryWith) }, as),
      read: () => headObject(s3, { bucket, key: 'k' }, call()),
    };
  }

  it('if a store fails, the error names what finds the outcome of a write', async () => {
    const unknown = { code: 'OutcomeUnknown', message: expect.stringContaining('table t') };
    for (const retryWith of [{ commitId: 'mine' }, undefined])
      expect(await failure(under('lostReply').write(retryWith))).toMatchObject({
        ...unknown,
        context: { retryWith: retryWith ?? {}, retryAfterMs: 1000 },
      });
  });

  it('a write has not landed if every address of the host refuses it', async () => {
    // Node tries every address. Its error then does not name a system call.
    const refused: Fault = async () => {
      throw Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' });
    };
    expect(await failure(under(refused).write())).toMatchObject({
      code: 'Unavailable',
      message: 'table t cannot be used (ECONNREFUSED): send the call again later',
    });
  });

  it('a write has not landed if no time was left to send it', async () => {
    const { write } = under('none');
    expect(await failure(write({}, call({ signal: AbortSignal.abort() })))).toMatchObject({
      code: 'Unavailable',
      message: expect.stringContaining('no time is left in this invocation, and nothing was written'),
    });
  });

  it('a write has not landed if the time ends while it is signed', async () => {
    const controller = new AbortController();
    const dynamodb = testClient();
    dynamodb.middlewareStack.add(
      (next) => (args) => {
        controller.abort();
        return next(args);
      },
      { step: 'finalizeRequest' }, // as signing is
    );
    const { sent } = watch(dynamodb);
    const command = new PutItemCommand({ TableName: table, Item: { key: { S: 'k' } } });
    const late = conditionalWrite(
      dynamodb,
      { command, operation: writing('table t') },
      call({ signal: controller.signal }),
    );
    expect(await failure(late)).toMatchObject({
      code: 'Unavailable',
      message: expect.stringContaining('no time is left in this invocation, and nothing was written'),
    });
    expect(sent).toEqual([]);
  });

  it('a read that fails says why, and only a missing object is absent', async () => {
    expect(await under('none').read()).toBeUndefined();
    expect(await failure(under({ name: 'Unknown', status: 403 }).read())).toMatchObject({
      code: 'Unavailable',
      message: `access to bucket ${bucket} is denied: check the IAM permissions`,
    });
    expect((await failure(under('error500').read())).code).toBe('Unavailable');
  });

  it('a store that fails names a missing bucket', async () => {
    const command = new ListObjectsV2Command({ Bucket: 'no-such-bucket' });
    expect(await failure(send(testS3(), { command, operation: reading('bucket b') }, call()))).toMatchObject({
      code: 'Unavailable',
      message: 'bucket b does not exist in this region: check the name and the region',
    });
  });
});

describe('the field that finds an outcome', () => {
  const asked = { requestId: 'r' };
  const inLine = { ...asked, ticket: 't' };
  const thrown = (code: ErrorCode, retryWith: typeof asked) => {
    const error = new HoldfastError(code, 'why', { retryAfterMs: 7, retryWith: { more: 'x' }, cause: 'the cause' });
    const named = (() => {
      try {
        return addRetryWith(retryWith)(error);
      } catch (other) {
        return other as HoldfastError;
      }
    })();
    return { error, named };
  };

  it.each<[ErrorCode, typeof asked]>([
    ['OutcomeUnknown', asked],
    ['OutcomeUnknown', inLine],
    ['Throttled', inLine],
    ['Unavailable', inLine],
  ])('%s with %j names the field that finds the outcome of a call', (code, retryWith) => {
    const { named } = thrown(code, retryWith);
    expect(named).toMatchObject({ code, message: 'why', cause: 'the cause' });
    expect(named.context).toEqual({ retryAfterMs: 7, retryWith: { more: 'x', ...retryWith } });
  });

  it.each<[ErrorCode, typeof asked]>([
    ['Throttled', asked],
    ['Unavailable', asked],
    ['LeaseHeld', inLine],
  ])('%s with %j does not name the field that finds the outcome', (code, retryWith) => {
    const { error, named } = thrown(code, retryWith);
    expect(named).toBe(error);
  });
});

const region = 'us-east-1';

describe('the settings of a client', () => {
  it.each([
    ['DynamoDB', dynamodbClient({ region }), 2000],
    ['S3', s3Client({ region }), 5000],
    ['Step Functions', stepFunctionsClient({ region }), 3000],
  ])('a client for %s ends an unanswered try, and makes that an error', async (_, client, requestTimeout) => {
    const { configProvider } = client.config.requestHandler as unknown as { configProvider: Promise<object> };
    expect(await configProvider).toMatchObject({
      connectionTimeout: 1000,
      requestTimeout,
      throwOnRequestTimeout: true,
    });
  });
});
