import { describe, expect, it } from 'vitest';
import {
  type AcquireOptions,
  Holdfast,
  type HoldfastEvent,
  isHoldfastError,
} from '../../clients/typescript/src/index.ts';
import { grantOf, ManualService, ManualSurroundings, type Sent, settled } from '../support/time/process-clock.ts';

/** A lease that has been acquired without delay, and whose heartbeats the test answers. */
async function held(options: AcquireOptions = {}) {
  const by = new ManualSurroundings();
  const service = new ManualService();
  const events: HoldfastEvent[] = [];
  const holdfast = new Holdfast({
    transport: service.transport,
    holder: 'tester',
    surroundings: by,
    onEvent: (event) => events.push(event),
  });
  const ttlMs = (options.ttlSeconds ?? 60) * 1000;
  const normal = ({ operation, payload }: Sent) => {
    if (operation === 'acquire') return grantOf(payload, ttlMs);
    if (operation === 'release') return { key: payload.key, released: true };
    return undefined;
  };
  service.reply = normal;
  const lease = await holdfast.acquire('nightly', options);
  return { by, service, events, holdfast, lease, normal, ttlMs };
}

const reasonOf = (error: unknown) => isHoldfastError(error, 'LeaseLost') && error.reason;

describe('the end of a lease', () => {
  it('a lease is lost before its deadline if heartbeats are not answered', async () => {
    const { by, lease, events, service } = await held();
    const { signal } = lease;
    let abortedAt = 0;
    signal.addEventListener('abort', () => {
      abortedAt = by.monotonicMs;
    });
    const grantedAt = by.monotonicMs;
    await by.advance(58_000);
    expect(lease.held).toBe(true);
    await by.advance(1500);
    expect(abortedAt - grantedAt).toBeGreaterThan(58_000);
    expect(abortedAt - grantedAt).toBeLessThan(60_000);
    expect(reasonOf(signal.reason)).toBe('deadline');
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LeaseLost', reason: 'deadline' }));
    expect(events.at(-1)).toMatchObject({ type: 'lost', key: 'nightly', fence: 7, reason: 'deadline' });
    expect(service.of('heartbeat').length).toBeGreaterThan(3);
    expect(service.of('heartbeat').at(-1)?.signal.aborted).toBe(true);
  });

  it('a lease is lost within a second after the machine has slept', async () => {
    const { by, lease } = await held();
    const { signal } = lease;
    by.suspend(60_000);
    let aborted = false;
    signal.addEventListener('abort', () => {
      aborted = true;
    });
    await by.advance(1000);
    expect(aborted).toBe(true);
    expect(lease.held).toBe(false);
  });

  it.each(['taken', 'released', 'unknown'])('a lease is lost when the service says so: %s', async (reason) => {
    const { by, lease, service } = await held();
    await by.advance(20_000);
    service.of('heartbeat')[0]?.fail('LeaseLost', { reason, holder: 'other' });
    await settled();
    expect(lease.held).toBe(false);
    expect(lease.lost).toMatchObject({ code: 'LeaseLost', key: 'nightly', reason, holder: 'other' });
    expect(await lease.release()).toBe(false);
    expect(service.of('release')).toEqual([]);
  });

  it('a lease is lost after maxHoldMs, and released when the work ends', async () => {
    const { by, lease, service, normal } = await held({ maxHoldMs: 100_000 });
    service.reply = (sent) => normal(sent) ?? grantOf(sent.payload);
    await by.advance(99_000);
    expect(lease.held).toBe(true);
    await by.advance(1000);
    expect(reasonOf(lease.lost)).toBe('maxHold');
    const beats = service.of('heartbeat').length;
    await by.advance(100_000);
    expect(service.of('heartbeat').length).toBe(beats);
    expect(await lease.release()).toBe(true);
  });
});

it('a maxHoldMs that is a function is called once, and counts from the grant', async () => {
  let asked = 0;
  const { by, lease, service, normal } = await held({
    maxHoldMs: () => {
      asked++;
      return 100_000;
    },
  });
  service.reply = (sent) => normal(sent) ?? grantOf(sent.payload);
  await by.advance(99_000);
  expect(lease.held).toBe(true);
  await by.advance(1000);
  expect(reasonOf(lease.lost)).toBe('maxHold');
  expect(asked).toBe(1);
});

