import { describe, expect, it } from 'vitest';
import { Holdfast, type HoldfastOptions, type Transport } from '../../clients/typescript/src/index.ts';
import { inOrder } from '../../clients/typescript/src/several.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';

function setting() {
  const clock = new ManualClock();
  const service = new MemoryService({ surroundings: clock });
  const sent: string[] = [];
  const noting: Transport = (operation, payload, ...rest) => {
    sent.push(`${operation} ${(payload as { key: string }).key}`);
    return service.transport(operation, payload, ...rest);
  };
  const client = (holder: string) =>
    new Holdfast({ transport: noting, surroundings: clock, holder } satisfies HoldfastOptions);
  const holdfast = client('test');
  const stateOf = async (key: string) => {
    const row = (await service.transport('readLeases', { key }, new AbortController().signal)) as { state: string };
    return row.state;
  };
  return { clock, service, sent, holdfast, client, stateOf };
}

const errorOf = (act: Promise<unknown>) =>
  act.then(
    (value) => ({ value }),
    (error: unknown) => error,
  );

const pair = [{ key: 'openai' }, { key: 'openai/tenant-a' }];

describe('the order of several keys', () => {
  it('deeper paths come first in the order of keys, then the UTF-8 bytes decide', () => {
    const keys = ['b', 'a', 'a/b', 'a/b/c', 'z/z', '\uff5e', '\u{10000}', 'A', ''];
    const sorted = ['a/b/c', 'a/b', 'z/z', '', 'A', 'a', 'b', '\uff5e', '\u{10000}'];
    expect(inOrder(keys.map((key) => ({ key }))).map(({ key }) => key)).toEqual(sorted);
    expect(inOrder(keys.reverse().map((key) => ({ key }))).map(({ key }) => key)).toEqual(sorted);
    // UTF-16, which JavaScript compares by, has another order.
    expect('\u{10000}' < '\uff5e').toBe(true);
  });
});

