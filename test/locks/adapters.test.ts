import { describe, expect, it, vi } from 'vitest';
import { get, httpEvent, lambdaContext, post, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { capturedLog } from '../support/stack/log.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const { handlers, clock, rawItem } = await leaseWorld();
const { acquire, heartbeat, release, breakLease, readLeases } = handlers;

it('the HTTP adapter answers 201 for a new grant, and otherwise 200', async () => {
  const payload = { key: 'http', holder: 'h', requestId: 'r' };
  const granted = await post(acquire, payload);
  expect(granted).toMatchObject({
    status: 201,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  });
  const { leaseId, fence } = granted.body;
  expect(await post(acquire, payload)).toMatchObject({ status: 200, body: { repeated: true, leaseId } });
  expect(await post(heartbeat, { key: 'http', leaseId })).toMatchObject({ status: 200 });
  expect(await get(readLeases, { key: 'http' })).toMatchObject({ status: 200 });
  expect(await post(breakLease, { key: 'http', fence })).toMatchObject({ status: 200 });
  expect(await post(release, { key: 'http', leaseId })).toMatchObject({
    status: 200,
    body: { released: false, reason: 'broken' },
  });
});

it('the task adapter answers with the result itself', async () => {
  const granted = await throughTask(acquire, { key: 'task', holder: 'h' });
  expect(granted.body).toMatchObject({ key: 'task', repeated: false });
  const { leaseId } = granted.body;
  expect((await throughTask(heartbeat, { key: 'task', leaseId })).body).toMatchObject({ leaseId });
  expect((await throughTask(readLeases, { key: 'task' })).body).toMatchObject({ state: 'held' });
  expect((await throughTask(release, { key: 'task', leaseId })).body).toEqual({ key: 'task', released: true });
});

const ERRORS = {
  LeaseHeld: async () => {
    await post(acquire, { key: 'e-held', holder: 'first' });
    return [acquire, { key: 'e-held', holder: 'second' }, 409, '61'] as const;
  },
  LeaseLost: async () => [heartbeat, { key: 'e-lost', leaseId: 'x' }, 412, undefined] as const,
  Conflict: async () => {
    await post(acquire, { key: 'e-conflict', holder: 'first' });
    return [breakLease, { key: 'e-conflict', fence: 1 }, 409, undefined] as const;
  },
  NotFound: async () => [breakLease, { key: 'e-none', fence: 1 }, 404, undefined] as const,
};

it.each(Object.keys(ERRORS) as (keyof typeof ERRORS)[])('both adapters fail with %s', async (code) => {
  const [handler, payload, status, retryAfter] = await ERRORS[code]();
  const http = await post(handler, payload);
  expect(http).toMatchObject({ outcome: code, status });
  expect(http.headers).toMatchObject({ 'content-type': 'application/problem+json' });
  expect(http.headers?.['retry-after']).toBe(retryAfter);
  const task = await throughTask(handler, payload);
  expect(task.outcome).toBe(code); // what ErrorEquals matches
  for (const { body } of [http, task])
    expect(body).toMatchObject({
      type: `urn:holdfast:error:${code}`,
      title: expect.any(String),
      status,
      code,
      detail: expect.any(String),
    });
  const { traceId: _, ...context } = http.body;
  expect(task.body).toMatchObject(context);
});

it('the task adapter throws an error without a stack trace', async () => {
  const error = await breakLease({ key: 'e-none', fence: 1 }, lambdaContext()).catch((e: Error) => e);
  expect((error as Error).stack).toBe('NotFound');
});

it('both adapters repeat a grant only for the same authenticated caller', async () => {
  const as = (authorizer: object, requestId: string) =>
    throughHttp(
      acquire,
      httpEvent('POST', { body: JSON.stringify({ key: `as-${requestId}`, holder: 'h', requestId }), authorizer }),
    );
  const ann = { iam: { userArn: 'arn:aws:iam::1:user/ann' } };
  await as(ann, 'iam');
  expect((await as(ann, 'iam')).body.repeated).toBe(true);
  expect((await as({ iam: { userArn: 'arn:aws:iam::1:user/bob' } }, 'iam')).outcome).toBe('LeaseHeld');
  const subject = { jwt: { claims: { sub: 'subject-7', scope: 'holdfast/admin' } } };
  await as(subject, 'jwt');
  expect([(await as({}, 'jwt')).outcome, (await as(subject, 'jwt')).body.repeated]).toEqual(['LeaseHeld', true]);
});

it('a JWT without a subject is refused, and does not cause a write', async () => {
  for (const jwt of [
    {},
    { claims: {} },
    { claims: { sub: '' } },
    { claims: { sub: 7 } },
    { claims: { scope: 'all' } },
  ]) {
    const body = JSON.stringify({ key: 'no-subject', holder: 'h', requestId: 'r' });
    const event = httpEvent('POST', { body, authorizer: { jwt } });
    const { outcome, status, body: problem } = await throughHttp(acquire, event);
    expect([outcome, status]).toEqual(['Forbidden', 403]);
    expect(problem.detail).toContain('`sub`');
  }
  expect(await rawItem('no-subject')).toBeUndefined();
});

// In a block of its own: after each test here, the modules are reset.
describe('log', () => {
  const lines = capturedLog();

  it('the log has a line for each request, without its secrets', async () => {
    vi.stubEnv('LOG_LEVEL', 'DEBUG');
    vi.stubEnv('METRICS_NAMESPACE', 'Holdfast');
    vi.resetModules(); // the logger reads its level when it is loaded
    const fresh = (await import('../support/worlds/leases.ts')) as typeof import('../support/worlds/leases.ts');
    const { handlers: logging } = await fresh.leaseWorld({ clock });
    const requestId = 'request-id-that-is-a-proof';
    const granted = await post(logging.acquire, { key: 'logged-key', holder: 'logged-holder', requestId });
    const beat = await post(logging.heartbeat, { key: 'logged-key', leaseId: granted.body.leaseId });
    const answers = [
      await post(logging.acquire, { key: 'logged-key', holder: 'other' }),
      await throughTask(logging.acquire, { key: 'logged-key', holder: 'other' }),
      await post(logging.heartbeat, { key: 'logged-key', leaseId: 'wrong' }),
      await get(logging.readLeases, { key: 'logged-key' }),
      await get(logging.readLeases, {}),
      await post(logging.breakLease, { key: 'logged-key', fence: 1 }),
      await post(logging.breakLease, { key: 'logged-key', fence: granted.body.fence, wait: true }),
      await post(logging.release, { key: 'logged-key', leaseId: granted.body.leaseId }),
    ];
    await post(logging.withdraw, { key: 'logged-key', holder: 'logged-holder', requestId });
    const log = lines.join('');
    vi.restoreAllMocks();

    const requests = lines.flatMap((line) => line.split('\n')).filter((line) => /"(answered|refused)"/.test(line));
    expect(requests).toHaveLength(11);
    const marked = requests.map((line) => JSON.parse(line)).find(({ wait }) => wait !== undefined);
    expect(marked).toMatchObject({ function: 'breakLease', key: 'logged-key', wait: true, ended: false });
    expect(JSON.parse(requests[0] ?? '')).toMatchObject({
      level: 'INFO',
      function: 'acquire',
      adapter: 'http',
      key: 'logged-key',
      holder: 'logged-holder',
      fence: granted.body.fence,
      durationMs: expect.any(Number),
    });
    expect(log).toContain('"LeaseHeld":1'); // the metrics are there too
    expect(log).toContain('"Dimensions":[["service"],["service","function"]]');
    expect(log).toContain('"TaskFailures":1');
    for (const secret of [granted.body.leaseId, granted.body.version, beat.body.version, requestId]) {
      expect(secret).toBeTruthy();
      expect(log).not.toContain(secret);
      expect(JSON.stringify(answers)).not.toContain(secret);
    }
  });
});
