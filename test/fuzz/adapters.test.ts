import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commit } from '../../functions/commits/commit.ts';
import { readCommit } from '../../functions/commits/read.ts';
import { resetFence } from '../../functions/commits/reset-fence.ts';
import { stageUpload } from '../../functions/commits/stage-upload.ts';
import { clean } from '../../functions/expiry/clean.ts';
import { readExpired } from '../../functions/expiry/read.ts';
import { report } from '../../functions/expiry/report.ts';
import { acquire } from '../../functions/leases/acquire.ts';
import { breakLease } from '../../functions/leases/break.ts';
import { cancelWaiter } from '../../functions/leases/cancel.ts';
import { executionEnded } from '../../functions/leases/execution-ended.ts';
import { heartbeat } from '../../functions/leases/heartbeat.ts';
import { readLeases } from '../../functions/leases/read.ts';
import { release } from '../../functions/leases/release.ts';
import { repairQueues } from '../../functions/leases/repair.ts';
import { withdraw } from '../../functions/leases/withdraw.ts';
import { publish } from '../../functions/nameservice/publish.ts';
import { readNames } from '../../functions/nameservice/read.ts';
import { repairNames } from '../../functions/nameservice/repair.ts';
import { onceBegin } from '../../functions/once/begin.ts';
import { onceComplete } from '../../functions/once/complete.ts';
import { onceForget } from '../../functions/once/forget.ts';
import { readOnce } from '../../functions/once/read.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { s3Client } from '../../shared/aws/s3.ts';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import { encodeCursor } from '../../shared/listings/cursor.ts';
import { StepFunctionsModel } from '../../verification/histories/step-functions.ts';
import { testSeed } from '../support/chance/seed.ts';
import { anyText } from '../support/chance/text.ts';
import { testClient, testS3, watch } from '../support/emulators/aws.ts';
import { lambdaContext, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { rounds } from '../support/time/rounds.ts';
import { commitWorld } from '../support/worlds/commits.ts';
import { expiryWorld } from '../support/worlds/expiry.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const seed = testSeed();
const dynamodb = testClient();
const s3 = testS3();
const sent = [watch(dynamodb), watch(s3)];
const sfn = stepFunctionsClient({ requestHandler: new StepFunctionsModel() as never });
const leases = { ...(await leaseWorld({ stepFunctions: async () => sfn })).dependencies, dynamodb };
const commits = { ...(await commitWorld()).dependencies, dynamodb, s3 };
const reports = { ...(await expiryWorld()).dependencies, dynamodb, s3 };
const names = { ...(await nameserviceWorld()).dependencies, dynamodb };

const isWrite = (command: string) => /^(Put|Update|Delete|Transact|Copy|Create|Complete|BatchWrite)/.test(command);
const REFUSALS = [
  'NotFound',
  'LeaseHeld',
  'CommitInProgress',
  'Conflict',
  'AlreadyExists',
  'LeaseLost',
  'PreconditionFailed',
  'FenceRejected',
];

/** Strings and values that parsers stumble over. */
const nasty = fc.constantFrom<unknown>(
  ...[
    '',
    '\u0000',
    '\ud800',
    '__proto__',
    'constructor',
    'a:b:c',
    ':',
    '../..',
    '%',
    '=?utf-8?B?eA==?=',
    'x'.repeat(1025),
  ],
  ...['"', '""', 'W/"a"', '*', '"a"', '-0', '1e999', 'NaN', '٣', '2026-01-01', '\r\nx: y'],
  ...[-1, -0, 0.5, 1e21, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER + 1, null, true, [], [[]], {}],
  ...[
    JSON.parse('{"__proto__": {"polluted": true}}'),
    JSON.parse('{"constructor": {"prototype": {"polluted": true}}}'),
  ],
);
const junk = fc.oneof(nasty, fc.jsonValue(), anyText());

interface Target {
  name: string;
  method: 'GET' | 'POST';
  handler: LambdaHandler;
  /** A payload that is valid, or nearly. */
  payload: fc.Arbitrary<unknown>;
  /** Through each adapter. Fewer where a call does much. */
  runs?: number;
}

/** Fields as they should be, but for some that are missing and some that hold anything. */
function nearly(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  const spoiled = Object.entries(fields).map(([field, value]) => [
    field,
    fc.oneof({ weight: 6, arbitrary: value }, { weight: 1, arbitrary: junk }),
  ]);
  const surplus = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'toString')), junk, {
    maxKeys: 1,
  });
  return fc
    .tuple(
      fc.record(Object.fromEntries(spoiled), { requiredKeys: [] }),
      fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, surplus),
    )
    .map(([record, more]) => Object.fromEntries([...Object.entries(record), ...Object.entries(more)]));
}

