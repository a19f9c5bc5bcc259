import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, describe, expect, it } from 'vitest';
import { get, httpEvent, post, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const { handlers, dynamodb, table } = await leaseWorld();
const { acquire, heartbeat, release, readLeases } = handlers;

const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
const euros = (bytes: number) => '€'.repeat(Math.floor(bytes / 3)) + 'x'.repeat(bytes % 3);
const valid = { key: 'k', holder: 'h' };
const EXECUTION = 'arn:aws:states:us-east-1:000000000000:execution:machine:run';
const ABROAD = 'arn:aws:states:eu-west-1:123456789012:execution:a:b';
const NO_EXECUTION = 'must be the ARN of an execution of a Standard workflow or of a durable function';

/** Payloads that are refused, with the message about each field at fault. */
const BAD: [handler: keyof typeof handlers, payload: unknown, issues: Record<string, string>][] = [
  ['acquire', {}, { key: 'is missing', holder: 'is missing' }],
  ['acquire', { ...valid, key: '' }, { key: 'must not be empty' }],
  ['acquire', { ...valid, key: euros(1025) }, { key: 'must be at most 1,024 bytes of UTF-8' }],
  ['acquire', { ...valid, key: 7 }, { key: 'must be a string' }],
  ['acquire', { ...valid, key: null }, { key: 'must be a string' }],
  ['acquire', { ...valid, key: '\ud800' }, { key: 'must be well-formed Unicode' }],
  ['acquire', { ...valid, holder: '' }, { holder: 'must not be empty' }],
  ['acquire', { ...valid, holder: euros(257) }, { holder: 'must be at most 256 bytes of UTF-8' }],
  ['acquire', { ...valid, requestId: '' }, { requestId: 'must not be empty' }],
  ['acquire', { ...valid, ttlSeconds: 1 }, { ttlSeconds: 'must be at least 2' }],
  ['acquire', { ...valid, ttlSeconds: 86_401 }, { ttlSeconds: 'must be at most 86,400' }],
  ['acquire', { ...valid, ttlSeconds: 2.5 }, { ttlSeconds: 'must be a whole number' }],
  ['acquire', { ...valid, ttlSeconds: '60' }, { ttlSeconds: 'must be a whole number' }],
  ['acquire', { ...valid, waitSeconds: -1 }, { waitSeconds: 'must be at least 0' }],
  ['acquire', { ...valid, waitSeconds: 21 }, { waitSeconds: 'must be at most 20' }],
  ['acquire', { ...valid, data: 'x'.repeat(4095) }, { data: 'must be at most 4,096 bytes of JSON' }],
  ['acquire', { ...valid, data: nested(33) }, { data: 'must be at most 32 levels deep' }],
  [
    'acquire',
    { ...valid, ttl: 60, constructor: 1 },
    { ttl: 'is not a known field', constructor: 'is not a known field' },
  ],
  ['acquire', { ...valid, execution: `of ${EXECUTION}` }, { execution: NO_EXECUTION }],
  ['acquire', { ...valid, execution: EXECUTION, target: `${EXECUTION} it` }, { target: NO_EXECUTION }],
  ...['nothing', '', ':', 'a:', ':b', 'a:b:c', 'a:b\0', 'a\u0085:b', 'a:b c', `a:${'b'.repeat(81)}`].map(
    (names): (typeof BAD)[number] => [
      'acquire',
      { ...valid, execution: EXECUTION, target: EXECUTION.replace('machine:run', names) },
      { target: NO_EXECUTION },
    ],
  ),
  ['acquire', { ...valid, graceSeconds: 1 }, { graceSeconds: 'needs an execution' }],
  ['acquire', { ...valid, execution: EXECUTION, graceSeconds: -1 }, { graceSeconds: 'must be at least 0' }],
  ['acquire', { ...valid, execution: EXECUTION, graceSeconds: 901 }, { graceSeconds: 'must be at most 900' }],
  ['acquire', { ...valid, execution: EXECUTION, graceSeconds: 0.5 }, { graceSeconds: 'must be a whole number' }],
  ['acquire', { ...valid, taskToken: 't', fair: false }, { fair: 'cannot be combined with taskToken' }],
  [
    'acquire',
    { ...valid, taskToken: 't', ticket: 'x', requestId: 'r' },
    { ticket: 'cannot be combined with taskToken' },
  ],
  ['acquire', { ...valid, ticket: 'x' }, { ticket: 'needs a requestId' }],
  ['acquire', { ...valid, limit: 0 }, { limit: 'must be at least 1' }],
  ['acquire', { ...valid, limit: 2, weight: null }, { weight: 'must be a whole number' }],
  ['acquire', { ...valid, limit: 201 }, { limit: 'must be at most 200' }],
  ['acquire', { ...valid, limit: null }, { limit: 'must be a whole number' }],
  ['acquire', { ...valid, weight: 2 }, { weight: 'needs a limit or a mode' }],
  ['acquire', { ...valid, limit: 5, weight: 6 }, { weight: 'must be at most the limit' }],
  ['acquire', { ...valid, limit: 5, weight: 0 }, { weight: 'must be at least 1' }],
  ['acquire', { ...valid, mode: 'shared', weight: 201 }, { weight: 'must be at most 200' }],
  ['acquire', { ...valid, mode: 'alone' }, { mode: 'must be one of shared, exclusive' }],
  [
    'acquire',
    { ...valid, mode: 'exclusive', limit: 2, weight: 1 },
    { limit: 'cannot be combined with mode exclusive', weight: 'cannot be combined with mode exclusive' },
  ],
  [
    'acquire',
    { ...valid, limit: 2, data: 'x'.repeat(255) },
    { data: 'must be at most 256 bytes of JSON with a limit or mode shared' },
  ],
  [
    'acquire',
    { ...valid, limit: 2, taskToken: 't', waitSeconds: 1 },
    { waitSeconds: 'cannot be combined with taskToken' },
  ],
  ['acquire', { ...valid, limit: 2, parkSeconds: 60 }, { parkSeconds: 'needs a taskToken or a callbackId' }],
  [
    'acquire',
    { ...valid, mode: 'shared', execution: ABROAD },
    { execution: 'must be an execution in the account and region of this deployment' },
  ],
  ['acquire', { ...valid, limit: 2, target: ABROAD }, { target: 'needs an execution' }],
  ['heartbeat', { key: 'k', leaseId: 'l', limit: 2 }, { limit: 'is not a known field' }],
  ['acquire', [], { payload: 'must be a JSON object' }],
  ['acquire', 'text', { payload: 'must be a JSON object' }],
  ['acquire', null, { payload: 'must be a JSON object' }],
  ['heartbeat', { key: 'k' }, { leaseId: 'is missing' }],
  ['heartbeat', { key: 'k', leaseId: 'l', ttlSeconds: 1 }, { ttlSeconds: 'must be at least 2' }],
  ['heartbeat', { key: 'k', leaseId: 'l', holder: 'h' }, { holder: 'is not a known field' }],
  ['release', { leaseId: 'l' }, { key: 'is missing' }],
  ['release', { key: 'k', leaseId: 7 }, { leaseId: 'must be a string' }],
  ['release', { key: 'k', leaseId: euros(257) }, { leaseId: 'must be at most 256 bytes of UTF-8' }],
  ['breakLease', { key: 'k' }, { fence: 'is missing' }],
  ['breakLease', { key: 'k', fence: '1' }, { fence: 'must be a whole number' }],
  ['breakLease', { key: 'k', fence: -1 }, { fence: 'must be at least 0' }],
  ['breakLease', { key: 'k', fence: 1, wait: 'true' }, { wait: 'must be true or false' }],
  ['capKey', { key: 'k', reason: 'r' }, { limit: 'is required, unless the call has rates' }],
  ['capKey', { key: 'k', limit: 201, reason: 'r' }, { limit: 'must be at most 200' }],
  ['capKey', { key: 'k', limit: -1, reason: 'r' }, { limit: 'must be at least 0' }],
  ['capKey', { key: 'k', limit: 0 }, { reason: 'is required, because others will read it' }],
  ['capKey', { key: 'k', limit: 0, reason: euros(257) }, { reason: 'must be at most 256 bytes of UTF-8' }],
  ['capKey', { key: 'k', limit: 0, reason: 'r', forSeconds: 2_678_401 }, { forSeconds: 'must be at most 2,678,400' }],
  ['capKey', { key: 'k', limit: null, forSeconds: 60 }, { forSeconds: 'cannot be combined with a lift' }],
  ['capKey', { key: 'k', limit: 3, reason: 'r', kind: 'once' }, { limit: 'must be 0 or null with kind once' }],
];

const BAD_QUERIES: [query: Record<string, string>, issues: Record<string, string>][] = [
  [{ key: '' }, { key: 'must not be empty' }],
  [{ key: euros(1025) }, { key: 'must be at most 1,024 bytes of UTF-8' }],
  [{ key: 'holdfast:once:k' }, { key: 'must not begin with holdfast:once:, the keys of once, which readOnce reads' }],
  [{ key: 'holdfast:rate:k' }, { key: 'must not begin with holdfast:rate:, the keys of rates, which readRates reads' }],
  [
    { key: 'k', prefix: 'k', limit: '5' },
    { prefix: 'cannot be combined with key', limit: 'cannot be combined with key' },
  ],
  [{ limit: '0' }, { limit: 'must be at least 1' }],
  [{ limit: '1001' }, { limit: 'must be at most 1,000' }],
  [{ limit: '1.5' }, { limit: 'must be a whole number' }],
  [{ limit: '' }, { limit: 'must be a whole number' }],
  [{ state: 'stuck' }, { state: 'must be one of held, expired, released, free, active' }],
  [{ order: 'key' }, { order: 'is not a known field' }],
];

const issuesOf = (body: Record<string, unknown>) =>
  Object.fromEntries((body.issues as { path: string; message: string }[]).map(({ path, message }) => [path, message]));

describe('bad input', () => {
  afterEach(async () => {
    for (const { requests } of Object.values(handlers)) expect(requests.sent).toEqual([]);
    expect((await dynamodb.send(new ScanCommand({ TableName: table }))).Count).toBe(0);
  });

  it.each(BAD)('bad input is refused by name, through both adapters: %s %j', async (name, payload, issues) => {
    const http = await throughHttp(handlers[name], httpEvent('POST', { body: JSON.stringify(payload) }));
    const task = await throughTask(handlers[name], payload);
    expect(http).toMatchObject({ outcome: 'InvalidRequest', status: 400 });
    expect(http.headers).toMatchObject({ 'content-type': 'application/problem+json' });
    expect(task.outcome).toBe('InvalidRequest');
    for (const { body } of [http, task]) {
      expect(issuesOf(body)).toEqual(issues);
      expect(body).toMatchObject({
        type: 'urn:holdfast:error:InvalidRequest',
        status: 400,
        code: 'InvalidRequest',
        traceId: expect.any(String),
      });
    }
  });

  it.each(BAD_QUERIES)('bad input is refused by name, through both adapters: readLeases %j', async (query, issues) => {
    const http = await get(readLeases, query);
    const task = await throughTask(readLeases, query);
    for (const { outcome, body } of [http, task]) {
      expect(outcome).toBe('InvalidRequest');
      expect(issuesOf(body)).toEqual(issues);
    }
  });

  it.each([
    ['broken JSON', { body: '{"key": ' }, 'body'],
    ['no body', {}, 'body'],
    ['an empty body', { body: '' }, 'body'],
    ['no content type', { body: '{}', headers: {} }, 'content-type'],
    ['another content type', { body: '{}', headers: { 'content-type': 'text/plain' } }, 'content-type'],
    ['a number beyond JSON', { body: '{"key":"k","holder":"h","data":1e999}' }, 'data'],
    ['a base64 body that is not JSON', { body: Buffer.from('key').toString('base64'), base64: true }, 'body'],
    ['a prototype in the body', { body: '{"key":"k","holder":"h","__proto__":{"ttlSeconds":2}}' }, '__proto__'],
    [
      'a key that is not UTF-8',
      { body: Buffer.from('{"key":"\xff","holder":"h"}', 'latin1').toString('base64'), base64: true },
      'body',
    ],
    ['a body as deep as it is long', { body: '['.repeat(4900) + ']'.repeat(4900) }, 'payload'],
  ])('bad input is refused by name, through both adapters: %s', async (_, parts, path) => {
    const { outcome, status, body } = await throughHttp(acquire, httpEvent('POST', parts));
    expect([outcome, status]).toEqual(['InvalidRequest', 400]);
    expect(Object.keys(issuesOf(body))).toEqual([path]);
  });

  it('a body of two megabytes is refused', async () => {
    const body = JSON.stringify({ ...valid, limit: 2, data: 'x'.repeat(2_000_000) });
    const { outcome, status } = await throughHttp(acquire, httpEvent('POST', { body }));
    expect([outcome, status]).toEqual(['PayloadTooLarge', 413]);
  });

  it.each([
    ['key=a&key=b', 'key'],
    ['key=%E0%A4', 'query'],
    ['key=%ED%A0%80', 'query'],
  ])('the query %s is refused, and its fault is named', async (query, path) => {
    const { outcome, body } = await throughHttp(readLeases, httpEvent('GET', { query }));
    expect(outcome).toBe('InvalidRequest');
    expect(Object.keys(issuesOf(body))).toEqual([path]);
  });

  it('a refusal names at most twenty faults of one request', async () => {
    const payload = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`field${index}`.repeat(20), 1]));
    const { body } = await post(acquire, payload);
    expect(body.issues).toHaveLength(20);
    expect(JSON.stringify(body).length).toBeLessThan(10_000);
  });
});

