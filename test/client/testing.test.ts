import { describe, expect, it, vi } from 'vitest';
import {
  Holdfast,
  type HoldfastOptions,
  isHoldfastError,
  type Transport,
  unreachable,
} from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { undocumented } from '../../contract/conformance.ts';
import { scenario } from './scenario.ts';

/** The transport, with each answer compared with the contract. */
const documented =
  (transport: Transport): Transport =>
  async (operation, ...rest) => {
    const body = await transport(operation, ...rest).catch((error: unknown) => {
      if (isHoldfastError(error) && !['InvalidRequest', 'Refused'].includes(error.code)) {
        const { name, ...body } = { ...error };
        const fault = undocumented(operation, { body });
        if (fault) throw new Error(fault);
      }
      throw error;
    });
    const fault = undocumented(operation, { body });
    if (fault) throw new Error(fault);
    return body;
  };

/** A service in memory, its clients by name, and the clock of both. */
function setting(more: Partial<HoldfastOptions> = {}) {
  const clock = new ManualClock();
  const service = new MemoryService({ surroundings: clock });
  const transport = documented(service.transport);
  const client = (holder = 'test') =>
    new Holdfast({ ...more, transport, surroundings: clock, holder } as HoldfastOptions);
  return { clock, service, client, holdfast: client() };
}

const errorOf = (act: Promise<unknown>) =>
  act.then(
    (value) => ({ value }),
    (error: unknown) => error,
  );

it('the service in memory plays the scenario that every transport plays', async () => {
  const service = new MemoryService();
  const transport = documented(service.transport);
  const party = (holder: string) => new Holdfast({ transport, holder });
  const parties = { holdfast: party('scenario'), other: party('other'), isHoldfastError };
  expect((await scenario({ ...parties, everything: false })).length).toBe(12);
});

