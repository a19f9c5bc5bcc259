import { describe, expect, it, vi } from 'vitest';
import {
  type AcquireOptions,
  Holdfast,
  type HoldfastEvent,
  isHoldfastError,
} from '../../clients/typescript/src/index.ts';
import { grantOf, ManualService, ManualSurroundings, type Sent, settled } from '../support/time/process-clock.ts';

function world(onEvent?: (event: HoldfastEvent) => void) {
  const by = new ManualSurroundings();
  const service = new ManualService();
  const holdfast = new Holdfast({ transport: service.transport, holder: 'tester', surroundings: by, onEvent });
  const outcomeOf = (promise: Promise<unknown>) => {
    const outcome: { value?: unknown; error?: unknown } = {};
    promise.then(
      (value) => Object.assign(outcome, { value }),
      (error) => Object.assign(outcome, { error }),
    );
    return outcome;
  };
  return {
    by,
    service,
    holdfast,
    outcomeOf,
    acquire: (options?: AcquireOptions) => outcomeOf(holdfast.acquire('k', options)),
  };
}

const normal = ({ operation, payload }: Sent) =>
  operation === 'release' ? { key: 'k', released: true } : grantOf(payload);

describe('a service that does not answer as it should', () => {
  it('a client does not take an answer without a grant for a lease', async () => {
    const { by, service, acquire } = world();
    service.reply = ({ operation }) => (operation === 'release' ? { key: 'k', released: false } : { key: 'k' });
    const outcome = acquire({ timeoutMs: 5000 });
    await by.advance(20_000);
    expect(outcome.error).toMatchObject({ code: 'Unreachable' });
    expect(service.of('acquire').length).toBeLessThan(20);
  });

  it('a client does not ask without end if every grant comes too late', async () => {
    const { by, service, acquire } = world();
    service.reply = (sent) => {
      if (sent.operation === 'acquire') by.block(3000);
      return sent.operation === 'release' ? normal(sent) : grantOf(sent.payload, 2000);
    };
    const outcome = acquire({ ttlSeconds: 2, timeoutMs: 20_000 });
    await by.advance(60_000);
    expect(outcome.error).toMatchObject({ code: 'Unreachable' });
    expect(service.of('release').length).toBe(service.of('acquire').length);
  });

  it('a client asks again if a grant ended whose answer was lost', async () => {
    const { by, service, acquire } = world();
    const answers = [
      (sent: Sent) => sent.fail('Unreachable'),
      (sent: Sent) => sent.fail('LeaseLost', { reason: 'broken' }),
    ];
    service.reply = (sent) => (sent.operation === 'acquire' && answers.length ? answers.shift()?.(sent) : normal(sent));
    const outcome = acquire();
    await by.advance(5000);
    expect(outcome.value).toMatchObject({ held: true });
    const ids = service.of('acquire').map(({ payload }) => payload.requestId);
    expect([ids.length, ids[0] === ids[1], ids[1] === ids[2]]).toEqual([3, true, false]);
    // The break may wait for this holder, of whose lease id no answer came.
    expect(service.of('withdraw').map(({ payload }) => payload)).toEqual([
      { key: 'k', requestId: ids[0], holder: expect.any(String) },
    ]);
    service.reply = (sent) => sent.fail('LeaseLost', { reason: 'cancelled' });
    const cancelled = acquire();
    await by.advance(10);
    expect(cancelled.error).toMatchObject({ code: 'LeaseLost', reason: 'cancelled' });
  });
});