const KEYS = {
  spaces: ' a  b ',
  slashes: '//a/b/',
  dots: '../..',
  quotes: `"'\`\\`,
  emoji: '👩‍👩‍👧‍👦🔒',
  longest: euros(1024),
  prototype: '__proto__',
  query: 'a+b&c=d%20#?',
  control: 'a\u0000\n\t',
  'right to left': 'שלום',
};

it.each(Object.entries(KEYS))('a key of %s survives the whole way', async (_, key) => {
  const granted = await post(acquire, { key, holder: key.slice(0, 50).toWellFormed() });
  expect(granted).toMatchObject({ outcome: 'ok', status: 201, body: { key } });
  const { leaseId, fence } = granted.body;
  expect((await post(acquire, { key, holder: 'other' })).body).toMatchObject({ code: 'LeaseHeld', key, fence });
  expect((await get(readLeases, { key })).body).toMatchObject({ key, state: 'held', fence });
  expect((await get(readLeases, { prefix: key })).body.leases).toMatchObject([{ key }]);
  expect((await throughTask(readLeases, { key })).body).toMatchObject({ key, state: 'held' });
  expect((await post(heartbeat, { key, leaseId })).body).toMatchObject({ key, fence });
  expect((await post(release, { key, leaseId })).body).toEqual({ key, released: true });
});