describe('the service in memory', () => {
  it('the service in memory refuses a key that a test gave to another holder', async () => {
    const { service, holdfast } = setting();
    const release = service.hold('nightly', { holder: 'other', ttlSeconds: 30 });
    const refusal = { code: 'LeaseHeld', key: 'nightly', holder: 'other', retryAfterMs: 30_000 };
    expect(await errorOf(holdfast.withLease('nightly', () => 'never'))).toMatchObject(refusal);
    release();
    expect(await holdfast.withLease('nightly', () => 'done')).toBe('done');
  });

  it('the service in memory lists active keys, and the grant of a given holder', async () => {
    const { service, holdfast } = setting();
    service.hold('lease');
    service.hold('freed')();
    service.hold('shared', { limit: 3, holder: 'one', ttlSeconds: 30 });
    service.hold('shared', { limit: 3, holder: 'two' });
    service.hold('empty', { limit: 3 })();
    const rows = async (options: object) => {
      const found: { key: string; holder: string | null }[] = [];
      for await (const row of holdfast.leases(options)) found.push(row);
      return found;
    };
    const keys = async (options: object) => (await rows(options)).map(({ key }) => key);
    expect(await keys({})).toEqual(['empty', 'freed', 'lease', 'shared']);
    expect(await keys({ state: 'active' })).toEqual(['lease', 'shared']);
    expect(await keys({ state: 'free' })).toEqual(['empty']);
    expect(await rows({ holder: 'two' })).toMatchObject([
      { key: 'shared', holder: 'two', holders: 2, used: 2, limit: 3 },
    ]);
  });

  it('the service in memory answers a break of another fence with Conflict', async () => {
    const { clock, service, holdfast, client } = setting();
    service.hold('nightly', { holder: 'other' });
    const waiting = errorOf(client('waiter').acquire('nightly', { waitMs: 5000 }));
    await clock.advance(100);
    const read = await holdfast.readLease('nightly', { waiters: true });
    expect(read).toMatchObject({ waiting: 1, waiters: [{ kind: 'caller', holder: 'waiter', ticket: '000000000001' }] });
    const wrong = await errorOf(holdfast.call('breakLease', { key: 'nightly', fence: 7 }));
    expect(wrong).toMatchObject({ code: 'Conflict', actual: { holder: 'other', fence: 1 } });
    await clock.advance(10_000);
    await waiting;
  });

  it('the service in memory holds a caller that can sleep if it waits', async () => {
    const { clock, service, holdfast } = setting();
    service.hold('nightly');
    const asked = { key: 'nightly', holder: 'me', requestId: 'one', sleepMs: 1000 };
    for (const wrong of [asked, { ...asked, waitSeconds: 1, fair: false }])
      expect(await errorOf(holdfast.call('acquire', wrong))).toMatchObject({
        code: 'InvalidRequest',
        issues: [{ path: 'sleepMs' }],
      });
    const held = errorOf(holdfast.call('acquire', { ...asked, waitSeconds: 1 }));
    await clock.advance(1000);
    expect(await held).toMatchObject({ code: 'LeaseHeld', place: 1, comeBackMs: 0, keptMs: 5000 });
  });

  it('the service in memory grants a lease to waiting callers in order of arrival', async () => {
    const { clock, service, client } = setting();
    const release = service.hold('nightly');
    const order: string[] = [];
    const waiting = ['a', 'b', 'c'].map(async (holder) => {
      await client(holder).withLease('nightly', { waitMs: 60_000 }, () => order.push(holder));
    });
    await clock.advance(30_000);
    expect(order).toEqual([]);
    release();
    await clock.advance(10);
    await Promise.all(waiting);
    expect(order).toEqual(['a', 'b', 'c']);
  });

  it.each(['taken', 'broken', 'unknown'] as const)(
    'a holder of the service in memory can lose its lease: %s',
    async (reason) => {
      const { clock, service, holdfast } = setting();
      const lease = await holdfast.acquire('nightly', { ttlSeconds: 60 });
      service.lose('nightly', reason);
      expect(lease.signal.aborted).toBe(false);
      await clock.advance(20_000);
      expect(lease.signal.reason).toMatchObject({ code: 'LeaseLost', reason });
      const next = await errorOf(holdfast.acquire('nightly'));
      expect(next).toMatchObject(
        reason === 'taken' ? { code: 'LeaseHeld', holder: 'another' } : { value: { fence: 2 } },
      );
    },
  );

  it('the service in memory refuses the next heartbeat of a holder that must stop', async () => {
    const { clock, holdfast } = setting();
    const lease = await holdfast.acquire('nightly', { ttlSeconds: 60 });
    await holdfast.breakLease({ key: 'nightly', fence: lease.fence, wait: true });
    expect(lease.held).toBe(true);
    await clock.advance(20_000);
    expect(lease.lost).toMatchObject({ code: 'LeaseLost', reason: 'broken' });
  });

  it('the service in memory keeps a lease and a slot of one key apart', async () => {
    const { clock, holdfast } = setting();
    const lease = await holdfast.acquire('nightly', { ttlSeconds: 10 });
    const run = await holdfast.beginRun('nightly', { ttlSeconds: 10 });
    if (run.outcome !== 'run') throw new Error(run.outcome);
    await clock.advance(60_000);
    expect([lease.held, run.run.held]).toEqual([true, true]);
    await run.release();
    expect(lease.held).toBe(true);
    expect(await holdfast.readLease('nightly')).toMatchObject({ state: 'held' });
    await lease.release();
  });

  it('the service in memory refuses callers of a capped key, and says why', async () => {
    const { clock, service, holdfast } = setting();
    const release = service.hold('render', { limit: 5, weight: 2 });
    await holdfast.cap({ key: 'render', limit: 3, reason: 'slow' });
    const permit = await holdfast.acquire('render', { limit: 5, ttlSeconds: 600 });
    const cap = { limit: 3, rates: null, reason: 'slow', by: null, until: null };
    const retryAfterMs = 600_000;
    expect(await errorOf(holdfast.acquire('render', { limit: 5 }))).toMatchObject({
      code: 'LeaseHeld',
      cap,
      retryAfterMs,
    });
    const [row] = ((await holdfast.readLeases({ state: 'active' })) as { leases: unknown[] }).leases;
    expect(row).toMatchObject({ key: 'render', used: 3, cap });
    release();
    await permit.release();
    expect((await holdfast.acquire('render', { limit: 5, weight: 4 })).fence).toBe(3);
    const paused = await holdfast.cap({ key: 'idle', limit: 0, reason: 'down', forSeconds: 60 });
    expect(paused).toMatchObject({ cap: { limit: 0 }, before: null, used: 0, waiting: 0 });
    expect(await errorOf(holdfast.acquire('idle'))).toMatchObject({ cap: { limit: 0 }, retryAfterMs: 60_000 });
    expect(await holdfast.readLease('idle')).toMatchObject({ state: 'free', cap: { reason: 'down' } });
    await clock.advance(60_000);
    expect(await holdfast.readLease('idle')).not.toHaveProperty('cap');
    await holdfast.acquire('idle');
  });

  it.each(['lifted', 'ended'])('the service in memory serves the line of a key whose pause is %s', async (how) => {
    const { clock, service, holdfast, client } = setting();
    const release = service.hold('nightly');
    const waiting = client('waiter').acquire('nightly', { waitMs: 600_000 });
    await clock.advance(100);
    await holdfast.cap({ key: 'nightly', limit: 0, reason: 'down', ...(how === 'ended' && { forSeconds: 50 }) });
    release();
    await clock.advance(40_000);
    expect(await holdfast.readLease('nightly')).toMatchObject({ state: 'released', waiting: 1 });
    if (how === 'ended') await clock.advance(20_000);
    else
      expect(await holdfast.cap({ key: 'nightly', limit: null })).toMatchObject({
        cap: null,
        before: { limit: 0 },
        waiting: 1,
      });
    expect((await waiting).held).toBe(true);
  });

  it('the service in memory pauses the slots of a key apart from its lease', async () => {
    const { holdfast } = setting();
    await holdfast.cap({ key: 'nightly', limit: 0, reason: 'down', kind: 'once' });
    expect(await errorOf(holdfast.once('nightly', () => 1))).toMatchObject({ code: 'LeaseHeld', cap: { limit: 0 } });
    await (await holdfast.acquire('nightly')).release();
    await holdfast.cap({ key: 'nightly', limit: null, kind: 'once' });
    expect(await holdfast.once('nightly', () => 1)).toMatchObject({ outcome: 'ran' });
  });

  it('the service in memory serves a moved waiter first, once', async () => {
    const { clock, service, holdfast, client } = setting();
    const release = service.hold('deploy');
    const order: string[] = [];
    const waiting = ['a', 'b', 'c', 'd'].map(async (holder) => {
      await client(holder).withLease('deploy', { waitMs: 60_000 }, () => order.push(holder));
    });
    await clock.advance(100);
    const read = async () => (await holdfast.readLease('deploy', { waiters: true })).waiters ?? [];
    const [, b, c] = (await read()).map(({ ticket }) => ticket);
    const move = (ticket = '') => holdfast.runNext({ key: 'deploy', ticket });
    expect(await move(b)).toEqual({ key: 'deploy', ticket: b, moved: true, before: null });
    expect(await move(c)).toMatchObject({ moved: true, before: b });
    expect((await read()).map(({ holder, movedBy }) => [holder, movedBy])).toEqual([
      ['c', null],
      ...['a', 'b', 'd'].map((holder) => [holder, undefined]),
    ]);
    await clock.advance(30_000);
    release();
    await clock.advance(10);
    await Promise.all(waiting);
    expect(order).toEqual(['c', 'a', 'b', 'd']);
    expect(await move(c)).toMatchObject({ moved: false, reason: 'unknown' });
  });

  it('the service in memory keeps a limit, and names the holders', async () => {
    const { holdfast, service } = setting();
    service.hold('render', { limit: 3, weight: 2, holder: 'other' });
    const permit = await holdfast.acquire('render', { limit: 3 });
    const refusal = { code: 'LeaseHeld', used: 3, limit: 3, holders: [{ holder: 'test' }, { weight: 2 }] };
    expect(await errorOf(holdfast.acquire('render', { limit: 3 }))).toMatchObject(refusal);
    expect(await holdfast.readLease('render')).toMatchObject({
      ...{ state: 'held', used: 3, limit: 3, limitBy: 'test' },
      holders: [{ holder: 'other' }, { holder: 'test' }],
    });
    await permit.release();
    service.lose('render');
    expect(await errorOf(holdfast.acquire('render', { limit: 3 }))).toMatchObject({
      ...{ code: 'LeaseHeld', holder: 'another', used: 1, limit: 3 },
    });
  });

  it('the service in memory grants a key without limit to only one caller', async () => {
    const { clock, holdfast, service } = setting();
    const release = service.hold('render', { limit: 3, holder: 'other' });
    const refusal = { code: 'LeaseHeld', used: 1, limit: 3, holders: [{ holder: 'other', mode: 'shared' }] };
    expect(await errorOf(holdfast.acquire('render'))).toMatchObject(refusal);
    const waiting = holdfast.acquire('render', { waitMs: 60_000 });
    await clock.advance(100);
    expect(() => service.hold('render', { limit: 3 })).toThrow('render has other waiters in line');
    release();
    await clock.advance(10);
    const lease = await waiting;
    const holders = [{ holder: 'test', mode: 'exclusive', weight: 1 }];
    expect(await holdfast.readLease('render')).toMatchObject({ holder: 'test', used: 1, limit: null, holders });
    expect(() => service.hold('render', { limit: 3 })).toThrow('is held by test');
    await lease.release();
    expect(await holdfast.readLease('render')).toMatchObject({ state: 'released', holder: 'test', holders: [] });
  });

  it('the service in memory repeats the grant of a request whose answer was lost', async () => {
    const { clock, service } = setting();
    let isLost = false;
    const losing: Transport = async (operation, ...rest) => {
      const answer = await service.transport(operation, ...rest);
      if (isLost || operation !== 'acquire') return answer;
      isLost = true;
      throw unreachable('the connection was cut');
    };
    const holdfast = new Holdfast({ transport: losing, surroundings: clock, holder: 'test' });
    const acquiring = holdfast.acquire('nightly');
    await clock.advance(1000);
    expect((await acquiring).fence).toBe(1);
  });

  it('the service in memory withdraws an aborted wait', async () => {
    const { clock, service, holdfast } = setting();
    const release = service.hold('nightly');
    const controller = new AbortController();
    const waiting = errorOf(holdfast.acquire('nightly', { waitMs: 60_000, signal: controller.signal }));
    await clock.advance(1000);
    expect(await holdfast.readLease('nightly')).toMatchObject({ waiting: 1 });
    controller.abort('enough');
    expect(await waiting).toBe('enough');
    await clock.advance(10);
    expect(await holdfast.readLease('nightly')).toMatchObject({ waiting: 0 });
    release();
    expect(await holdfast.readLease('nightly')).toMatchObject({ state: 'released', holder: 'another' });
  });

  it('the service in memory refuses calls that it does not have, by name', async () => {
    const { holdfast } = setting();
    const refusal = { code: 'Refused', message: 'readNames is not a call of the service in memory' };
    expect(await errorOf(holdfast.readName('a'))).toMatchObject(refusal);
    expect(await errorOf(holdfast.park({ key: 'a', taskToken: 'b' }))).toMatchObject({ code: 'Refused' });
  });

  it('the service in memory runs on the fake timers of a test runner', async () => {
    vi.useFakeTimers();
    try {
      const service = new MemoryService();
      const holdfast = new Holdfast({ transport: service.transport, holder: 'test' });
      const lease = await holdfast.acquire('nightly');
      await vi.advanceTimersByTimeAsync(100_000);
      expect(lease.held).toBe(true);
      service.lose('nightly', 'broken');
      await vi.advanceTimersByTimeAsync(20_000);
      expect(lease.lost).toMatchObject({ reason: 'broken' });
    } finally {
      vi.useRealTimers();
    }
  });
});
