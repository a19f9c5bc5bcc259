import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { newTable } from '../support/emulators/aws.ts';
import { newExecutionArn as arnOf } from '../support/emulators/callback-model.ts';
import { startCallbackDouble } from '../support/emulators/callbacks.ts';
import type { OutcomeMessage } from '../support/emulators/lambda-process.ts';
import { startStepFunctions } from '../support/emulators/step-functions.ts';
import { httpEvent } from '../support/stack/adapters.ts';
import { startBundle } from '../support/stack/bundles.ts';
import { npmRunRelease } from '../support/stack/packaging.ts';
import { eventBus, lease as expiredLease, expiryWorld } from '../support/worlds/expiry.ts';

const table = await newTable('leases');

beforeAll(async () => void (await npmRunRelease()));

/** The files of the contract that the functions contain. */
const OF_CONTRACT: Record<string, string[]> = {
  readContract: ['contract/openapi.json'],
  whoami: ['contract/calls.json'],
};

it.concurrent('only the bundles of functions that answer with the contract contain it', async ({ expect }) => {
  const { functions } = inject('service');
  for (const { name, bundle } of functions) {
    const maps = (await readdir(bundle)).filter((file) => file.endsWith('.mjs.map'));
    const sources = await Promise.all(
      maps.map(async (file): Promise<string[]> => JSON.parse(await readFile(join(bundle, file), 'utf8')).sources),
    );
    const ofContract = sources
      .flat()
      .filter((source) => /(^|\/)contract\//.test(source) && !source.includes('functions/'));
    expect(
      ofContract.map((source) => source.replace(/^(\.\.\/)*/, '')),
      name,
    ).toEqual(OF_CONTRACT[name] ?? []);
    expect(sources.flat().length, name).toBeGreaterThan(10);
  }
});

it.concurrent('the built function of the contract answers the stored document', async ({ expect }) => {
  const { get, stop } = await deployed('readContract');
  const { statusCode, body } = await get({});
  await stop();
  expect(statusCode).toBe(200);
  expect(body).toEqual(JSON.parse(await readFile('contract/openapi.json', 'utf8')));
});

/** A function as it is deployed, called through both adapters. */
async function deployed(name: string, settings: Record<string, string> = {}) {
  const { invoke, stop } = await startBundle(name, { LEASES_TABLE: table, ...settings });
  const answer = async (event: object) => {
    const outcome = await invoke(event);
    const { statusCode, headers, body = '' } = resultOf(outcome) as APIGatewayProxyStructuredResultV2;
    return { statusCode, contentType: headers?.['content-type'], body: JSON.parse(body) };
  };
  return {
    post: (payload: object) => answer(httpEvent('POST', { body: JSON.stringify(payload) })),
    get: (query: Record<string, string>) => answer(httpEvent('GET', { query: new URLSearchParams(query).toString() })),
    task: invoke,
    stop,
  };
}

const resultOf = (outcome: OutcomeMessage) => ('result' in outcome ? outcome.result : outcome) as object;

/** The JSON lines among what a process wrote. */
const lines = (written: string): Record<string, unknown>[] =>
  written.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));

