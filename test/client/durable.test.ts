import { describe, expect, it } from 'vitest';
import {
  type DurableContext,
  type DurableLeaseOptions,
  rate,
  withLease,
  withLeases,
} from '../../clients/typescript/src/durable.ts';
import { Holdfast, HoldfastError } from '../../clients/typescript/src/index.ts';

const ARN = 'arn:aws:lambda:eu-west-1:123456789012:function:billing:7/durable-execution/order-9/2f0c';
const GRANT = JSON.stringify({ key: 'k', leaseId: 'secret', fence: 7, bound: true });

type Call = [operation: string, request: Record<string, unknown>];

interface Script {
  /** The result of the callback, or its failure. */
  answer?: string | Error;
  /** The answer to each try of a call, or its failure; without either, success. */
  tries?: (operation: string) => unknown;
}

/** A context without an SDK: each operation runs once. */
function world({ answer = GRANT, tries = () => undefined }: Script = {}) {
  const operations: string[] = [];
  const calls: Call[] = [];
  const warnings: unknown[] = [];
  const holdfast = new Holdfast({
    holder: 'billing',
    transport: async (operation, request) => {
      calls.push([operation, { ...request }]);
      const failure = tries(operation);
      if (failure instanceof Error) throw failure;
      return failure || { parked: true, released: true };
    },
  });
  const ctx: DurableContext = {
    executionContext: { durableExecutionArn: ARN },
    logger: { warn: (message) => warnings.push(message) },
    createCallback: async (name, { timeout: { seconds } }) => {
      operations.push(`${name} for ${seconds} s`);
      const result = answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
      result.catch(() => {});
      return [result, 'Ab3=='];
    },
    step: async (name, run) => {
      operations.push(name);
      return JSON.parse(JSON.stringify(await run()));
    },
    wait: async (name, { seconds }) => void operations.push(`${name} in ${seconds} s`),
  };
  const hold = (options: DurableLeaseOptions = {}) => withLease(ctx, holdfast, 'k', options, (lease) => ({ ...lease }));
  return { ctx, holdfast, operations, calls, warnings, hold };
}

const failed = (fields: object) => Object.assign(new Error('failed'), fields);