const word = fc.constantFrom('a', 'b', 'ünï/cödé', 'a b');
const small = fc.integer({ min: 0, max: 5 });
const pointer = fc.oneof(fc.constant(null), fc.record({ address: fc.oneof(word, fc.constant(null)), t: small }));

const reportId = fc.oneof(fc.stringMatching(/^[\w-]{1,9}$/), fc.constantFrom('../latest', 'latest', 'checkpoint'));
const cursor = fc.oneof(
  fc.base64String(),
  fc
    .tuple(reportId, fc.array(fc.oneof(fc.nat(), fc.constantFrom('-1', '1e9', '٣', '')), { maxLength: 5 }))
    .map(([id, numbers]) => encodeCursor([id, ...numbers].join(':'))),
);
const ending = nearly({
  execution: fc.constantFrom('arn:aws:states:us-east-1:000000000000:execution:m:e', 'arn:aws:states:x'),
  again: fc.boolean(),
});
const reporting = report(reports, leases);
const cleaning = clean(reports);

const TARGETS: Target[] = [
  {
    name: 'acquire',
    method: 'POST',
    handler: acquire(leases),
    payload: nearly({
      key: word,
      holder: word,
      ttlSeconds: fc.constant(60),
      requestId: word,
      data: junk,
      taskToken: word,
      parkSeconds: small,
      execution: fc.constantFrom('arn:aws:states:us-east-1:000000000000:execution:m:e', 'arn:'),
      target: fc.constant('arn:aws:states:us-east-1:000000000000:execution:m:t'),
    }),
  },
  {
    name: 'heartbeat',
    method: 'POST',
    handler: heartbeat(leases),
    payload: nearly({ key: word, leaseId: word, ttlSeconds: fc.constant(9) }),
  },
  { name: 'release', method: 'POST', handler: release(leases), payload: nearly({ key: word, leaseId: word }) },
  { name: 'breakLease', method: 'POST', handler: breakLease(leases), payload: nearly({ key: word, fence: small }) },
  {
    name: 'readLeases',
    method: 'GET',
    handler: readLeases(leases),
    payload: nearly({
      key: word,
      prefix: word,
      state: fc.constantFrom('held', 'free'),
      limit: fc.constant('3'),
      cursor: fc.base64String(),
      waiters: fc.constantFrom('true', 'false', '1'),
    }),
  },
  {
    name: 'onceBegin',
    method: 'POST',
    handler: onceBegin(leases),
    payload: nearly({
      ...{ key: word, holder: word, slot: word, per: fc.constantFrom('1d', '15m', '0d', 'd', '9999999d') },
      ...{ ttlSeconds: fc.constant(60), requestId: word, keepSeconds: fc.constantFrom(60, 1, 100_000), data: junk },
      ...{ inputHash: word, execution: fc.constantFrom('arn:aws:states:us-east-1:000000000000:execution:m:e', 'arn:') },
    }),
  },
  {
    name: 'onceComplete',
    method: 'POST',
    handler: onceComplete(leases),
    payload: nearly({ key: word, leaseId: word, result: junk }),
    runs: 60,
  },
  {
    name: 'onceForget',
    method: 'POST',
    handler: onceForget(leases),
    payload: nearly({ key: word, fence: small }),
    runs: 60,
  },
  {
    name: 'readOnce',
    method: 'GET',
    handler: readOnce(leases),
    payload: nearly({ key: word, prefix: word, limit: fc.constant('3'), cursor: fc.base64String() }),
    runs: 60,
  },
  {
    name: 'cancelWaiter',
    method: 'POST',
    handler: cancelWaiter(leases),
    payload: nearly({ key: word, ticket: word }),
    runs: 60,
  },
  {
    name: 'withdraw',
    method: 'POST',
    handler: withdraw(leases),
    payload: nearly({ key: word, requestId: word, holder: word }),
    runs: 60,
  },
  { name: 'repairQueues', method: 'POST', handler: repairQueues(leases), payload: nearly({}), runs: 20 },
  { name: 'executionEnded', method: 'POST', handler: executionEnded(leases), payload: ending, runs: 60 },
  { name: 'report', method: 'POST', handler: reporting, payload: nearly({}), runs: 5 },
  {
    name: 'readExpired',
    method: 'GET',
    handler: readExpired(reports),
    payload: nearly({
      reportId,
      kind: fc.constantFrom('waiter', 'commit'),
      limit: fc.constant('3'),
      cursor,
    }),
    runs: 60,
  },
  {
    name: 'clean',
    method: 'POST',
    handler: cleaning,
    payload: nearly({
      reportId,
      kinds: fc.array(fc.constantFrom('waiter', 'commit', 'abandonedLease', 'x'), { maxLength: 3 }),
      olderThanSeconds: small,
      dryRun: fc.boolean(),
      neverDeletable: fc.boolean(),
      cursor,
    }),
    runs: 60,
  },
  {
    name: 'commit',
    method: 'POST',
    handler: commit(commits),
    payload: nearly({
      path: word,
      ifNoneMatch: fc.constant('*'),
      ifMatch: fc.constantFrom('"a"', 'a', '"d41d8cd98f00b204e9800998ecf8427e"'),
      body: fc.string(),
      encoding: fc.constantFrom('utf8', 'base64'),
      commitId: fc.constantFrom('c1', 'c2'),
      metadata: fc.dictionary(fc.oneof(word, fc.string()), fc.oneof(word, junk), { maxKeys: 2 }),
      fence: fc.record({ key: word, token: small }),
    }),
  },
  {
    name: 'resetFence',
    method: 'POST',
    handler: resetFence(commits),
    payload: nearly({
      path: word,
      ifMatch: fc.constantFrom('"a"', 'a', '"d41d8cd98f00b204e9800998ecf8427e"'),
      expectedFence: fc.record({ key: word, token: small }),
      fence: fc.option(fc.record({ key: word, token: small })),
      commitId: fc.constantFrom('c1', 'c2'),
    }),
  },
  { name: 'readCommit', method: 'GET', handler: readCommit(commits), payload: nearly({ path: word }) },
  {
    name: 'stageUpload',
    method: 'POST',
    handler: stageUpload({ ...commits, s3: s3Client({ requestChecksumCalculation: 'WHEN_REQUIRED' }) }),
    payload: nearly({ contentType: word, sizeBytes: small }),
  },
  {
    name: 'publish',
    method: 'POST',
    handler: publish(names),
    payload: nearly({
      op: fc.constantFrom(
        'initLedger',
        'publishCommit',
        'publishIndex',
        'retract',
        'compareAndSetRef',
        'fastForwardCommit',
        'pushStatus',
        'pushConfig',
        'publishGraphSource',
        'publishGraphSourceIndex',
        'retractGraphSource',
      ),
      alias: fc.constantFrom('x', 'x:main', 'y:dev', 'ü:ö'),
      address: word,
      t: small,
      ref: fc.constantFrom('commit', 'index'),
      expected: fc.oneof(pointer, fc.record({ state: fc.constant('ready'), v: small }), fc.record({ v: small })),
      next: fc.oneof(
        pointer,
        fc.record({ state: word, v: small, extra: fc.object() }),
        fc.record({ v: small, payload: fc.option(fc.record({ extra: fc.object() })) }),
      ),
      sourceType: word,
      config: fc.jsonValue(),
      dependencies: fc.array(word),
    }),
  },
  {
    name: 'repairNames',
    method: 'POST',
    handler: repairNames(names),
    payload: nearly({
      op: fc.constantFrom('resetRef', 'resetStatus', 'resetConfig', 'unretract', 'purge'),
      alias: fc.constantFrom('x', 'x:main', 'y:dev'),
      ref: fc.constantFrom('commit', 'index'),
      expected: fc.oneof(
        pointer,
        fc.record({ state: fc.constant('ready'), v: small }),
        fc.record({ v: small }),
        fc.record({ kind: fc.constantFrom('ledger', 'graph_source'), commit: pointer, index: pointer }),
        fc.constant(null),
      ),
      next: fc.oneof(pointer, fc.record({ state: word, v: small, extra: fc.object() })),
    }),
  },
  {
    name: 'readNames',
    method: 'GET',
    handler: readNames(names),
    payload: nearly({
      alias: word,
      kind: fc.constantFrom('ledger', 'graph_source'),
      prefix: word,
      limit: fc.constant('3'),
      cursor: fc.base64String(),
    }),
  },
];