describe.concurrent.each(['DEBUG', 'INFO'])('the built bundles, logging at %s', (level) => {
  it('the built bundles answer an event and a task, and log without secrets', async () => {
    const settings = { LOG_LEVEL: level };
    const key = `nightly ${randomUUID()}`;
    const written: string[] = [];
    const secrets: unknown[] = [];

    const acquire = await deployed('acquire', settings);
    const granted = await acquire.post({ key, holder: 'first', requestId: 'secret-request' });
    expect(granted).toMatchObject({ statusCode: 201, contentType: 'application/json' });
    expect(granted.body).toMatchObject({ key, holder: 'first', repeated: false });
    const { leaseId, version, fence } = granted.body;
    secrets.push(leaseId, version);

    const held = { code: 'LeaseHeld', status: 409, key, holder: 'first', fence, expiresAt: granted.body.expiresAt };
    const refused = await acquire.post({ key, holder: 'second' });
    expect(refused).toMatchObject({ statusCode: 409, contentType: 'application/problem+json', body: held });
    const failed = await acquire.task({ key, holder: 'second' });
    expect(failed).toMatchObject({ errorType: 'LeaseHeld' });
    expect(JSON.parse('errorMessage' in failed ? failed.errorMessage : '')).toMatchObject(held);
    written.push(await acquire.stop());

    const heartbeat = await deployed('heartbeat', settings);
    const beat = resultOf(await heartbeat.task({ key, leaseId })) as typeof granted.body;
    expect(beat).toMatchObject({ key, leaseId, fence });
    secrets.push(beat.version);
    expect(await heartbeat.task({ key, leaseId: 'not-it' })).toMatchObject({ errorType: 'LeaseLost' });
    written.push(await heartbeat.stop());

    const readLeases = await deployed('readLeases', settings);
    const { body: view } = await readLeases.get({ key });
    expect(view).toMatchObject({ key, state: 'held', holder: 'first', fence });
    const { body: page } = await readLeases.get({ prefix: key });
    expect(page).toMatchObject({ leases: [{ key, state: 'held' }], nextCursor: null });
    written.push(await readLeases.stop(), JSON.stringify([view, page, refused, failed]));

    const release = await deployed('release', settings);
    expect((await release.post({ key, leaseId })).body).toEqual({ key, released: true });
    written.push(await release.stop());

    const breakLease = await deployed('breakLease', settings);
    expect(await breakLease.task({ key, fence })).toMatchObject({ errorType: 'NotFound' });
    written.push(await breakLease.stop());

    const logged = lines(written.join('\n')).filter((line) => line.key === key && 'function' in line);
    expect(logged.map((line) => [line.function, line.adapter, line.message, line.code])).toEqual([
      ['acquire', 'http', 'answered', undefined],
      ['acquire', 'http', 'refused', 'LeaseHeld'],
      ['acquire', 'task', 'refused', 'LeaseHeld'],
      ['heartbeat', 'task', 'answered', undefined],
      ['heartbeat', 'task', 'refused', 'LeaseLost'],
      ['readLeases', 'http', 'answered', undefined],
      ['release', 'http', 'answered', undefined],
      ['breakLease', 'task', 'refused', 'NotFound'],
    ]);
    const everything = written.join('\n');
    for (const secret of secrets) {
      // A lease id ends with its secret part.
      expect(secret).toMatch(/[0-9a-f-]{36}$/);
      expect(everything).not.toContain(String(secret).slice(-36));
    }
    expect(everything).not.toMatch(/"(leaseId|version|lease_id|lease_version)"|secret-request/);
  });
});

it.concurrent('the built bundles log who repaired what in the nameservice, and nothing else', async () => {
  const settings = { LOG_LEVEL: 'DEBUG', NAMESERVICE_TABLE: await newTable('nameservice') };
  const publish = await deployed('publish', settings);
  await publish.post({ op: 'initLedger', alias: 'l' });
  await publish.stop();

  const expected = { state: 'ready', v: 1 };
  const repair = { op: 'resetStatus', alias: 'l', expected, next: { state: 'busy', v: 0, extra: { note: 'secret' } } };
  const repairNames = await deployed('repairNames', settings);
  const jwt = { claims: { sub: 'admin@example.com', scope: 'holdfast/admin' } };
  const event = httpEvent('POST', { body: JSON.stringify(repair), authorizer: { jwt } });
  expect(resultOf(await repairNames.task(event))).toMatchObject({ statusCode: 200 });
  expect(await repairNames.task({ ...repair, next: expected })).toMatchObject({ errorType: 'Conflict' });
  const written = await repairNames.stop();
  const logged = lines(written).filter(({ message }) => message === 'answered' || message === 'refused');
  expect(logged).toMatchObject([
    {
      message: 'answered',
      caller: 'admin@example.com',
      op: 'resetStatus',
      alias: 'l:main',
      expected,
      next: { state: 'busy', v: 0 },
    },
    { message: 'refused', code: 'Conflict', adapter: 'task' },
  ]);
  expect(written).not.toContain('secret');
});