describe('maxHoldMs', () => {
  it('maxHoldMs counts from the grant, not from the request that waited for it', async () => {
    const { by, service, acquire } = world();
    service.reply = (sent) => {
      if (sent.operation === 'release') return normal(sent);
      if (!sent.payload.waitSeconds) return sent.fail('LeaseHeld', { key: 'k', holder: 'other', expiresAt: null });
      by.block(15_000);
      return { ...grantOf(sent.payload), waitedMs: 15_000 };
    };
    const outcome = acquire({ waitMs: 20_000, maxHoldMs: 5000 });
    await by.advance(10);
    expect(outcome.value).toMatchObject({ held: true });
    await by.advance(5000);
    expect(outcome.value).toMatchObject({ held: false, lost: { reason: 'maxHold' } });
  });

  it('a maxHoldMs that ends before the answer throws LeaseLost, and releases the lease', async () => {
    const { by, service, acquire } = world();
    service.reply = normal;
    const outcome = acquire({ maxHoldMs: 0 });
    await by.advance(60_000);
    expect(outcome.error).toMatchObject({ code: 'LeaseLost', reason: 'maxHold' });
    expect(service.sent.map(({ operation }) => operation)).toEqual(['acquire', 'release']);
  });

  it('a maxHoldMs that ends before the answer does not end lead', async () => {
    const { by, service, holdfast, outcomeOf } = world();
    const terms: number[] = [];
    const controller = new AbortController();
    service.reply = (sent) => {
      if (sent.operation === 'acquire' && service.of('acquire').length === 1) by.block(1500);
      return normal(sent);
    };
    const options = { signal: controller.signal, maxHoldMs: 1000 };
    const outcome = outcomeOf(holdfast.lead('k', { ...options, onElected: ({ fence }) => terms.push(fence) }));
    await by.advance(500);
    expect([outcome, terms]).toEqual([{}, [7]]);
    expect(service.of('release').length).toBe(1);
    controller.abort('enough');
    await by.advance(1000);
    expect('value' in outcome).toBe(true);
  });
});

describe('a release', () => {
  it('a release has half of its time left if a heartbeat is not answered', async () => {
    const { by, service, holdfast } = world();
    service.reply = ({ operation, payload }) => (operation === 'acquire' ? grantOf(payload) : undefined);
    const lease = await holdfast.acquire('k', { releaseTimeoutMs: 2000 });
    await by.advance(20_000);
    const released = lease.release();
    await by.advance(1000);
    const [release] = service.of('release');
    await by.advance(400);
    expect(release?.signal.aborted).toBe(false);
    release?.answer({ key: 'k', released: true });
    expect(await released).toBe(true);
  });

  it('a release is sent even if the wall clock jumps during a heartbeat', async () => {
    const { by, service, holdfast } = world();
    service.reply = ({ operation, payload }) => (operation === 'acquire' ? grantOf(payload) : undefined);
    const lease = await holdfast.acquire('k');
    await by.advance(20_000);
    const released = lease.release();
    by.suspend(3_600_000);
    service.of('heartbeat')[0]?.answer(grantOf({ key: 'k' }));
    await by.advance(1000);
    const [release] = service.of('release');
    expect(release?.signal.aborted).toBe(false);
    release?.answer({ key: 'k', released: true });
    expect(await released).toBe(true);
  });

  it('a release after a loss is sent once, unless the service reported the loss', async () => {
    const { by, service, holdfast } = world();
    service.reply = (sent) =>
      sent.operation === 'heartbeat' ? sent.fail('LeaseLost', { reason: 'taken' }) : normal(sent);
    const taken = await holdfast.acquire('k');
    await by.advance(20_000);
    expect(await Promise.all([taken.release(), taken[Symbol.asyncDispose]()])).toEqual([false, undefined]);
    expect(service.of('release').length).toBe(0);
    const late = await holdfast.acquire('k');
    by.block(60_000);
    expect(late.lost).toMatchObject({ reason: 'deadline' });
    expect(await Promise.all([late.release(), late.release()])).toEqual([true, true]);
    expect(service.of('release').length).toBe(1);
  });
});