/** JSON for anything but a string: an object with a field `toString` has no other text. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : `${JSON.stringify(value)}`);

/** Answered as documented; and where the request was refused as invalid, before anything was sent to be written. */
async function expectSane(act: () => Promise<{ outcome: string; body: unknown; status?: number }>): Promise<void> {
  for (const requests of sent) requests.sent = [];
  const { outcome, body, status = 0 } = await act();
  expect([...REFUSALS, 'ok', 'InvalidRequest', 'PayloadTooLarge']).toContain(outcome);
  expect(status).toBeLessThan(500);
  if (outcome === 'InvalidRequest') {
    expect(body).toMatchObject({
      code: outcome,
      issues: expect.arrayContaining([{ path: expect.any(String), message: expect.any(String) }]),
    });
    expect(sent.flatMap((requests) => requests.sent).filter(isWrite)).toEqual([]);
  }
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
}

describe.each(TARGETS)(`$name, given anything (seed ${seed})`, ({ method, handler, payload, runs = 120 }) => {
  it('a function that is given anything as a task answers as documented, and writes no record that it refuses', async () => {
    const anything = fc.oneof({ weight: 5, arbitrary: payload }, { weight: 1, arbitrary: junk });
    await fc.assert(
      fc.asyncProperty(anything, (event) => expectSane(() => throughTask(handler, event))),
      { seed, numRuns: rounds(4 * runs, Math.ceil(runs / 8)) },
    );
  });

  it('a function that is given anything through HTTP answers as documented, and writes no record that it refuses', async () => {
    const text = payload.map((value) => JSON.stringify(value));
    const body = fc.oneof(
      { weight: 6, arbitrary: text },
      { weight: 2, arbitrary: text.map((json) => Buffer.from(json).toString('base64')) },
      { weight: 1, arbitrary: anyText() },
      { weight: 1, arbitrary: fc.base64String() },
      {
        weight: 1,
        arbitrary: fc.constantFrom('', '{', '[', '"', 'null', '{"key":1,"key":2}', '\ufeff{}', '['.repeat(5000)),
      },
    );
    const query = fc.oneof(
      payload.map((value) =>
        Object.entries(Object(value))
          .map((field) => field.map((one) => encodeURIComponent(textOf(one).toWellFormed())).join('='))
          .join('&'),
      ),
      fc.webQueryParameters(),
      fc.constantFrom('%', '%ff', 'key=a&key=b', '__proto__=1', '&&=', '+'),
    );
    const json = fc.constantFrom(
      'application/json',
      'application/json; charset=utf-8',
      'Application/JSON',
      'application/x+json',
    );
    const headers = fc.oneof(
      { weight: 5, arbitrary: fc.record({ 'content-type': json }) },
      { weight: 1, arbitrary: fc.dictionary(fc.oneof(fc.string(), fc.constant('CONTENT-TYPE')), fc.string()) },
    );
    const events = fc.record(
      {
        version: fc.constant('2.0'),
        rawQueryString: method === 'GET' ? query : fc.string(),
        headers,
        body,
        isBase64Encoded: fc.boolean(),
        cookies: fc.array(fc.string()),
        pathParameters: junk,
        requestContext: fc.record({
          http: fc.record({
            method: fc.oneof({ weight: 9, arbitrary: fc.constant(method) }, { weight: 1, arbitrary: fc.string() }),
          }),
          authorizer: fc.option(fc.oneof(fc.object(), fc.constant({ iam: { userArn: 'arn:aws:iam::1:user/u' } })), {
            nil: undefined,
          }),
        }),
      },
      { requiredKeys: ['version', 'requestContext'] },
    );
    await fc.assert(
      fc.asyncProperty(events, (event) => expectSane(() => throughHttp(handler, event as never, lambdaContext()))),
      { seed, numRuns: rounds(4 * runs, Math.ceil(runs / 8)) },
    );
  });
});

