import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { freePort } from '../../local/ports.ts';
import { dynamodbClient } from '../../shared/aws/dynamodb.ts';
import { acquireLease } from '../../shared/leases/acquire.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { call, type Fault, testClient } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { lambdaContext, post, throughTask } from '../support/stack/adapters.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, breakLease, read, clock, requests, rawItem } = world;

/** Another instance of the service over the same table. */
const other = await leaseWorld({ table: world.table, clock });

/** The try lands, its answer is lost, and something happens before the next one. */
const lostBefore =
  (what: () => Promise<unknown>): Fault =>
  async (send) => {
    await send();
    await what();
    throw networkError('ECONNRESET', 'read');
  };

beforeEach(() => {
  requests.faults = [];
  requests.sent.length = 0;
});

describe('a reply that is lost after the write has landed', () => {
  it('acquire: the SDK tries again, and the caller has its grant', async () => {
    requests.faults = ['lostReply'];
    const grant = await acquire({ key: 'lost-acquire', holder: 'h' });
    expect(requests.sent).toEqual(['PutItem', 'PutItem']);
    expect((await rawItem('lost-acquire'))?.lease_id).toEqual({ S: grant.leaseId });
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('heartbeat: the lease is extended once, and its new version is the answer', async () => {
    const grant = await acquire({ key: 'lost-beat', ttlSeconds: 10 });
    clock.advance(5000);
    requests.faults = ['lostReply'];
    const beat = await heartbeat(grant);
    expect(beat.remainingMs).toBe(10_000);
    expect((await rawItem('lost-beat'))?.lease_version).toEqual({ S: beat.version });
    expect(beat.version).not.toBe(grant.version);
  });

  it('release: true', async () => {
    const grant = await acquire({ key: 'lost-release' });
    requests.faults = ['lostReply'];
    expect(await release(grant)).toEqual({ key: 'lost-release', released: true });
  });

  it('break: broken', async () => {
    const { fence } = await acquire({ key: 'lost-break' });
    requests.faults = ['lostReply'];
    expect(await breakLease({ key: 'lost-break', fence })).toMatchObject({ broken: true });
  });

  it('release, and another caller takes the key before the next try: not said to have been taken from its holder', async () => {
    const grant = await acquire({ key: 'lost-then-taken' });
    requests.faults = [lostBefore(() => other.acquire({ key: 'lost-then-taken', holder: 'other' }))];
    expect(await release(grant)).toEqual({ key: 'lost-then-taken', released: false, reason: 'unknown' });
    expect(await release(grant)).toEqual({ key: 'lost-then-taken', released: false, reason: 'taken' });
  });

  it('break, and another caller takes the key before the next try: OutcomeUnknown, and then what is there', async () => {
    const { fence } = await acquire({ key: 'broken-then-taken' });
    requests.faults = [lostBefore(() => other.acquire({ key: 'broken-then-taken', holder: 'other' }))];
    expect((await failure(breakLease({ key: 'broken-then-taken', fence }))).code).toBe('OutcomeUnknown');
    expect((await failure(breakLease({ key: 'broken-then-taken', fence }))).code).toBe('Conflict');
  });

  it('break, and another client deletes the record before the next try: OutcomeUnknown', async () => {
    const key = 'broken-then-gone';
    const { fence } = await acquire({ key });
    const deletion = new DeleteItemCommand({ TableName: world.table, Key: { key: { S: key } } });
    requests.faults = [lostBefore(() => other.dynamodb.send(deletion))];
    const { code, context } = await failure(breakLease({ key, fence }));
    expect([code, context.key]).toEqual(['OutcomeUnknown', key]);
    expect((await failure(breakLease({ key, fence }))).code).toBe('NotFound');
  });

  it('acquire, until the SDK gives up: OutcomeUnknown names the id to ask with, which finds the grant', async () => {
    requests.faults = ['lostReply', 'lostReply', 'lostReply'];
    const { code, context } = await failure(acquire({ key: 'unknown', holder: 'h' }));
    expect(code).toBe('OutcomeUnknown');
    expect(context.retryWith).toEqual({ requestId: expect.any(String) });
    const again = await acquire({ key: 'unknown', holder: 'h', ...(context.retryWith as object) });
    expect(again).toMatchObject({ repeated: true, holder: 'h' });
  });

  it('acquire with an id of the caller’s: OutcomeUnknown names that one', async () => {
    requests.faults = ['lostReply', 'throttle', 'throttle'];
    const { code, context } = await failure(acquire({ key: 'unknown-own', requestId: 'mine' }));
    expect(code).toBe('OutcomeUnknown'); // although the last answer was a throttle
    expect(context.retryWith).toEqual({ requestId: 'mine' });
  });

  it('release, until the SDK gives up: OutcomeUnknown, and the whole invocation again says true', async () => {
    const grant = await acquire({ key: 'unknown-release' });
    requests.faults = ['lostReply', 'lostReply', 'lostReply'];
    expect((await failure(release(grant))).code).toBe('OutcomeUnknown');
    expect(await release(grant)).toEqual({ key: 'unknown-release', released: true });
  });

  it('heartbeat: a server error may have landed too', async () => {
    const grant = await acquire({ key: 'unknown-beat' });
    requests.faults = ['error500', 'error500', 'error500'];
    const { code, context } = await failure(heartbeat(grant));
    expect(code).toBe('OutcomeUnknown');
    expect(context.retryWith).toEqual({});
    expect(JSON.stringify(context)).not.toContain(grant.leaseId);
  });
});

describe('a request that never reached DynamoDB, or was refused', () => {
  it('a request that never reached DynamoDB is no unknown outcome', async () => {
    requests.faults = ['neverSent', 'neverSent', 'throttle'];
    expect((await failure(acquire({ key: 'refused' }))).code).toBe('Throttled');
    requests.faults = ['throttle', 'throttle', 'neverSent'];
    expect((await failure(acquire({ key: 'refused' }))).code).toBe('Unavailable');
    expect(await rawItem('refused')).toBeUndefined();
  });

  it('a request that never reached DynamoDB is tried again', async () => {
    requests.faults = ['throttle', 'neverSent'];
    expect((await acquire({ key: 'tried-again' })).repeated).toBe(false);
    expect(requests.sent).toHaveLength(3);
  });

  it('a read that DynamoDB throttles past the retries fails with Throttled', async () => {
    requests.faults = ['throttle', 'throttle', 'throttle'];
    const { code, context } = await failure(read({ key: 'k' }));
    expect([code, context.retryAfterMs]).toEqual(['Throttled', 1000]);
    requests.faults = ['error500', 'lostReply', 'error500'];
    expect((await failure(read({ key: 'k' }))).code).toBe('Unavailable'); // nothing was written
  });

  it('a look that fails while waiting ends the call', async () => {
    await acquire({ key: 'wait-fails' });
    requests.faults = ['none', 'neverSent', 'neverSent', 'neverSent'];
    expect((await failure(acquire({ key: 'wait-fails', waitSeconds: 5 }))).code).toBe('Unavailable');
  });
});

const timeoutError = (message: string) => Object.assign(new Error(message), { name: 'TimeoutError' });

describe('a DynamoDB that is not there', () => {
  const down = acquireInput().parse({ key: 'down', holder: 'h' });
  const servers: Server[] = [];
  afterEach(() => void vi.useRealTimers());
  afterAll(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** Answers nothing, or what the test sets. */
  async function stub(answer?: (respond: (status: number, body: string) => void) => void): Promise<string> {
    const server = createServer((_, response) => {
      answer?.((status, body) => {
        response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' });
        response.end(body);
      });
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async function acquireAt(endpoint: string, remainingMs: number, overrides = {}) {
    const { acquire: factory } = await import('../../functions/leases/acquire.ts');
    const dynamodb = testClient({ endpoint });
    const handler = factory({ ...world.dependencies, dynamodb, ...overrides });
    const payload = { key: 'down', holder: 'h', requestId: 'r' };
    const http = await post(handler, payload, lambdaContext(remainingMs));
    const task = await throughTask(handler, payload, lambdaContext(remainingMs));
    expect(task).toMatchObject({ outcome: http.outcome, body: { code: http.outcome } });
    return http;
  }

  it('a DynamoDB that refuses connections is Unavailable', async () => {
    const answer = await acquireAt(`http://127.0.0.1:${await freePort()}`, 10_000);
    expect(answer).toMatchObject({ outcome: 'Unavailable', status: 503, headers: { 'retry-after': '1' } });
    expect(answer.body.detail).toBe(`table ${world.table} cannot be used (ECONNREFUSED): send the call again later`);
  });

  it("a DynamoDB that takes the request and never answers is OutcomeUnknown before the Lambda's time is up", async () => {
    let began = Promise.withResolvers<void>();
    const endpoint = await stub(() => began.resolve());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const answering = acquireAt(endpoint, 1500);
    for (const answered of ['over HTTP', 'to the task']) {
      await began.promise;
      began = Promise.withResolvers();
      // Half a second before it is up, and not earlier.
      await vi.advanceTimersByTimeAsync(999);
      const turn = new Promise((resolve) => setImmediate(resolve, 'neither'));
      expect(await Promise.race([answering, began.promise, turn]), answered).toBe('neither');
      await vi.advanceTimersByTimeAsync(1);
    }
    const answer = await answering;
    expect(answer).toMatchObject({ outcome: 'OutcomeUnknown', status: 504, body: { retryWith: { requestId: 'r' } } });
  });

  it('a DynamoDB that takes one try and never answers has the try cut after two seconds', async () => {
    const began = Promise.withResolvers<void>();
    const dynamodb = dynamodbClient({ endpoint: await stub(() => began.resolve()), maxAttempts: 1 });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    // Nothing else ends it.
    const failed = failure(acquireLease({ ...world.dependencies, dynamodb })(down, call()));
    await began.promise;
    await vi.advanceTimersByTimeAsync(2000);
    expect((await failed).code).toBe('OutcomeUnknown');
  });

  it('a DynamoDB that does not take the connection is Unavailable, because no request was sent', async () => {
    // The SDK's own error for it: an address that swallows packets cannot be had on every machine.
    const words = 'the request socket did not establish a connection with the server within the configured timeout';
    const silent = testClient({ requestHandler: { handle: () => Promise.reject(timeoutError(words)) } });
    const { code } = await failure(acquireLease({ ...world.dependencies, dynamodb: silent })(down, call()));
    expect(code).toBe('Unavailable');
    const sdk = await readFile('node_modules/@smithy/node-http-handler/dist-es/set-connection-timeout.js', 'utf8');
    expect(sdk).toContain(words);
  });

  it('a DynamoDB is not even asked when the time is nearly up: the call is Unavailable, because it wrote no record', async () => {
    let asked = 0;
    const answer = await acquireAt(
      await stub(() => {
        asked++;
      }),
      400,
    );
    expect(answer).toMatchObject({
      outcome: 'Unavailable',
      body: { detail: expect.stringContaining('nothing was written') },
    });
    expect(asked).toBe(0);
  });

  it.each([
    [400, 'ProvisionedThroughputExceededException', 'Throttled', 429, 'throttles requests'],
    [400, 'ThrottlingException', 'Throttled', 429, 'throttles requests'],
    [400, 'TransactionConflictException', 'Throttled', 429, 'throttles requests'],
    [400, 'AccessDeniedException', 'Unavailable', 503, 'is denied'],
    [400, 'UnrecognizedClientException', 'Unavailable', 503, 'UnrecognizedClientException'],
    [500, 'InternalServerError', 'OutcomeUnknown', 504, 'was sent and has no response: send the same call again'],
    [200, 'not an answer of DynamoDB', 'OutcomeUnknown', 504, 'was sent and has no response: send the same call again'],
  ])('a DynamoDB that answers %i %s makes the call fail with %s', async (httpStatus, type, code, status, detail) => {
    const body = httpStatus === 200 ? type : JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}` });
    const answer = await acquireAt(await stub((respond) => respond(httpStatus, body)), 10_000);
    expect(answer).toMatchObject({ outcome: code, status });
    expect(answer.body.detail).toContain(detail);
  });

  it('a DynamoDB that lacks the table is Unavailable, by name', async () => {
    const answer = await acquireAt(process.env.AWS_ENDPOINT_URL_DYNAMODB ?? '', 10_000, { table: 'no-such-table' });
    expect(answer).toMatchObject({ outcome: 'Unavailable', status: 503 });
    expect(answer.body.detail).toBe('table no-such-table does not exist in this region: check the name and the region');
  });

  it('a DynamoDB that has a table of another shape is Unavailable', async () => {
    const answer = await acquireAt(
      await stub((respond) => respond(400, '{"__type":"x#ValidationException","message":"secret-ish"}')),
      10_000,
    );
    expect(answer.outcome).toBe('Unavailable');
    expect(JSON.stringify(answer.body)).not.toContain('secret-ish');
  });
});

describe('a fault of our own', () => {
  it('a fault of Holdfast itself is reported as Unavailable, not as a crash', async () => {
    const { acquire: factory } = await import('../../functions/leases/acquire.ts');
    const broken = {
      ...world.dependencies,
      ids: {
        uuid: () => {
          throw new TypeError('internal detail');
        },
        random: () => 0,
      },
    };
    const answer = await post(factory(broken), { key: 'k', holder: 'h' });
    expect(answer).toMatchObject({ outcome: 'Unavailable', status: 503 });
    expect(JSON.stringify(answer.body)).not.toContain('internal detail');
  });
});

describe('a caller that disconnects while it waits inside acquire', () => {
  it('a caller that disconnects while it waits inside acquire leaves a grant that expires with its ttl', async () => {
    const first = await acquire({ key: 'hung-up', holder: 'first' });
    clock.at(clock.now() + 1000, () => release(first));
    await acquire({ key: 'hung-up', holder: 'gone', ttlSeconds: 5, waitSeconds: 20 }); // nobody reads this answer
    expect((await failure(acquire({ key: 'hung-up', holder: 'next' }))).code).toBe('LeaseHeld');
    clock.advance(5501);
    expect((await acquire({ key: 'hung-up', holder: 'next' })).holder).toBe('next');
  });
});

describe('the signal of the invocation', () => {
  it('the signal of the invocation ends a call that is under way', async () => {
    const controller = new AbortController();
    requests.faults = ['hang'];
    const act = acquire({ key: 'aborted' }, call({ signal: controller.signal }));
    setTimeout(() => controller.abort(), 20);
    expect((await failure(act)).code).toBe('OutcomeUnknown');
  });
});
