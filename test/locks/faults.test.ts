import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { call, type Fault, testClient } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
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

/** The try is on its way while something happens, and arrives after it. */
const delayed =
  (what: () => Promise<unknown>): Fault =>
  async (send) => {
    await what();
    return send();
  };

/** A record with `count` expired permits of weight one. */
const crowd = async (key: string, count: number) => {
  const { leaseId } = await other.acquire({ key, holder: 'dead', limit: 200, ttlSeconds: 2 });
  const [, name] = leaseId.split('.');
  const { [`h${name}`]: entry, [`f${name}`]: fence, ...record } = (await other.rawItem(key)) ?? {};
  const names = Array.from({ length: count }, (_, n) => `${n}`.padEnd(16, '-'));
  const entries = names.flatMap((one) => [
    [`h${one}`, entry],
    [`f${one}`, fence],
  ]);
  await other.putRaw({ ...record, used: { N: `${count}` }, ...Object.fromEntries(entries) });
  clock.advance(2501);
};

beforeEach(() => {
  requests.faults = [];
  requests.faultsOf = {};
  requests.sent.length = 0;
});

const KINDS: [kind: string, terms: object][] = [
  ['a lease', {}],
  ['a permit', { limit: 2 }],
];

describe.each(KINDS)('lost replies about %s', (kind, terms) => {
  const take = (key: string, more: object = {}) => acquire({ key: `${kind}, ${key}`, ...terms, ...more });

  it('an acquire that the SDK repeats gives its caller one grant', async () => {
    requests.faults = ['lostReply'];
    const grant = await take('acquire');
    expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
    expect(await read({ key: grant.key })).toMatchObject({ used: 1, holders: [{ fence: grant.fence }] });
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('an acquire without an answer is OutcomeUnknown, which names its request id', async () => {
    requests.faults = ['lostReply', 'lostReply', 'lostReply'];
    const { code, context } = await failure(take('unknown'));
    expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
    expect(await take('unknown', context.retryWith as object)).toMatchObject({ repeated: true, holder: 'tester' });
  });

  it('an acquire with a request id is OutcomeUnknown, which names the id', async () => {
    requests.faults = ['lostReply', 'throttle', 'throttle'];
    const { code, context } = await failure(take('unknown-own', { requestId: 'mine' }));
    expect(code).toBe('OutcomeUnknown'); // although the last answer was a throttle
    expect(context.retryWith).toEqual({ requestId: 'mine' });
  });

  it('a heartbeat that the SDK repeats extends once, and answers the new version', async () => {
    const grant = await take('beat', { ttlSeconds: 10 });
    clock.advance(5000);
    requests.faults = ['lostReply'];
    const beat = await heartbeat(grant);
    expect(beat.remainingMs).toBe(10_000);
    expect(beat.version).not.toBe(grant.version);
    expect(JSON.stringify(await rawItem(grant.key))).toContain(beat.version);
  });

  it('a release that the SDK repeats answers true, and frees the weight once', async () => {
    const grant = await take('release');
    requests.faults = ['lostReply'];
    expect(await release(grant)).toEqual({ key: grant.key, released: true });
    expect(await read({ key: grant.key })).toMatchObject({ used: 0, holders: [] });
  });

  it('a release without an answer is OutcomeUnknown, and true when called again', async () => {
    const grant = await take('unknown-release');
    requests.faults = ['lostReply', 'lostReply', 'lostReply'];
    expect((await failure(release(grant))).code).toBe('OutcomeUnknown');
    expect(await release(grant)).toEqual({ key: grant.key, released: true });
  });

  it('a break is OutcomeUnknown if another client then deletes the record', async () => {
    const { key, fence } = await take('broken-then-gone');
    const deletion = new DeleteItemCommand({ TableName: world.table, Key: { key: { S: key } } });
    requests.faultsOf.UpdateItem = [lostBefore(() => other.dynamodb.send(deletion))];
    const { code, context } = await failure(breakLease({ key, fence }));
    expect([code, context.key]).toEqual(['OutcomeUnknown', key]);
    expect((await failure(breakLease({ key, fence }))).code).toBe('NotFound');
  });
});

it('a release has an unknown end if another caller takes the key', async () => {
  const grant = await acquire({ key: 'lost-then-taken' });
  requests.faults = [lostBefore(() => other.acquire({ key: 'lost-then-taken', holder: 'other' }))];
  expect(await release(grant)).toEqual({ key: 'lost-then-taken', released: false, reason: 'unknown' });
  expect(await release(grant)).toEqual({ key: 'lost-then-taken', released: false, reason: 'taken' });
});

it('a break is OutcomeUnknown, then Conflict, if another caller takes the key', async () => {
  const { fence } = await acquire({ key: 'broken-then-taken' });
  requests.faultsOf.UpdateItem = [lostBefore(() => other.acquire({ key: 'broken-then-taken', holder: 'other' }))];
  expect((await failure(breakLease({ key: 'broken-then-taken', fence }))).code).toBe('OutcomeUnknown');
  expect((await failure(breakLease({ key: 'broken-then-taken', fence }))).code).toBe('Conflict');
});

it('a heartbeat is OutcomeUnknown after a server error, because it may have landed', async () => {
  const grant = await acquire({ key: 'unknown-beat' });
  requests.faults = ['error500', 'error500', 'error500'];
  const { code, context } = await failure(heartbeat(grant));
  expect(code).toBe('OutcomeUnknown');
  expect(context.retryWith).toEqual({});
  expect(JSON.stringify(context)).not.toContain(grant.leaseId);
});

it('a take-over whose answer is lost gives the caller the room once', async () => {
  await acquire({ key: 'takeover', holder: 'dead', limit: 1, ttlSeconds: 2 });
  clock.advance(2501);
  requests.sent.length = 0;
  requests.faults = ['none', 'lostReply'];
  expect(await acquire({ key: 'takeover', limit: 1 })).toMatchObject({ repeated: true, used: 1 });
  expect(requests.sent).toHaveLength(3);
});

it('the end of the first of many does not free its weight twice', async () => {
  await crowd('crowd', 45);
  requests.faults = ['none', 'lostReply'];
  await acquire({ key: 'crowd', mode: 'exclusive' });
  expect(await world.readKey('crowd')).toMatchObject({ used: 1, holders: [{ mode: 'exclusive' }] });
});

it('an acquire that arrives after its release does not take another permit', async () => {
  const asked = { key: 'late', requestId: 'r', limit: 2 };
  requests.faults = [delayed(async () => other.release(await other.acquire(asked)))];
  const { code, context } = await failure(acquire(asked));
  expect([code, context.reason]).toEqual(['LeaseLost', 'released']);
  expect((await world.readKey('late')).used).toBe(0);
});

it('a late take-over of a permit that changed reads the record again', async () => {
  for (const [how, outcome] of [
    ['extends', 'LeaseHeld'],
    ['releases', 'granted'],
    ['is broken', 'granted'],
  ]) {
    const key = `late-takeover ${how}`;
    const dead = await other.acquire({ key, holder: 'dead', limit: 1, ttlSeconds: 10 });
    clock.advance(10_501);
    const meanwhile = () => {
      if (how === 'extends') return other.heartbeat(dead);
      return how === 'releases' ? other.release(dead) : other.breakLease({ key, fence: dead.fence });
    };
    requests.faults = ['none', delayed(meanwhile)];
    const act = acquire({ key, limit: 1 });
    if (outcome === 'LeaseHeld') expect((await failure(act)).code).toBe('LeaseHeld');
    else expect(await act).toMatchObject({ used: 1, previous: null });
  }
});

it('a late take-over answers with the permit of a duplicate call', async () => {
  const asked = { key: 'late-duplicate', holder: 'a', requestId: 'r', limit: 3 };
  await other.acquire({ key: asked.key, holder: 'dead', limit: 3, weight: 3, ttlSeconds: 10 });
  clock.advance(10_501);
  requests.faults = ['none', delayed(() => other.acquire({ ...asked, limit: 4 }))];
  expect(await acquire(asked)).toMatchObject({ repeated: true, used: 4 });
  expect(await read({ key: asked.key })).toMatchObject({ used: 4, holders: [{ holder: 'dead' }, { holder: 'a' }] });
});

it('a late end of many permits answers with that of a duplicate', async () => {
  const asked = { key: 'late-crowd', holder: 'a', requestId: 'r', limit: 100, weight: 100 };
  await crowd(asked.key, 42);
  requests.faults = ['none', delayed(() => other.acquire({ ...asked, limit: 200 }))];
  expect(await acquire(asked)).toMatchObject({ repeated: true, used: 102, previous: null });
});

it('a take-over gives up after five holders have come back', async () => {
  const key = 'five';
  const permits: Awaited<ReturnType<typeof acquire>>[] = [];
  for (let n = 0; n < 8; n++) permits.push(await other.acquire({ key, holder: `h${n}`, limit: 8, ttlSeconds: 10 }));
  clock.advance(10_501);
  requests.faults = ['none', ...permits.map((permit) => delayed(() => other.heartbeat(permit)))];
  expect(await failure(acquire({ key, limit: 8 }))).toMatchObject({
    code: 'LeaseHeld',
    message: expect.stringContaining('send the call again'),
  });
  expect(requests.sent).toEqual(Array(5).fill('UpdateItem'));
});

it('a write that is refused after an unanswered try has an unknown outcome', async () => {
  requests.faults = ['lostReply', { name: 'ValidationException', status: 400 }];
  const { code, context } = await failure(acquire({ key: 'invalid', limit: 1 }));
  expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
});
it('a request that never reached DynamoDB does not have an unknown outcome', async () => {
  requests.faults = ['neverSent', 'neverSent', 'throttle'];
  expect((await failure(acquire({ key: 'refused' }))).code).toBe('Throttled');
  requests.faults = ['throttle', 'throttle', 'neverSent'];
  expect((await failure(acquire({ key: 'refused' }))).code).toBe('Unavailable');
  expect(await rawItem('refused')).toBeUndefined();
});

it('a read that DynamoDB throttles past the retries fails with Throttled', async () => {
  requests.faults = ['throttle', 'throttle', 'throttle'];
  const { code, context } = await failure(read({ key: 'k' }));
  expect([code, context.retryAfterMs]).toEqual(['Throttled', 1000]);
  requests.faults = ['error500', 'lostReply', 'error500'];
  expect((await failure(read({ key: 'k' }))).code).toBe('Unavailable'); // nothing was written
});

const timeoutError = (message: string) => Object.assign(new Error(message), { name: 'TimeoutError' });

describe('DynamoDB that fails', () => {
  const down = acquireInput().parse({ key: 'down', holder: 'h' });
  const servers: Server[] = [];
  afterEach(() => void vi.useRealTimers());
  afterAll(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** A server in the place of DynamoDB. It never answers, unless the test gives an answer. */
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

  it("a DynamoDB that never answers is OutcomeUnknown within the Lambda's time", async () => {
    let began = Promise.withResolvers<void>();
    const endpoint = await stub(() => began.resolve());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const answering = acquireAt(endpoint, 1500);
    for (const answered of ['over HTTP', 'to the task']) {
      await began.promise;
      began = Promise.withResolvers();
      // The call gives up half a second before the end of the invocation, and not earlier.
      await vi.advanceTimersByTimeAsync(999);
      const turn = new Promise((resolve) => setImmediate(resolve, 'neither'));
      expect(await Promise.race([answering, began.promise, turn]), answered).toBe('neither');
      await vi.advanceTimersByTimeAsync(1);
    }
    const answer = await answering;
    expect(answer).toMatchObject({ outcome: 'OutcomeUnknown', status: 504, body: { retryWith: { requestId: 'r' } } });
  });

  it('a DynamoDB that refuses connections is Unavailable', async () => {
    // The SDK's own error for it: an address that swallows packets cannot be had on every machine.
    const words = 'the request socket did not establish a connection with the server within the configured timeout';
    const silent = testClient({ requestHandler: { handle: () => Promise.reject(timeoutError(words)) } });
    const { code } = await failure(acquireGrant({ ...world.dependencies, dynamodb: silent })(down, call()));
    expect(code).toBe('Unavailable');
    const sdk = await readFile('node_modules/@smithy/node-http-handler/dist-es/set-connection-timeout.js', 'utf8');
    expect(sdk).toContain(words);
  });

  it.each([
    [400, 'ProvisionedThroughputExceededException', 'Throttled', 429, 'throttles requests'],
    [400, 'ThrottlingException', 'Throttled', 429, 'throttles requests'],
    [400, 'TransactionConflictException', 'Throttled', 429, 'throttles requests'],
    [400, 'AccessDeniedException', 'Unavailable', 503, 'is denied'],
    [400, 'UnrecognizedClientException', 'Unavailable', 503, 'UnrecognizedClientException'],
    [400, 'ValidationException', 'Unavailable', 503, 'table'],
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
});

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

it('the signal of the invocation ends a call that is under way', async () => {
  const controller = new AbortController();
  requests.faults = ['hang'];
  const act = acquire({ key: 'aborted' }, call({ signal: controller.signal }));
  setTimeout(() => controller.abort(), 20);
  expect((await failure(act)).code).toBe('OutcomeUnknown');
});