describe('heartbeats', () => {
  it('heartbeats come at up to a third of the ttl, and extend the lease', async () => {
    const { by, lease, service, normal, events } = await held();
    const at: number[] = [];
    service.reply = (sent) => {
      if (sent.operation === 'heartbeat') at.push(by.monotonicMs);
      return normal(sent) ?? { ...grantOf(sent.payload), expiresAt: `beat ${at.length}` };
    };
    let draw = 0;
    by.chance = () => [0, 0.999][draw++ % 2] ?? 0;
    const grantedAt = by.monotonicMs;
    await by.advance(600_000);
    expect(lease.held).toBe(true);
    const pauses = at.map((moment, index) => moment - (at[index - 1] ?? grantedAt));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(16_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(20_001);
    expect(new Set(pauses.map(Math.round)).size).toBeGreaterThan(1);
    expect(lease.expiresAt).toBe(`beat ${at.length}`);
    expect(events.filter(({ type }) => type === 'beat').length).toBe(at.length);
  });

  it('heartbeats come every 20 seconds at least, so that a break is noticed soon', async () => {
    for (const ttlSeconds of [60, 61, 900, 86_400]) {
      const { by, lease, service, normal, ttlMs } = await held({ ttlSeconds });
      const at: number[] = [];
      service.reply = (sent) => {
        if (sent.operation === 'heartbeat') at.push(by.monotonicMs);
        return normal(sent) ?? grantOf(sent.payload, ttlMs);
      };
      by.chance = () => 0.999_999;
      const grantedAt = by.monotonicMs;
      await by.advance(300_000);
      expect(lease.held).toBe(true);
      const pauses = at.map((moment, index) => moment - (at[index - 1] ?? grantedAt));
      expect(pauses.length).toBeGreaterThanOrEqual(15);
      expect(Math.max(...pauses)).toBeLessThanOrEqual(20_001);
      expect(Math.min(...pauses)).toBeGreaterThanOrEqual(16_000);
      await lease.release();
    }
  });

  it('heartbeats are sent one at a time, and repeated until the deadline', async () => {
    const { by, lease, service } = await held();
    await by.advance(18_000);
    expect(service.of('heartbeat').length).toBe(1);
    await by.advance(4000);
    expect(service.of('heartbeat').length).toBe(1);
    for (let tries = 1; tries <= 5; tries++) {
      service.of('heartbeat').at(-1)?.fail('Unavailable', { retryAfterMs: 1000 });
      await by.advance(3000);
      expect(service.of('heartbeat').length).toBe(tries + 1);
    }
    expect(lease.held).toBe(true);
    service
      .of('heartbeat')
      .at(-1)
      ?.answer(grantOf({ key: 'nightly' }));
    await by.advance(15_000);
    expect(lease.held).toBe(true);
  });

  it('heartbeats are cut early enough for another try', async () => {
    const { by, service } = await held({ ttlSeconds: 3 });
    await by.advance(2700);
    expect(service.of('heartbeat').length).toBeGreaterThanOrEqual(3);
    for (const { signal } of service.of('heartbeat').slice(0, -1)) expect(signal.aborted).toBe(true);
  });

  it('heartbeats and held leases do not keep a process alive', async () => {
    const { by, service, normal } = await held();
    service.reply = (sent) => normal(sent) ?? grantOf(sent.payload);
    for (let seconds = 0; seconds < 60; seconds++) {
      await by.advance(1000);
      expect(by.timers.length).toBe(1);
      expect(by.timers.every(({ idle }) => idle)).toBe(true);
    }
  });

  it('heartbeats count from the moment they were sent', async () => {
    const { by, lease, service } = await held();
    await by.advance(18_000);
    by.block(4000);
    service.of('heartbeat')[0]?.answer(grantOf({ key: 'nightly' }));
    await settled();
    by.block(54_000);
    expect(lease.held).toBe(true);
    by.block(1500);
    expect(lease.held).toBe(false);
  });
});

describe('a release', () => {
  it('a release waits for the heartbeat under way, and does not start another', async () => {
    const { by, lease, service } = await held();
    await by.advance(20_000);
    const released = lease.release();
    await settled();
    expect(lease.held).toBe(false);
    expect(service.of('release')).toEqual([]);
    service.of('heartbeat')[0]?.answer(grantOf({ key: 'nightly' }));
    expect(await released).toBe(true);
    expect(service.of('release').map(({ payload }) => payload)).toEqual([{ key: 'nightly', leaseId: 'lease-1' }]);
    await by.advance(100_000);
    expect(service.of('heartbeat').length).toBe(1);
    expect(by.timers).toEqual([]);
    expect(lease.lost).toBeUndefined();
  });

  it('a release with its own time limit takes that time in place of releaseTimeoutMs', async () => {
    for (const [timeoutMs, tries] of [
      [200, 1],
      [20_000, 4],
    ] as const) {
      const { by, lease, service } = await held({ releaseTimeoutMs: 3000 });
      service.reply = (sent) => sent.fail('Unavailable');
      const startedAt = by.monotonicMs;
      let tookMs = 0;
      const released = lease.release(timeoutMs).finally(() => {
        tookMs = by.monotonicMs - startedAt;
      });
      await by.advance(30_000);
      expect(await released).toBe(false);
      expect(tookMs).toBeLessThanOrEqual(timeoutMs);
      expect(service.of('release').length).toBeGreaterThanOrEqual(tries);
    }
  });

  it('a release without an answer is tried again after half of its limit', async () => {
    const { by, lease, service } = await held({ releaseTimeoutMs: 3000 });
    service.reply = () => undefined;
    let ended = false;
    const released = lease.release().finally(() => {
      ended = true;
    });
    await by.advance(2000);
    expect(service.of('release').map(({ signal }) => signal.aborted)).toEqual([true, false]);
    await by.advance(2000);
    expect(ended).toBe(true);
    expect(await released).toBe(false);
  });

  it('a release is tried again, ends after its limit, and does not throw', async () => {
    const { by, lease, service, events } = await held({ releaseTimeoutMs: 3000 });
    service.reply = (sent) => sent.fail('Unavailable');
    const startedAt = by.monotonicMs;
    let doneAt = 0;
    const released = lease.release().finally(() => {
      doneAt = by.monotonicMs;
    });
    await by.advance(10_000);
    expect(await released).toBe(false);
    expect(doneAt - startedAt).toBeLessThanOrEqual(3000);
    expect(service.of('release').length).toBeGreaterThan(2);
    expect(events.at(-1)).toMatchObject({ type: 'released', confirmed: false, error: { code: 'Unavailable' } });
  });
});

describe('withLease', () => {
  const setting = async () => {
    const { by, service, holdfast, normal } = await held();
    service.sent = [];
    return { by, service, holdfast, normal };
  };

  it('withLease returns what the work returns, and sends two requests', async () => {
    const { service, holdfast } = await setting();
    expect(await holdfast.withLease('a', { ttlSeconds: 9 }, ({ fence }) => fence + 1)).toBe(8);
    expect(await holdfast.withLease('a', async () => 'x')).toBe('x');
    expect(service.sent.map(({ operation }) => operation)).toEqual(['acquire', 'release', 'acquire', 'release']);
    expect(service.sent[0]?.payload).toMatchObject({ key: 'a', holder: 'tester', ttlSeconds: 9, waitSeconds: 0 });
  });

  it("withLease throws the work's own error, even if the release fails", async () => {
    const { by, service, holdfast, normal } = await setting();
    service.reply = (sent) => (sent.operation === 'release' ? sent.fail('Unavailable') : normal(sent));
    const mine = new Error('mine');
    const outcome = holdfast.withLease('a', () => Promise.reject(mine)).catch((error) => error);
    await by.advance(10_000);
    expect(await outcome).toBe(mine);
    const fine = holdfast.withLease('a', () => 'fine');
    await by.advance(10_000);
    expect(await fine).toBe('fine');
  });

  it('withLease throws LeaseLost with the reason if the work succeeds after the loss', async () => {
    const { by, service, holdfast } = await setting();
    await expect(holdfast.withLease('a', () => by.block(60_000))).rejects.toMatchObject({
      code: 'LeaseLost',
      reason: 'deadline',
    });
    expect(service.of('release').length).toBe(1);
    await expect(holdfast.withLease('a', { maxHoldMs: 10 }, () => by.block(10))).rejects.toMatchObject({
      reason: 'maxHold',
    });
    const taken = holdfast.withLease('a', async () => {
      await by.advance(20_000);
      service.of('heartbeat').at(-1)?.fail('LeaseLost', { reason: 'taken', holder: 'x' });
      await settled();
    });
    await expect(taken).rejects.toMatchObject({ code: 'LeaseLost', reason: 'taken', holder: 'x' });
  });

  it('withLease releases a broken lease only when the work has stopped', async () => {
    const { by, service, holdfast } = await setting();
    let stop = () => {};
    const outcome = holdfast
      .withLease('a', async (lease) => {
        await new Promise<void>((resolve) => {
          stop = resolve;
        });
        lease.signal.throwIfAborted();
      })
      .catch((error) => error);
    await by.advance(20_000);
    service.of('heartbeat').at(-1)?.fail('LeaseLost', { reason: 'broken', holder: 'tester' });
    await by.advance(30_000);
    expect(service.of('release')).toEqual([]);
    stop();
    expect(await outcome).toMatchObject({ code: 'LeaseLost', reason: 'broken' });
    expect(service.of('release').map(({ payload }) => payload)).toEqual([{ key: 'a', leaseId: 'lease-1' }]);
  });

  it('withLease does not take a release by the work itself for a loss', async () => {
    const { service, holdfast } = await setting();
    expect(await holdfast.withLease('a', async (lease) => lease.release())).toBe(true);
    expect(service.of('release').length).toBe(1);
  });

  it("withLease aborts the lease's signal with the caller's, and holds until the end", async () => {
    const { service, holdfast } = await setting();
    const controller = new AbortController();
    const seen = await holdfast.withLease('a', { signal: controller.signal }, (lease) => {
      controller.abort('enough');
      return [lease.signal.aborted, lease.signal.reason, lease.held, service.of('release').length];
    });
    expect(seen).toEqual([true, 'enough', true, 0]);
    expect(service.of('release').length).toBe(1);
  });
});