it.concurrent('the built bundles park, notify and cancel tasks without showing tokens or grants', async () => {
  const steps = await startStepFunctions();
  const settings = {
    LOG_LEVEL: 'DEBUG',
    WAITERS_TABLE: await newTable('waiters'),
    AWS_ENDPOINT_URL_SFN: steps.endpoint,
  };
  const key = `parked ${randomUUID()}`;
  const execution = 'arn:aws:states:us-east-1:000000000000:execution:machine:bundled';
  const [notified, cancelled, lost] = [steps.newTask(), steps.newTask(), steps.newTask()];
  const written: string[] = [];
  const answers: unknown[] = [];
  const call = async (name: string, payload: object) => {
    const running = await deployed(name, settings);
    const answer = await running.task(payload);
    written.push(await running.stop());
    answers.push(answer);
    return resultOf(answer) as Record<string, string>;
  };

  const acquire = await deployed('acquire', settings);
  const first = resultOf(await acquire.task({ key, holder: 'first' })) as { leaseId: string; version: string };
  for (const { token } of [notified, cancelled, lost])
    answers.push(await acquire.task({ key, holder: 'waiter', taskToken: token, execution }));
  written.push(await acquire.stop());
  const { ticket } = Object((answers[1] as { result: object }).result);
  expect(await call('readLeases', { key, waiters: true })).toMatchObject({ waiting: 3 });
  expect(await call('cancelWaiter', { key, ticket })).toMatchObject({ cancelled: true });
  expect(await call('withdraw', { key, requestId: 'none', holder: 'none' })).toMatchObject({ cancelled: false });
  expect(await call('release', { key, leaseId: first.leaseId })).toMatchObject({ released: true });
  expect([notified.state, cancelled.error]).toEqual(['succeeded', 'LeaseLost']);
  steps.faults.SendTaskSuccess = ['refused'];
  await call('repairQueues', {});
  await call('executionEnded', { execution });
  await call('breakLease', { key, fence: 1 });
  await steps.stop();

  const everything = [...written, JSON.stringify(answers)].join('\n');
  const { leaseId, version } = notified.output as Record<string, string>;
  for (const secret of [notified.token, cancelled.token, lost.token, first.leaseId, first.version, leaseId, version]) {
    expect(secret?.length).toBeGreaterThan(30);
    expect(everything).not.toContain(secret);
  }
  expect(everything).not.toMatch(/task_?token/i);
  const logged = lines(written.join('\n')).filter((line) => 'function' in line && 'message' in line);
  expect(logged.map(({ function: name }) => name)).toEqual([
    'acquire',
    'acquire',
    'acquire',
    'acquire',
    'readLeases',
    'cancelWaiter',
    'withdraw',
    'release', // the grant of the next waiter
    'release',
    'repairQueues',
    'executionEnded',
    'breakLease',
  ]);
});

it.concurrent('the built bundles complete callbacks, and do not log a callback id', async () => {
  const double = await startCallbackDouble(Date.now);
  const settings = {
    LOG_LEVEL: 'DEBUG',
    WAITERS_TABLE: await newTable('waiters'),
    DURABLE_FUNCTIONS: 'work',
    AWS_ENDPOINT_URL_LAMBDA: double.endpoint,
  };
  const key = `called back ${randomUUID()}`;
  const { arn: execution } = double.callbacks.begin();
  const [first, second] = [double.callbacks.create(execution), double.callbacks.create(execution)];
  const written: string[] = [];
  const acquire = await deployed('acquire', settings);
  for (const { id: callbackId } of [first, second])
    await acquire.task({ key, holder: 'durable', callbackId, execution, ttlSeconds: 600 });
  // The end is so close to the grant that the clocks cannot order them, so the function asks AWS.
  const stopDate = new Date().toISOString();
  const outside = await acquire.task({ key, holder: 'durable', callbackId: first.id, execution: arnOf('approvals') });
  expect(outside).toMatchObject({ errorType: 'InvalidRequest' });
  written.push(await acquire.stop());
  expect(first.result).toMatchObject({ outcome: 'succeeded' });
  double.callbacks.end(execution, 'STOPPED');
  const ended = await deployed('executionEnded', settings);
  expect(await ended.task({ execution, status: 'STOPPED', stopDate })).toMatchObject({
    result: { tickets: 1, freed: 1 },
  });
  written.push(await ended.stop());
  await double.stop();
  expect(new Set(double.requests)).toEqual(new Set(['succeed', 'describe']));
  for (const { id } of [first, second]) expect(written.join('\n')).not.toContain(id);
});