describe('withLeases', () => {
  it("withLeases acquires in order, releases in reverse, and returns the work's result", async () => {
    for (const entries of [pair, pair.toReversed()]) {
      const { holdfast, sent } = setting();
      expect(await holdfast.withLeases(entries, () => 'done')).toBe('done');
      expect(sent).toEqual([
        ...['acquire openai/tenant-a', 'acquire openai', 'release openai', 'release openai/tenant-a'],
      ]);
    }
  });

  it('withLeases gives the work every fence by key, and the leases in order', async () => {
    const { holdfast, service } = setting();
    service.hold('openai')();
    const seen = await holdfast.withLeases(pair, ({ fences, leases, held, lost, remainingMs }) => {
      return { fences, keys: leases.map(({ key }) => key), held, lost, remainingMs };
    });
    expect(seen).toEqual({
      ...{ fences: { openai: 2, 'openai/tenant-a': 1 }, keys: ['openai', 'openai/tenant-a'] },
      ...{ held: true, lost: undefined, remainingMs: 59_000 },
    });
  });

  it('withLeases passes on the common options, and those of an entry instead', async () => {
    const { holdfast, service } = setting();
    service.hold('openai', { limit: 20, weight: 15 });
    const entries = [
      { key: 'openai', limit: 20, weight: 5 },
      { key: 'openai/a', ttlSeconds: 5 },
    ];
    await holdfast.withLeases(entries, { ttlSeconds: 30, holder: 'me' }, async ({ leases: [total, tenant] }) => {
      expect([total?.holder, total?.remainingMs, tenant?.remainingMs]).toEqual(['me', 29_000, 4500]);
      expect(await holdfast.readLease('openai')).toMatchObject({ used: 20 });
    });
  });

  it('withLeases fails with the key that is refused, and releases the other leases', async () => {
    const { holdfast, service, stateOf, sent } = setting();
    service.hold('openai', { holder: 'other' });
    const error = await errorOf(holdfast.withLeases(pair, () => 'never'));
    expect(error).toMatchObject({ code: 'LeaseHeld', key: 'openai', holder: 'other' });
    expect(await stateOf('openai/tenant-a')).toBe('released');
    expect(sent.at(-1)).toBe('release openai/tenant-a');
  });

  it('withLeases waits for waitMs in all, and keeps its leases while it waits', async () => {
    const { clock, holdfast, service } = setting();
    const release = service.hold('openai/tenant-a');
    service.hold('openai');
    clock.after(20_000, release);
    const startedAt = clock.monotonicMs;
    let tookMs = 0;
    const outcome = errorOf(holdfast.withLeases(pair, { waitMs: 60_000, ttlSeconds: 5 }, () => 'never')).finally(() => {
      tookMs = clock.monotonicMs - startedAt;
    });
    await clock.advance(50_000);
    expect(await holdfast.readLease('openai/tenant-a')).toMatchObject({ state: 'held', holder: 'test' });
    await clock.advance(20_000);
    expect(await outcome).toMatchObject({ code: 'LeaseHeld', key: 'openai' });
    expect(tookMs).toBe(60_000);
  });

  it('withLeases asks once for each key if the time to wait has passed', async () => {
    const { clock, holdfast, service } = setting();
    clock.after(10_000, service.hold('openai/tenant-a'));
    const outcome = holdfast.withLeases(pair, { waitMs: 10_000 }, () => 'done');
    await clock.advance(11_000);
    expect(await outcome).toBe('done');
  });

  it('withLeases refuses two entries of one key before it asks for any', async () => {
    const { holdfast, sent } = setting();
    const twice = [...pair, { key: 'openai', limit: 5 }];
    const error = await errorOf(holdfast.withLeases(twice, () => 'never'));
    expect(error).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'key' }] });
    expect(String(error)).toContain('openai is in two entries');
    expect(sent).toEqual([]);
  });

  it.each(['openai', 'openai/tenant-a'])(
    'withLeases aborts its signal with the first loss, here of %s, and throws LeaseLost',
    async (key) => {
      const { clock, holdfast, service, stateOf } = setting();
      const outcome = errorOf(
        holdfast.withLeases(pair, async (held) => {
          service.lose(key, 'broken');
          await new Promise((resolve) => held.signal.addEventListener('abort', resolve));
          expect(held.signal.reason).toMatchObject({ code: 'LeaseLost', key, reason: 'broken' });
          expect([held.held, held.lost]).toMatchObject([false, { key }]);
          expect(() => held.assertHeld()).toThrow(`the lease of ${key} is no longer held`);
          return 'late';
        }),
      );
      await clock.advance(20_000);
      expect(await outcome).toMatchObject({ code: 'LeaseLost', key, reason: 'broken' });
      for (const { key: one } of pair) expect(await stateOf(one)).not.toBe('held');
    },
  );

  it('withLeases ends its wait if a lease that it has already is lost', async () => {
    const { clock, holdfast, service, stateOf } = setting();
    service.hold('openai');
    const outcome = errorOf(holdfast.withLeases(pair, { waitMs: 300_000 }, () => 'never'));
    await clock.advance(1000);
    service.lose('openai/tenant-a', 'broken');
    await clock.advance(20_000);
    expect(await outcome).toMatchObject({ code: 'LeaseLost', key: 'openai/tenant-a' });
    expect(await holdfast.readLease('openai')).toMatchObject({ waiting: 0 });
    expect(await stateOf('openai/tenant-a')).toBe('released');
  });

  it('withLeases checks the clocks when the signal is read, after a blocked event loop', async () => {
    const { clock, holdfast } = setting();
    const outcome = errorOf(
      holdfast.withLeases(pair, (held) => {
        const { signal } = held;
        clock.block(60_000);
        return [signal.aborted, held.held];
      }),
    );
    expect(await outcome).toMatchObject({ code: 'LeaseLost', reason: 'deadline' });
  });

  it('withLeases ends its wait, and aborts the work, by the signal in its options', async () => {
    const { clock, holdfast, service, stateOf } = setting();
    const release = service.hold('openai');
    const controller = new AbortController();
    const waiting = errorOf(holdfast.withLeases(pair, { waitMs: 60_000, signal: controller.signal }, () => 'never'));
    await clock.advance(1000);
    controller.abort('enough');
    await clock.advance(10);
    expect(await waiting).toBe('enough');
    expect(await stateOf('openai/tenant-a')).toBe('released');
    release();
    const second = new AbortController();
    const work = holdfast.withLeases(pair, { signal: second.signal }, ({ signal, held }) => {
      second.abort('enough');
      return [signal.aborted, signal.reason, held];
    });
    expect(await work).toEqual([true, 'enough', true]);
    expect(clock.timers).toEqual([]);
  });

  it("withLeases throws the work's own error, and releases its leases", async () => {
    const { holdfast, stateOf, clock } = setting();
    const mine = new Error('mine');
    expect(await errorOf(holdfast.withLeases(pair, () => Promise.reject(mine)))).toBe(mine);
    for (const { key } of pair) expect(await stateOf(key)).toBe('released');
    expect(clock.timers).toEqual([]);
  });

  it('withLeases runs the work without a lease for an empty list', async () => {
    const { holdfast, sent } = setting();
    expect(await holdfast.withLeases([], ({ held, fences }) => [held, fences])).toEqual([true, {}]);
    const signal = AbortSignal.abort('no');
    expect(await errorOf(holdfast.withLeases([], { signal }, () => 'never'))).toBe('no');
    expect(sent).toEqual([]);
  });

  it('withLeases cannot make two callers wait for each other, however keys are named', async () => {
    const { clock, client } = setting();
    const keys = ['a', 'b/c', 'b'];
    const done: string[] = [];
    const work = async (holder: string) => {
      await new Promise((resolve) => void clock.after(10, () => resolve(undefined)));
      done.push(holder);
    };
    const callers = Array.from({ length: 12 }, (_, at) => {
      const entries = [0, 1, 2].map((step) => ({ key: keys[(at * (1 + (at % 2)) + step) % 3] as string }));
      return client(`${at}`).withLeases(entries, { waitMs: Number.POSITIVE_INFINITY }, () => work(`${at}`));
    });
    for (let rounds = 0; done.length < 12 && rounds < 100; rounds++) await clock.advance(100);
    expect(done.length).toBe(12);
    await Promise.all(callers);
  });
});