describe(`events, of any shape (seed ${seed})`, () => {
  it('events of the bus of any shape are answered as documented by the functions that take them', async () => {
    const near = {
      version: fc.constant('0'),
      id: fc.string(),
      source: fc.constantFrom('holdfast', 'aws.events'),
      account: fc.string(),
      time: fc.string(),
      region: fc.string(),
      resources: fc.array(fc.string()),
      'detail-type': fc.constantFrom('Expired Records Reported', 'Scheduled Event'),
      detail: fc.oneof(fc.record({ reportId: fc.oneof(reportId, junk) }, { requiredKeys: [] }), fc.object(), junk),
    };
    const event = fc.oneof({ weight: 4, arbitrary: fc.record(near) }, { weight: 1, arbitrary: nearly(near) });
    await fc.assert(
      fc.asyncProperty(event, (one) => expectSane(() => throughTask(cleaning, one))),
      { seed, numRuns: rounds(160, 20) },
    );
    await fc.assert(
      fc.asyncProperty(event, (one) => expectSane(() => throughTask(reporting, one))),
      { seed, numRuns: 5 },
    );
  });

  it('events of a queue of any shape are answered with the messages that failed', async () => {
    const handler = executionEnded(leases);
    const body = fc.oneof(
      { weight: 4, arbitrary: ending.map((value) => JSON.stringify(value)) },
      { weight: 1, arbitrary: fc.oneof(fc.string(), fc.constantFrom('', '{', 'null', '[]')) },
    );
    const message = fc.record({ messageId: fc.uuid(), body, eventSource: fc.constant('aws:sqs'), attributes: junk });
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 5 }), async (messages) => {
        const { outcome, body } = await throughTask(handler, { Records: messages });
        expect(outcome).toBe('ok');
        const ids = new Set(messages.map(({ messageId }) => messageId));
        const failed = (body as unknown as { batchItemFailures: { itemIdentifier: string }[] }).batchItemFailures;
        expect(failed.filter(({ itemIdentifier }) => !ids.has(itemIdentifier))).toEqual([]);
        const unreadable = messages.filter(({ body }) => !isJsonObject(body)).map(({ messageId }) => messageId);
        expect(failed.map(({ itemIdentifier }) => itemIdentifier)).toEqual(expect.arrayContaining(unreadable));
      }),
      { seed, numRuns: rounds(240, 30) },
    );
    const spoiled = fc.record({
      Records: fc.oneof(
        junk,
        fc.array(nearly({ messageId: fc.uuid(), body, eventSource: fc.constant('aws:sqs') }), { minLength: 1 }),
      ),
    });
    await fc.assert(
      fc.asyncProperty(spoiled, async (event) => {
        expect(['ok', 'InvalidRequest']).toContain((await throughTask(handler, event)).outcome);
      }),
      { seed, numRuns: rounds(240, 30) },
    );
  });
});

function isJsonObject(text: string): boolean {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