it.concurrent('the built bundles count outcomes under the names and dimensions that the alarms watch', async () => {
  const acquire = await deployed('acquire', { LEASES_TABLE: 'no-such-table' });
  const startedAt = Date.now();
  expect(await acquire.task({ key: 'k', holder: 'h' })).toMatchObject({ errorType: 'Unavailable' });
  expect(await acquire.post({ key: 'k', holder: 'h' })).toMatchObject({ statusCode: 503 });
  const [byTask, byHttp] = lines(await acquire.stop()).filter((line) => '_aws' in line);
  expect(byTask).toMatchObject({
    _aws: {
      Timestamp: expect.toSatisfy((at: number) => at >= startedAt && at <= Date.now()),
      CloudWatchMetrics: [
        {
          Namespace: 'Holdfast',
          Dimensions: [['service'], ['service', 'function']],
          Metrics: ['Unavailable', 'Faults', 'TaskFailures'].map((Name) => ({ Name, Unit: 'Count' })),
        },
      ],
    },
    service: 'holdfast-test',
    function: 'acquire',
    Unavailable: 1,
    Faults: 1,
    TaskFailures: 1,
  });
  expect(byHttp).toMatchObject({ Unavailable: 1, Faults: 1 });
  expect(byHttp).not.toHaveProperty('TaskFailures');
});

it.concurrent('the built bundles date their metrics by the arrival of the call', async () => {
  const key = `awaited ${randomUUID()}`;
  const acquire = await deployed('acquire', { WAITERS_TABLE: await newTable('waiters') });
  await acquire.task({ key, holder: 'first' });
  const calledAt = Date.now();
  expect(await acquire.task({ key, holder: 'second', waitSeconds: 1 })).toMatchObject({ errorType: 'LeaseHeld' });
  const answeredAt = Date.now();
  const [, refused] = lines(await acquire.stop()).filter((line) => '_aws' in line);
  expect(refused).toMatchObject({ LeaseHeld: 1, TaskFailures: 1 });
  const { Timestamp } = Object(refused?._aws) as { Timestamp: number };
  expect(answeredAt - calledAt).toBeGreaterThanOrEqual(1000);
  // The metrics have the time of the arrival, not of the answer.
  expect(Timestamp).toBeGreaterThanOrEqual(calledAt);
  expect(answeredAt - Timestamp).toBeGreaterThan(900);
});

it.concurrent('the built bundles report expired records by metrics and an event, without secrets', async ({
  expect,
}) => {
  const bus = await eventBus();
  const { locations, putLease } = await expiryWorld();
  const { leasesTable, waitersTable, commitsTable, nameserviceTable, bucket } = locations;
  await putLease(expiredLease('stuck', Date.now() - 7_200_000));
  const settings = {
    ...{ LEASES_TABLE: leasesTable, WAITERS_TABLE: waitersTable ?? '' },
    ...{ COMMITS_TABLE: commitsTable, NAMESERVICE_TABLE: nameserviceTable, BUCKET: bucket },
    AWS_ENDPOINT_URL_EVENTBRIDGE: bus.endpoint,
  };
  const report = await deployed('report', settings);
  expect(await report.task({})).toMatchObject({ result: { complete: true, announced: true } });
  const written = await report.stop();
  const emf = lines(written).filter((line) => '_aws' in line);
  expect(emf.find(({ kind }) => kind === 'abandonedLease')).toMatchObject({
    _aws: {
      CloudWatchMetrics: [
        {
          Namespace: 'Holdfast',
          Dimensions: [['service', 'kind']],
          Metrics: [
            { Name: 'ExpiredRecords', Unit: 'Count' },
            { Name: 'OldestAgeSeconds', Unit: 'Seconds' },
          ],
        },
      ],
    },
    service: 'holdfast-test',
    ExpiredRecords: 1,
    OldestAgeSeconds: expect.toSatisfy((age: number) => age >= 7200 && age < 10_800),
  });
  expect(emf.filter(({ kind }) => kind !== undefined)).toHaveLength(1); // CloudWatch charges for zeros, too
  expect(emf.find(({ ReportCompleted }) => ReportCompleted !== undefined)).toMatchObject({
    _aws: {
      CloudWatchMetrics: [{ Dimensions: [['service']], Metrics: [{ Name: 'ReportCompleted', Unit: 'Count' }] }],
    },
    service: 'holdfast-test',
    ReportCompleted: 1,
  });
  await expect.poll(() => bus.events.length).toBe(1);
  expect(bus.events[0]?.detail).toMatchObject({ service: 'holdfast-test', expired: { abandonedLease: { count: 1 } } });
  expect(written + JSON.stringify(bus.events)).not.toMatch(/secret-/);
  await bus.stop();
});