it('good input may be a JSON body in base64, and JSON by another name', async () => {
  const body = Buffer.from(JSON.stringify({ key: 'base64', holder: 'ü' })).toString('base64');
  const event = httpEvent('POST', {
    body,
    base64: true,
    headers: { 'CONTENT-TYPE': 'application/vnd.api+json; charset=utf-8' },
  });
  expect((await throughHttp(acquire, event)).body).toMatchObject({ key: 'base64', holder: 'ü' });
});

it.each([['x'.repeat(4094)], [nested(32)], [null], [{ deep: { er: [1, 'zwei', true] } }]])(
  'good input keeps data %j',
  async (data) => {
    const key = `data-${JSON.stringify(data).length}`;
    expect((await post(acquire, { key, holder: 'h', data })).body.data).toEqual(data);
    expect((await get(readLeases, { key })).body.data).toEqual(data);
  },
);

it.each([2, 86_400])('good input may have ttlSeconds %d', async (ttlSeconds) => {
  const { body } = await throughTask(acquire, { key: `ttl-${ttlSeconds}`, holder: 'h', ttlSeconds });
  expect(body.remainingMs).toBe(ttlSeconds * 1000);
});

it('good input may limit a list by a number or by digits', async () => {
  for (const key of ['listed-1', 'listed-2']) await post(acquire, { key, holder: 'h' });
  expect((await throughTask(readLeases, { limit: 1 })).body.leases).toHaveLength(1);
  expect((await get(readLeases, { limit: '1' })).body.leases).toHaveLength(1);
});
