import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import type { LambdaHandler } from '../../local/lambda.ts';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import { encodeCursor } from '../../shared/listings/cursor.ts';
import { StepFunctionsModel } from '../../verification/histories/step-functions.ts';
import { anyText, testSeed } from '../support/chance/seed.ts';
import { testClient, testS3, watch } from '../support/emulators/aws.ts';
import { lambdaContext, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { rounds } from '../support/time/rounds.ts';
import { commitWorld } from '../support/worlds/commits.ts';
import { expiryWorld } from '../support/worlds/expiry.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';
import { loadFunctions, resolved, type Schema } from './functions.ts';

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
  'QueueFull',
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

/** A few fields as they should be, but for some that are missing and some that hold anything. */
function nearly(fields: Record<string, fc.Arbitrary<unknown>>, required: string[] = []) {
  const spoiled = (value: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 15, arbitrary: value }, { weight: 1, arbitrary: junk });
  const surplus = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'toString')), junk, {
    maxKeys: 1,
  });
  const record = fc
    .tuple(
      fc.oneof({ weight: 4, arbitrary: fc.constant(required) }, { weight: 1, arbitrary: fc.subarray(required) }),
      fc.subarray(Object.keys(fields), { maxLength: Math.min(3, Object.keys(fields).length) }),
    )
    .chain(([some, others]) =>
      fc.record(Object.fromEntries([...some, ...others].map((name) => [name, spoiled(fields[name] ?? junk)]))),
    );
  return fc
    .tuple(record, fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, surplus))
    .map(([one, more]) => Object.fromEntries([...Object.entries(one), ...Object.entries(more)]));
}

const word = fc.constantFrom('a', 'b', 'ünï/cödé', 'a b');
const etag = fc.constantFrom('"a"', 'a', '"d41d8cd98f00b204e9800998ecf8427e"');
const reportId = fc.oneof(fc.stringMatching(/^[\w-]{1,9}$/), fc.constantFrom('../latest', 'latest', 'checkpoint'));
const EXECUTION = 'arn:aws:states:us-east-1:000000000000:execution:m:e';

/** Values for fields that their schema does not describe fully. */
const FIELDS: Record<string, fc.Arbitrary<unknown>> = {
  ...{
    data: junk,
    config: fc.jsonValue(),
    extra: fc.dictionary(word, fc.jsonValue()),
    ifMatch: etag,
    sourceEtag: etag,
    reportId,
  },
  ...{ execution: fc.constantFrom(EXECUTION, 'arn:'), target: fc.constant(EXECUTION), waitSeconds: fc.constant(0) },
  ...{ alias: fc.constantFrom('x', 'x:main', 'y:dev', 'ü:ö'), limit: fc.constantFrom(3, '3') },
  per: fc.constantFrom('1d', '15m', '0d', 'd', '9999999d'),
  metadata: fc.dictionary(fc.oneof(word, fc.string()), fc.oneof(word, junk), { maxKeys: 2 }),
  cursor: fc.oneof(
    fc.base64String(),
    fc
      .tuple(reportId, fc.array(fc.oneof(fc.nat(), fc.constantFrom('-1', '1e9', '٣', '')), { maxLength: 5 }))
      .map(([id, numbers]) => encodeCursor([id, ...numbers].join(':'))),
  ),
};

/** Fields that a call requires by a rule that its schema does not show. */
const REQUIRED: Record<string, string[]> = { commit: ['path', 'ifNoneMatch', 'body'] };

/** A value that fits a schema, or nearly. */
function fitting(schema: Schema): fc.Arbitrary<unknown> {
  const { type, enum: values, const: value, minimum = 0, oneOf, items, properties, required = [] } = resolved(schema);
  const [first, ...more] = [type].flat();
  if (oneOf) return fc.oneof(...oneOf.map(fitting));
  if (values || value !== undefined) return fc.constantFrom(...(values ?? [value]));
  if (more.includes('null'))
    return fc.oneof(fc.constant(null), fitting({ ...resolved(schema), type: first as string }));
  if (properties) return fc.record(fieldsOf(properties), { requiredKeys: required });
  if (items) return fc.array(fitting(items), { maxLength: 3 });
  if (first === 'integer' || first === 'number') return fc.integer({ min: minimum, max: minimum + 5 });
  if (first === 'boolean') return fc.boolean();
  return first === 'string' ? word : junk;
}

const fieldsOf = (properties: Record<string, Schema>) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, FIELDS[name] ?? fitting(schema)]));

const ending = nearly({ execution: fc.constantFrom(EXECUTION, 'arn:aws:states:x'), again: fc.boolean() });
const DEPENDENCIES: Record<string, unknown[]> = {
  ...{ leases: [leases], once: [leases], commits: [commits], expiry: [reports, leases], nameservice: [names] },
};
const TARGETS = (await loadFunctions(inject('service').functions))
  .filter(({ capability }) => DEPENDENCIES[capability])
  .map(({ name, capability, method, schemas, make }) => {
    const payloads = schemas.map(({ properties = {}, required }) =>
      nearly(fieldsOf(properties), REQUIRED[name] ?? required),
    );
    const handler = make(...(DEPENDENCIES[capability] ?? []));
    const payload = name === 'executionEnded' ? ending : fc.oneof(...(payloads.length ? payloads : [nearly({})]));
    // fewer runs for the slow calls
    return { name, method, handler, payload, runs: { report: 5, repairQueues: 20 }[name] ?? 80 };
  });
const handlerOf = (name: string) => TARGETS.find((target) => target.name === name)?.handler as LambdaHandler;

/** JSON for anything but a string: an object with a field `toString` has no other text. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : `${JSON.stringify(value)}`);

/** Expects a documented answer, and that an invalid request was refused before anything was written. */
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

describe.each(TARGETS)(`$name, given anything (seed ${seed})`, ({ method, handler, payload, runs }) => {
  it('a function answers any task as documented, and writes only what it accepts', async () => {
    const anything = fc.oneof({ weight: 5, arbitrary: payload }, { weight: 1, arbitrary: junk });
    await fc.assert(
      fc.asyncProperty(anything, (event) => expectSane(() => throughTask(handler, event))),
      { seed, numRuns: rounds(4 * runs, Math.ceil(runs / 16)) },
    );
  });

  it('a function answers any HTTP event as documented, and writes only what it accepts', async () => {
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
      { seed, numRuns: rounds(4 * runs, Math.ceil(runs / 16)) },
    );
  });
});

describe(`events, of any shape (seed ${seed})`, () => {
  it('events of the bus of any shape are answered as documented', async () => {
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
      fc.asyncProperty(event, (one) => expectSane(() => throughTask(handlerOf('clean'), one))),
      { seed, numRuns: rounds(160, 20) },
    );
    await fc.assert(
      fc.asyncProperty(event, (one) => expectSane(() => throughTask(handlerOf('report'), one))),
      { seed, numRuns: 5 },
    );
  });

  it('messages of a queue of any shape are answered with those that failed', async () => {
    const handler = handlerOf('executionEnded');
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