describe('withLease', () => {
  it('withLease parks the callback, and releases the grant after the body', async () => {
    const { hold, operations, calls, warnings } = world();
    expect(await hold({ data: { run: 1 } })).toMatchObject({ key: 'k', fence: 7 });
    expect(operations).toEqual(['lease k for 3840 s', 'park k', 'release k']);
    const request = { key: 'k', holder: 'billing/order-9', callbackId: 'Ab3==', execution: ARN, parkSeconds: 3600 };
    expect(calls).toEqual([
      ['acquire', { ...request, data: { run: 1 }, bound: true, graceSeconds: 900, requestId: undefined }],
      ['release', { key: 'k', leaseId: 'secret' }],
    ]);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['has characters outside ASCII', `größe/\u{1f512}`],
    ['has 1,024 characters', 'k'.repeat(1024)],
    ['has 256 emoji', '\u{1f512}'.repeat(256)],
    ['has two lines', 'a\nb'],
  ])('withLease names its operations in printable ASCII, even if the key %s', async (_, key) => {
    const { ctx, holdfast, operations } = world();
    await withLease(ctx, holdfast, key, {}, () => {});
    const [callback = '', ...steps] = operations;
    for (const name of [callback.replace(' for 3840 s', ''), ...steps]) expect(name).toMatch(/^[ -~]{1,256}$/);
  });

  it("withLease sends the caller's options in place of its own, and warns of expiry", async () => {
    const { hold, calls, warnings } = world();
    await hold({ graceSeconds: 60, ttlSeconds: 60, holder: 'other', limit: 3, weight: 2 });
    expect(calls[0]?.[1]).toMatchObject({ ttlSeconds: 60, holder: 'other', limit: 3, weight: 2, graceSeconds: 60 });
    expect(calls[0]?.[1]).not.toHaveProperty('bound');
    expect(warnings).toEqual(['the lease of k expires after its ttl, unless check() extends it']);
  });

  it('a callback is parked without a requestId, so that submitter retries are one request', async () => {
    const { holdfast, calls } = world();
    const request = { key: 'k', callbackId: 'Ab3==', execution: ARN, parkSeconds: 60 };
    await Promise.all([holdfast.park(request), holdfast.park(request)]);
    const task = { key: 'k', taskToken: 'token', parkSeconds: 60 };
    await Promise.all([holdfast.park(task), holdfast.park(task)]);
    const ids = calls.map(([, { requestId }]) => requestId);
    expect(ids.slice(0, 2)).toEqual([undefined, undefined]);
    expect(new Set(ids).size).toBe(3);
  });

  it('withLease throws the problem of the service with all of its fields', async () => {
    const problem = { code: 'LeaseHeld', detail: 'held by the other', key: 'k', holder: 'other', retryAfterMs: 5 };
    const { hold, operations } = world({
      answer: failed({ errorType: 'CallbackExternalError', errorData: JSON.stringify(problem) }),
    });
    const error = await hold().catch((reason) => reason);
    expect(error).toBeInstanceOf(HoldfastError);
    expect(error).toMatchObject({ ...problem, message: problem.detail });
    expect(operations).not.toContain('release k');
  });

  it('withLease throws Unreachable if the callback times out', async () => {
    const { hold } = world({ answer: failed({ errorType: 'CallbackTimeoutError' }) });
    await expect(hold()).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it.each([undefined, 'no JSON', '7', '{"code": 7}'])(
    'withLease passes on a failure that is not from Holdfast: error data %s',
    async (errorData) => {
      const other = failed({ errorType: 'CallbackExternalError', errorData });
      await expect(world({ answer: other }).hold()).rejects.toBe(other);
    },
  );

  it('a call with a task token or callback id is not repeated after QueueFull', async () => {
    const full = new HoldfastError({ code: 'QueueFull', detail: 'the line is full', ...{ retryAfterMs: 1 } });
    const { holdfast, hold, operations, calls } = world({ tries: () => full });
    await expect(hold()).rejects.toMatchObject({ code: 'QueueFull' });
    expect([operations.slice(1), calls.length]).toEqual([['park k'], 1]);
    await expect(holdfast.park({ key: 'k', callbackId: 'Ab3==', execution: ARN })).rejects.toMatchObject({
      code: 'QueueFull',
    });
    await expect(holdfast.park({ key: 'k', taskToken: 'token' })).rejects.toMatchObject({ code: 'QueueFull' });
    expect(calls).toHaveLength(3);
  });

  const unanswered = (operation: string) =>
    operation === 'acquire' &&
    new HoldfastError({ code: 'Unreachable', detail: 'no answer', ...{ retryAfterMs: 60_000 } });

  it('withLease tries four times more after suspensions, and then waits for its callback', async () => {
    const { hold, operations, warnings } = world({ tries: unanswered });
    expect(await hold()).toMatchObject({ key: 'k', fence: 7 });
    const again = [5, 10, 20, 40].flatMap((seconds) => [`try again for k in ${seconds} s`, 'park k']);
    expect(operations.slice(1)).toEqual(['park k', ...again, 'release k']);
    expect(warnings).toEqual(['the request for k may be in line: waiting for its callback']);
  });

  it('withLease without any answer throws Unreachable when its callback times out', async () => {
    const answer = failed({ errorType: 'CallbackTimeoutError' });
    const { hold } = world({ tries: unanswered, answer });
    await expect(hold()).rejects.toMatchObject({ code: 'Unreachable', cause: { message: 'no answer' } });
  });

  it('withLease passes on the error of the body, even if the release fails', async () => {
    const { ctx, holdfast, operations } = world({
      tries: (operation) => operation === 'release' && new HoldfastError({ code: 'Refused', detail: 'no' }),
    });
    const own = new RangeError('no such order');
    const work = async () => {
      throw own;
    };
    await expect(withLease(ctx, holdfast, 'k', {}, work)).rejects.toBe(own);
    expect(operations.at(-1)).toBe('release k');
  });

  it('withLease returns the result of the body, even if every release is throttled', async () => {
    const { hold } = world({
      tries: (operation) =>
        operation === 'release' && new HoldfastError({ code: 'Throttled', detail: '', ...{ retryAfterMs: 60_000 } }),
    });
    expect(await hold()).toMatchObject({ key: 'k', fence: 7 });
  });
});

describe('withLeases', () => {
  it('withLeases acquires deeper paths first, and releases in the reverse order', async () => {
    const { ctx, holdfast, operations, calls } = world();
    const entries = [
      { key: 'openai', limit: 20 },
      { key: 'openai/a', parkSeconds: 60 },
    ];
    const held = await withLeases(ctx, holdfast, entries, { parkSeconds: 600 }, (leases) => leases);
    expect(held).toMatchObject({
      leases: [
        { key: 'openai', fence: 7 },
        { key: 'openai/a', fence: 7 },
      ],
      fences: { openai: 7, 'openai/a': 7 },
    });
    expect(operations).toEqual([
      ...['lease openai/a for 300 s', 'park openai/a', 'lease openai for 840 s', 'park openai'],
      ...['release openai', 'release openai/a'],
    ]);
    expect(calls.map(([, { limit }]) => limit)).toEqual([undefined, 20, undefined, undefined]);
  });

  it('withLeases refuses two entries of one key before it acquires any', async () => {
    const { ctx, holdfast, operations } = world();
    const twice = withLeases(ctx, holdfast, [{ key: 'a' }, { key: 'a' }], {}, () => {});
    await expect(twice).rejects.toMatchObject({ code: 'InvalidRequest' });
    expect(operations).toEqual([]);
  });
});

describe('rate', () => {
  const RESERVED = { key: 'k', reservation: 'r', startAt: '2026-01-01T00:00:03.412Z', waitMs: 3412, sleepSeconds: 4 };
  const ids = (calls: Call[]) => calls.map(([, { requestId }]) => requestId);

  it('rate reserves in a step, suspends until the start, and settles in a step', async () => {
    const { ctx, holdfast, operations, calls } = world({
      tries: (operation) => (operation === 'rateReserve' ? RESERVED : { key: 'k', settled: true }),
    });
    const terms = { limit: 100, per: '1m', units: 5 };
    const { startAt, settle } = await rate(ctx, holdfast, 'k', { ...terms, settle: true });
    expect([startAt, await settle({ requests: 3 })]).toEqual([RESERVED.startAt, true]);
    expect(operations).toEqual(['reserve k', 'start k in 4 s', 'settle k']);
    expect(calls).toEqual([
      // A reservation to settle may start as late as the longest period.
      [
        'rateReserve',
        {
          key: 'k',
          holder: 'billing/order-9',
          requestId: expect.any(String),
          rates: [terms],
          settle: true,
          waitSeconds: 60,
        },
      ],
      ['rateSettle', { key: 'k', reservation: 'r', units: { requests: 3 } }],
    ]);
  });

  it('a durable function is not suspended for a start that is now', async () => {
    const { ctx, holdfast, operations, calls } = world({ tries: () => ({ ...RESERVED, waitMs: 0, sleepSeconds: 0 }) });
    await rate(ctx, holdfast, 'k', { rates: [{ limit: 1, per: '1d' }], holder: 'other' });
    expect([operations, calls[0]?.[1]]).toMatchObject([['reserve k'], { holder: 'other', waitSeconds: 3600 }]);
  });

  it('rate repeats its request by the same id after suspensions', async () => {
    let lost = 3;
    const unreachable = new HoldfastError({ code: 'Unreachable', detail: 'no answer', ...{ retryAfterMs: 60_000 } });
    const { ctx, holdfast, operations, calls } = world({ tries: () => (lost-- > 0 ? unreachable : RESERVED) });
    await rate(ctx, holdfast, 'k', { limit: 1, per: '1s' });
    const again = [5, 10, 20].flatMap((seconds) => [`try again for k in ${seconds} s`, 'reserve k']);
    expect(operations).toEqual(['reserve k', ...again, 'start k in 4 s']);
    expect([ids(calls).length, new Set(ids(calls)).size]).toEqual([4, 1]);
  });

  it('rate throws a refusal with all of its fields', async () => {
    const refusal = { code: 'RateExceeded', detail: 'used up', key: 'k', boundBy: 'requests', retryAfterMs: 7 };
    const { ctx, holdfast, operations } = world({ tries: () => new HoldfastError(refusal) });
    const { detail: message, ...fields } = refusal;
    await expect(rate(ctx, holdfast, 'k', { limit: 1, per: '1s' })).rejects.toMatchObject({ ...fields, message });
    expect(operations).toEqual(['reserve k']);
  });
});