describe('a hook that throws', () => {
  it('a hook that throws does not lose the lease, and its error surfaces', async () => {
    const surfaced: unknown[] = [];
    vi.stubGlobal('queueMicrotask', (act: () => void) => {
      try {
        act();
      } catch (error) {
        surfaced.push(error);
      }
    });
    try {
      const { by, service, holdfast } = world((event) => {
        throw new Error(event.type);
      });
      let held = true;
      service.reply = (sent) => {
        if (sent.operation !== 'acquire' || sent.payload.waitSeconds) return normal(sent);
        return held ? void sent.fail('LeaseHeld', { key: 'k', holder: 'other', expiresAt: null }) : normal(sent);
      };
      const working = holdfast.withLease('k', { waitMs: 5000 }, () => by.advance(30_000));
      await by.advance(10);
      await working;
      held = false;
      await expect(holdfast.withLease('k', () => by.block(60_000))).rejects.toMatchObject({ reason: 'deadline' });
      expect(surfaced.map((error) => (error as Error).message)).toEqual([
        ...['waiting', 'acquired', 'beat', 'released'],
        ...['acquired', 'lost', 'released'],
      ]);
    } finally {
      vi.unstubAllGlobals();
    }
  });
});

describe('lead', () => {
  const leading = (onElected: (signal: AbortSignal, term: number) => unknown) => {
    const { by, service, holdfast, outcomeOf } = world();
    const controller = new AbortController();
    const losses: unknown[] = [];
    let term = 0;
    service.reply = (sent) => {
      if (sent.operation === 'heartbeat' && term === 1) return void sent.fail('LeaseLost', { reason: 'taken' });
      return normal(sent);
    };
    const outcome = outcomeOf(
      holdfast.lead('k', {
        signal: controller.signal,
        onElected: (lease) => onElected(lease.signal, ++term),
        onLost: (error) => losses.push(isHoldfastError(error, 'LeaseLost') && error.reason),
      }),
    );
    return { by, service, outcome, controller, losses, terms: () => term };
  };
  const aborted = (signal: AbortSignal, wrap: (reason: unknown) => unknown) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(wrap(signal.reason))));

  it.each([
    ['the reason of its signal, as fetch does', (reason: unknown) => reason],
    ['an error with that as its cause, as timers do', (cause: unknown) => new Error('aborted', { cause })],
  ])('lead waits again if the work ends by the loss, and throws %s', async (_, wrap) => {
    const { by, outcome, controller, losses, terms } = leading((signal) => aborted(signal, wrap));
    await by.advance(30_000);
    expect([terms(), losses, outcome]).toEqual([2, ['taken'], {}]);
    controller.abort('enough');
    await by.advance(1000);
    expect(outcome).toEqual({ value: undefined });
    expect('value' in outcome).toBe(true);
  });

  it('lead throws the other errors of the work, and releases the lease', async () => {
    const early = leading(() => {
      throw new Error('mine');
    });
    await early.by.advance(10);
    expect(early.outcome.error).toEqual(new Error('mine'));
    expect(early.service.of('release').length).toBe(1);
    const late = leading((signal) => aborted(signal, () => new Error('mine')));
    await late.by.advance(30_000);
    expect([late.outcome.error, late.terms()]).toEqual([new Error('mine'), 1]);
  });
});

describe('credentials', () => {
  const withCredentials = (credentials: () => Promise<never>) => {
    const by = new ManualSurroundings();
    const sent: unknown[] = [];
    const fetch = async (url: unknown) => {
      sent.push(url);
      throw new Error('nothing is sent');
    };
    const options = { endpoint: 'http://127.0.0.1:1', region: 'us-east-1', credentials, fetch, surroundings: by };
    return { by, sent, holdfast: new Holdfast({ ...options, holder: 'x' }) };
  };

  it('a call with credentials that never come ends without an answer', async () => {
    const { by, sent, holdfast } = withCredentials(() => new Promise(() => {}));
    const outcome = holdfast.readLease('k', {}, { timeoutMs: 15_000 }).catch((error) => error);
    await by.advance(40_000);
    expect(await outcome).toMatchObject({ code: 'Unreachable' });
    expect([sent, by.timers]).toEqual([[], []]);
  });

  it('a call with credentials that throw ends with their error', async () => {
    const mine = new Error('no profile');
    const { sent, holdfast } = withCredentials(() => Promise.reject(mine));
    await expect(holdfast.acquire('k', { waitMs: 10_000 })).rejects.toBe(mine);
    await settled();
    expect(sent).toEqual([]);
  });
});
