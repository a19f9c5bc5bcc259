import { beforeEach, expect, it, vi } from 'vitest';
import * as z from 'zod/mini';
import { httpEvent, post, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { capturedLog } from '../support/stack/log.ts';

const lines = capturedLog();
beforeEach(() => {
  vi.stubEnv('LOG_LEVEL', 'INFO');
  vi.resetModules(); // the logger reads its level when it is loaded
});

const requests = () =>
  lines
    .flatMap((line) => line.split('\n'))
    .filter((line) => /"(answered|refused)"/.test(line))
    .map((line) => JSON.parse(line));

it('a function logs only the fields of input, result and error that it declares', async () => {
  const { lambdaFunction } = await import('../../shared/lambda/function.ts');
  const { HoldfastError } = await import('../../shared/errors.ts');
  const handler = lambdaFunction({
    name: 'test',
    input: z.strictObject({ asked: z.string(), secret: z.string(), refuse: z.boolean() }),
    nameFields: {},
    run: async ({ refuse }) => {
      if (refuse) throw new HoldfastError('Conflict', 'refused', { known: 'context', token: 'hidden-context' });
      return { known: 'result', leaseId: 'hidden-result' };
    },
    logged: ['asked', 'known'],
    derivedFields: ({ asked }) => ({ words: `${asked} in words` }),
  });
  await post(handler, { asked: 'a', secret: 'hidden-input', refuse: false });
  await throughTask(handler, { asked: 'b', secret: 'hidden-input', refuse: true });
  await throughTask(handler, { asked: 1, secret: 'hidden-input', refuse: true });
  const log = lines.join('');
  vi.restoreAllMocks();

  expect(requests()).toMatchObject([
    { message: 'answered', function: 'test', adapter: 'http', asked: 'a', known: 'result', words: 'a in words' },
    { message: 'refused', adapter: 'task', code: 'Conflict', asked: 'b', known: 'context', words: 'b in words' },
    { message: 'refused', code: 'InvalidRequest', issues: [{ path: 'asked', message: expect.any(String) }] },
  ]);
  expect(log).not.toMatch(/hidden-/);
  expect(Object.keys(requests()[2])).not.toContain('asked');
});

it('a plain call is one write to standard output, of at most 600 bytes', async () => {
  vi.stubEnv('METRICS_NAMESPACE', 'Holdfast');
  const { leaseWorld } = await import('../support/worlds/leases.ts');
  const { handlers } = await leaseWorld();
  const key = 'reports/nightly-aggregation';
  const { body } = await post(handlers.acquire, {
    key,
    holder: 'arn:aws:iam::123456789012:role/nightly',
    ttlSeconds: 60,
  });
  await post(handlers.heartbeat, { key, leaseId: body.leaseId });
  await post(handlers.release, { key, leaseId: body.leaseId });
  vi.restoreAllMocks();

  expect(lines).toHaveLength(3);
  expect(lines.map((line) => Buffer.byteLength(line))).toEqual(lines.map(() => expect.toSatisfy((n) => n <= 600)));
  expect(lines.map((line) => JSON.parse(line))).toMatchObject(
    ['acquire', 'heartbeat', 'release'].map((name) => ({
      ...{ level: 'INFO', message: 'answered', function: name, key, Success: 1 },
      _aws: { CloudWatchMetrics: [{ Namespace: 'Holdfast', Dimensions: [['service'], ['service', 'function']] }] },
    })),
  );
});

it('the log names the operator of a break, a cancel, a cap, a move', async () => {
  const { leaseWorld } = await import('../support/worlds/leases.ts');
  const { handlers } = await leaseWorld();
  const operator = 'arn:aws:iam::123456789012:user/operator';
  const asOperator = (payload: object) =>
    httpEvent('POST', { body: JSON.stringify(payload), authorizer: { iam: { userArn: operator } } });
  const { body } = await post(handlers.acquire, { key: 'k', holder: 'h' });
  await throughHttp(handlers.breakLease, asOperator({ key: 'k', fence: body.fence }));
  await throughHttp(handlers.cancelWaiter, asOperator({ key: 'k', ticket: 'none' }));
  const cap = { limit: 3, rates: [{ name: 'requests', limit: 20, per: '1m' }], reason: 'slow', forSeconds: 60 };
  await throughHttp(handlers.capKey, asOperator({ key: 'k', ...cap }));
  await throughHttp(handlers.capKey, asOperator({ key: 'k', limit: null }));
  await throughHttp(handlers.runNext, asOperator({ key: 'k', ticket: 'none' }));
  vi.restoreAllMocks();

  expect(requests()).toMatchObject([
    { function: 'acquire' },
    { function: 'breakLease', key: 'k', fence: body.fence, caller: operator },
    { function: 'cancelWaiter', key: 'k', ticket: 'none', caller: operator },
    { function: 'capKey', key: 'k', ...cap, caller: operator },
    { function: 'capKey', key: 'k', limit: null, caller: operator },
    { function: 'runNext', key: 'k', ticket: 'none', moved: false, reason: 'unknown', caller: operator },
  ]);
});

it('the lines of a report and a clean-up name the operator who started them', async () => {
  const { expiryWorld } = await import('../support/worlds/expiry.ts');
  const { report, clean } = (await expiryWorld()).handlers();
  const authorizer = { jwt: { claims: { sub: 'operator', scope: 'holdfast/admin' } } };
  const asOperator = (payload: object) => httpEvent('POST', { body: JSON.stringify(payload), authorizer });
  await throughHttp(report, asOperator({}));
  await throughHttp(clean, asOperator({ dryRun: false }));
  await throughTask(report, {});
  vi.restoreAllMocks();

  expect(requests()).toMatchObject([
    { function: 'report', caller: 'operator' },
    { function: 'clean', dryRun: false, caller: 'operator' },
    { function: 'report', adapter: 'task' },
  ]);
  expect(requests()[2]).not.toHaveProperty('caller');
});

it('an invocation below the log level writes only its metrics', async () => {
  const call = async (environment: Record<string, string>) => {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    vi.resetModules();
    const { lambdaFunction } = await import('../../shared/lambda/function.ts');
    const run = async () => ({ known: 'result' });
    const handler = lambdaFunction({ name: 'test', input: z.strictObject({}), nameFields: {}, run, logged: ['known'] });
    lines.length = 0;
    await post(handler, {});
    return lines.map((line) => JSON.parse(line));
  };
  const [alone, ...more] = await call({
    LOG_LEVEL: 'ERROR',
    METRICS_NAMESPACE: 'Holdfast',
    SERVICE_NAME: 'holdfast-x',
  });
  const quiet = await call({ LOG_LEVEL: 'SILENT', METRICS_NAMESPACE: '' });
  const plain = await call({ LOG_LEVEL: 'info', METRICS_NAMESPACE: '' });
  vi.restoreAllMocks();

  expect(Object.keys(alone).sort()).toEqual(['Success', '_aws', 'function', 'service']);
  expect(alone).toMatchObject({ Success: 1, function: 'test', service: 'holdfast-x' });
  expect([more, quiet]).toEqual([[], []]);
  expect(plain).toMatchObject([{ message: 'answered', known: 'result' }]);
  expect(plain[0]).not.toHaveProperty('_aws');
});

it('an invocation writes at most a hundred values of a metric in a line', async () => {
  vi.stubEnv('METRICS_NAMESPACE', 'Holdfast');
  vi.resetModules();
  const { lambdaFunction } = await import('../../shared/lambda/function.ts');
  const { HoldfastError } = await import('../../shared/errors.ts');
  const handler = lambdaFunction({
    name: 'test',
    input: z.strictObject({ values: z.number(), refuse: z.boolean() }),
    nameFields: {},
    run: async ({ values, refuse }, { measure }) => {
      for (let value = 1; value <= values; value++) measure?.('HandOffMs', value);
      if (refuse) throw new HoldfastError('Conflict', 'refused');
      return { waitedMs: 5, repeated: true };
    },
    logged: [],
  });
  await throughTask(handler, { values: 1, refuse: true });
  await throughTask(handler, { values: 0, refuse: false });
  await throughTask(handler, { values: 250, refuse: false });
  vi.restoreAllMocks();

  const written = lines.map((line) => JSON.parse(line));
  expect(written).toHaveLength(5);
  const [failed, none, ...parts] = written;
  expect(failed).toMatchObject({ code: 'Conflict', Conflict: 1, HandOffMs: 1 });
  expect(none).not.toHaveProperty('HandOffMs');
  expect(none).not.toHaveProperty('WaitedMs'); // a repeat has waited for nothing
  expect(parts.map(({ HandOffMs }) => HandOffMs.length)).toEqual([100, 100, 50]);
  expect(parts.flatMap(({ HandOffMs }) => HandOffMs)).toEqual(Array.from({ length: 250 }, (_, at) => at + 1));
  expect(parts.map(({ Success }) => Success)).toEqual([1, undefined, undefined]);
  for (const part of parts)
    expect(part).toMatchObject({
      function: 'test',
      _aws: { CloudWatchMetrics: [{ Metrics: expect.arrayContaining([{ Name: 'HandOffMs', Unit: 'Milliseconds' }]) }] },
    });
});

it('the trace of an invocation is logged if it is sampled', async () => {
  const { lambdaFunction } = await import('../../shared/lambda/function.ts');
  const handler = lambdaFunction({
    name: 'test',
    input: z.strictObject({}),
    nameFields: {},
    run: async () => ({}),
    logged: [],
  });
  const root = '1-5759e988-bd862e3fe1be46a994272793';
  for (const sampled of [1, 0]) {
    vi.stubEnv('_X_AMZN_TRACE_ID', `Root=${root};Parent=53995c3f42cd8ad8;Sampled=${sampled};Lineage=1:a:0`);
    await post(handler, {});
  }
  vi.restoreAllMocks();
  expect(requests().map(({ xrayTraceId }) => xrayTraceId)).toEqual([root, undefined]);
});

it('an unknown log level keeps the function from starting', async () => {
  vi.stubEnv('LOG_LEVEL', 'LOUD');
  vi.resetModules();
  await expect(import('../../shared/surroundings/log.ts')).rejects.toThrow(
    "LOG_LEVEL must be one of DEBUG, INFO, WARN, ERROR, SILENT, not 'LOUD'",
  );
});

it('a hand-off logs the grants of callers and tasks without a proof', async () => {
  const { lineWorld } = await import('../support/worlds/line.ts');
  const { handlers, joinLine, park, grantOf, steps } = await lineWorld();
  const first = (await post(handlers.acquire, { key: 'k', holder: 'first' })).body;
  await joinLine('k', 'second');
  const { task, ticket } = await park({ key: 'k', holder: 'third' });
  await post(handlers.release, { key: 'k', leaseId: first.leaseId });
  const second = (await post(handlers.acquire, { key: 'k', holder: 'caller', requestId: 'second' })).body;
  await post(handlers.release, { key: 'k', leaseId: second.leaseId });
  const third = grantOf(task);
  await steps.stop();
  vi.restoreAllMocks();

  const granted = lines.filter((line) => line.includes('"granted"')).map((line) => JSON.parse(line));
  expect(granted).toMatchObject([
    { function: 'release', key: 'k', holder: 'caller', fence: second.fence, previous: { holder: 'first' } },
    { function: 'release', key: 'k', holder: 'third', fence: third.fence, ticket, previous: { fence: second.fence } },
  ]);
  for (const line of granted)
    expect(Object.keys(line).toSorted()).toEqual([
      ...['fence', 'function', 'holder', 'key', 'level', 'message', 'previous'],
      ...['service', 'ticket', 'timestamp', 'traceId'],
    ]);
  for (const proof of [second.leaseId, second.version, third.leaseId, task.token])
    expect(lines.join()).not.toContain(proof);
});

it('a grant that the schedule finishes is logged by the schedule', async () => {
  const { lineWorld } = await import('../support/worlds/line.ts');
  const { handlers, park, grantOf, steps, clock } = await lineWorld();
  const { leaseId } = (await post(handlers.acquire, { key: 'k', holder: 'first' })).body;
  const { task } = await park({ key: 'k', holder: 'second', ttlSeconds: 600 });
  steps.faults.SendTaskSuccess = ['refused'];
  await post(handlers.release, { key: 'k', leaseId });
  clock.advance(11_000);
  await throughTask(handlers.repairQueues, {});
  const { fence } = grantOf(task);
  await steps.stop();
  vi.restoreAllMocks();

  const granted = lines.filter((line) => line.includes('"granted",')).map((line) => JSON.parse(line));
  expect(granted.at(-1)).toMatchObject({ function: 'repairQueues', key: 'k', holder: 'second', fence });
});

it('a call in line that serves itself logs one line, like a plain call', async () => {
  const { lineWorld } = await import('../support/worlds/line.ts');
  const { handlers, steps } = await lineWorld();
  await post(handlers.acquire, { key: 'k', holder: 'first', ttlSeconds: 5 });
  const { fence } = (await post(handlers.acquire, { key: 'k', holder: 'second', waitSeconds: 15 })).body;
  await steps.stop();
  vi.restoreAllMocks();

  const written = lines.map((line) => JSON.parse(line));
  expect(written).toMatchObject([{ holder: 'first' }, { message: 'answered', holder: 'second', fence }]);
});
