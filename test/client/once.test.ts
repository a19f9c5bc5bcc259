import { describe, expect, it } from 'vitest';
import {
  Holdfast,
  type HoldfastEvent,
  type OnceRun,
  type Transport,
  unreachable,
} from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { undocumented } from '../../contract/conformance.ts';

/** Loads the module that the client imports at its first slot: a manual clock does not wait for an import. */
await import('../../clients/typescript/src/once.ts');

/** What happens to a request: it never arrives, its answer is lost or takes 6 seconds, or a function of the test runs before it arrives. */
type Fault = 'refused' | 'answer lost' | 'answer late' | (() => unknown) | undefined;

/** A service in memory whose answers are compared with the contract, and its clients by name, on one clock. */
function setting() {
  const clock = new ManualClock();
  const service = new MemoryService({ surroundings: clock });
  const sent: { operation: string; payload: Record<string, unknown> }[] = [];
  const events: HoldfastEvent[] = [];
  const faults = { of: (_operation: string, _at: number): Fault => undefined };
  const transport: Transport = async (operation, payload, ...rest) => {
    const fault = faults.of(operation, sent.filter((one) => one.operation === operation).length);
    sent.push({ operation, payload: payload as Record<string, unknown> });
    if (fault === 'refused') throw unreachable('refused');
    if (typeof fault === 'function') await fault();
    const body = await service.transport(operation, payload, ...rest);
    expect(undocumented(operation, { body })).toBeUndefined();
    if (fault === 'answer lost') throw unreachable('lost');
    if (fault === 'answer late') await new Promise<void>((resolve) => void clock.after(6000, resolve));
    return body;
  };
  const client = (holder: string) =>
    new Holdfast({ transport, surroundings: clock, holder, onEvent: (event) => events.push(event) });
  return { clock, service, sent, events, faults, client, one: client('one'), other: client('other') };
}

const errorOf = (act: Promise<unknown>) =>
  act.then(
    (value) => ({ value }),
    (error: unknown) => error,
  );

const operations = ({ sent }: ReturnType<typeof setting>) => sent.map(({ operation }) => operation);

describe('once', () => {
  it('holdfast.once runs the work once, and gives a second caller the same result', async () => {
    const world = setting();
    const first = await world.one.once('backup', { per: '1d' }, ({ slot, fence }) => ({ slot, fence }));
    expect(first).toEqual({
      ...{ outcome: 'ran', slot: '2026-01-01', result: { slot: '2026-01-01', fence: 1 } },
      ...{ fence: 1, by: 'one', stored: true },
    });
    const at = new Date(world.clock.wallMs).toISOString();
    const second = await world.other.once('backup', { per: '1d' }, () => 'never');
    expect(second).toEqual({ outcome: 'done', slot: '2026-01-01', result: first.result, fence: 1, by: 'one', at });
    expect(operations(world)).toEqual(['onceBegin', 'onceComplete', 'onceBegin']);
    expect(world.clock.timers).toEqual([]);
  });

  it('holdfast.once works for the day and for the week of a time zone', async () => {
    const { one, sent } = setting();
    const zone = 'America/New_York';
    expect(await one.once('daily', { per: '1d', zone }, ({ slot }) => slot)).toMatchObject({ slot: '2025-12-31' });
    expect(await one.once('weekly', { per: '1w', zone }, ({ slot }) => slot)).toMatchObject({ slot: '2026-W01' });
    expect(sent[0]?.payload).toMatchObject({ per: '1d', zone });
  });

  it('holdfast.once throws a TypeError that names the zone, before anything is sent', async () => {
    const world = setting();
    const error = await errorOf(world.one.once('daily', { per: '1d', zone: 'Europe/Berln' }, () => 'never'));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: 'zone must be an IANA name such as Europe/Berlin, not Europe/Berln' });
    expect(operations(world)).toEqual([]);
  });

  it('holdfast.once fails with InvalidRequest for seven days, even in memory', async () => {
    expect(await errorOf(setting().one.once('weekly', { per: '7d' }, () => 'never'))).toMatchObject({
      ...{ code: 'InvalidRequest', issues: [{ path: 'per', message: 'must be 1w: a week begins on Monday' }] },
    });
  });

  it.each([
    ['a number', [{}, 5]],
    ['undefined', [{}, undefined]],
    ['left out', [{}]],
    ['a promise', [Promise.resolve(1)]],
  ])('holdfast.once throws TypeError and does not begin if the work is %s', async (_, rest) => {
    const world = setting();
    const once = world.one.once.bind(world.one) as (...given: unknown[]) => Promise<unknown>;
    expect(await errorOf(once('backup', ...rest))).toBeInstanceOf(TypeError);
    expect(operations(world)).toEqual([]);
  });

  it.each([
    ['a run that succeeds', false],
    ['a run that fails', true],
  ])('holdfast.once works for its own period even if it waits longer behind %s', async (_, fails) => {
    const { clock, client } = setting();
    clock.wallMs = Date.parse('2026-01-01T23:58:00Z');
    const ran: string[] = [];
    const backup = (name: string) => (run: OnceRun) =>
      new Promise<string>((resolve, reject) => {
        ran.push(`${name} ${run.slot}`);
        clock.after(200_000, () => (fails && name === 'a' ? reject(new Error('disk full')) : resolve(name)));
      });
    const options = { per: '1d', waitMs: 600_000 };
    const answers = ['a', 'b', 'c'].map((name) => errorOf(client(name).once('backup', options, backup(name))));
    await clock.advance(1_000_000);
    expect(ran).toEqual(fails ? ['a 2026-01-01', 'b 2026-01-01'] : ['a 2026-01-01']);
    expect((await Promise.all(answers)).at(-1)).toMatchObject({ value: { outcome: 'done', slot: '2026-01-01' } });
    clock.wallMs = Date.parse('2026-01-02T23:55:00Z');
    const next = client('c').once('backup', { per: '1d' }, ({ slot }) => slot);
    expect(await next).toMatchObject({ outcome: 'ran', slot: '2026-01-02' });
  });

  it('a holdfast.once that asks again after a late grant keeps its period', async () => {
    const world = setting();
    const { clock, one, faults } = world;
    clock.wallMs = Date.parse('2026-01-01T23:59:57Z');
    // The answer of the first call is there when its ttl is over.
    faults.of = (operation, at) => (operation === 'onceBegin' && at === 0 ? 'answer late' : undefined);
    const running = one.once('backup', { per: '1d', ttlSeconds: 5 }, ({ slot }) => slot);
    await clock.advance(60_000);
    expect(await running).toMatchObject({ outcome: 'ran', result: '2026-01-01' });
    expect(operations(world).filter((operation) => operation === 'onceBegin')).toHaveLength(2);
  });

  it('holdfast.once frees the slot if the work throws, and throws its error', async () => {
    const world = setting();
    const boom = new Error('boom');
    // Lambda freezes the process as soon as the handler has thrown, so the release must have ended before.
    world.faults.of = (operation) =>
      operation === 'release' ? () => new Promise<void>((resolve) => void world.clock.after(1000, resolve)) : undefined;
    const failed = errorOf(world.one.once('backup', {}, () => Promise.reject(boom)));
    await world.clock.advance(900);
    expect(await Promise.race([failed, 'not yet'])).toBe('not yet');
    await world.clock.advance(200);
    expect(await failed).toBe(boom);
    expect(operations(world)).toEqual(['onceBegin', 'release']);
    const answer = await world.other.once('backup', {}, ({ previous }) => previous);
    expect(answer).toMatchObject({ outcome: 'ran', result: { holder: 'one', ended: 'released' }, by: 'other' });
  });

  it('holdfast.once throws LeaseHeld while another caller works, and waits for its result with waitMs', async () => {
    const { clock, one, other } = setting();
    const running = one.once('backup', {}, () => new Promise((resolve) => clock.after(3000, () => resolve('hello'))));
    await clock.advance(0);
    expect(await errorOf(other.once('backup', {}, () => 'never'))).toMatchObject({ code: 'LeaseHeld', holder: 'one' });
    const waiting = other.once('backup', { waitMs: 10_000 }, () => 'never');
    await clock.advance(3500);
    expect(await running).toMatchObject({ outcome: 'ran', result: 'hello' });
    expect(await waiting).toMatchObject({ outcome: 'done', result: 'hello', by: 'one' });
  });

  it('holdfast.once stores work whose lease expired while the event loop was blocked', async () => {
    const { clock, events, one, other } = setting();
    const blocked = await one.once('backup', { ttlSeconds: 10 }, (run) => {
      run.assertHeld();
      clock.block(11_000);
      return 'of the first';
    });
    expect(blocked).toMatchObject({ outcome: 'ran', result: 'of the first', stored: true });
    expect(events.map(({ type }) => type)).toEqual(['acquired', 'released']);
    expect(await other.once('backup', {}, () => 'never')).toMatchObject({ outcome: 'done', result: 'of the first' });
  });

  it('holdfast.once stores work that finished after a loss which the work did not watch', async () => {
    const { clock, events, one, other, faults } = setting();
    faults.of = (operation) => (operation === 'heartbeat' ? 'refused' : undefined);
    const charge = () => new Promise((resolve) => void clock.after(8000, () => resolve('receipt')));
    const running = one.once('order/7', { ttlSeconds: 5 }, charge);
    await clock.advance(9000);
    expect(await running).toMatchObject({ outcome: 'ran', result: 'receipt' });
    expect(events.filter(({ type }) => type === 'lost')).toMatchObject([{ reason: 'deadline' }]);
    expect(await other.once('order/7', {}, () => 'never')).toMatchObject({ outcome: 'done', result: 'receipt' });
  });

  it('holdfast.once does not store blocked work whose slot another caller has taken', async () => {
    const { clock, service, one } = setting();
    const { signal } = new AbortController();
    const late = errorOf(
      one.once('backup', { ttlSeconds: 10 }, async () => {
        clock.block(11_000);
        await service.transport('onceBegin', { key: 'backup', holder: 'other' }, signal);
        return 'late';
      }),
    );
    expect(await late).toMatchObject({ code: 'LeaseLost', reason: 'taken' });
  });

  it("holdfast.once does not store work that the caller's signal stopped", async () => {
    const { one, other } = setting();
    const stop = new AbortController();
    const half = errorOf(
      one.once('backup', { signal: stop.signal }, async ({ signal }) => {
        stop.abort(new Error('the caller stops'));
        return signal.aborted ? 'half' : 'whole';
      }),
    );
    expect(await half).toMatchObject({ message: 'the caller stops' });
    expect(await other.once('backup', {}, () => 'whole')).toMatchObject({ outcome: 'ran', result: 'whole' });
  });

  it('holdfast.once does not overwrite the result of the next run after a loss', async () => {
    const world = setting();
    const { clock, one, other, faults } = world;
    faults.of = (operation) => (operation === 'heartbeat' ? 'refused' : undefined);
    let resume = () => {};
    let aborted = 0;
    const zombie = errorOf(
      one.once('backup', { ttlSeconds: 5 }, async (run) => {
        run.signal.addEventListener('abort', () => aborted++);
        await new Promise<void>((resolve) => {
          resume = resolve;
        });
        return 'of the zombie';
      }),
    );
    await clock.advance(6000);
    expect(aborted).toBe(1);
    expect(await other.once('backup', {}, () => 'of the successor')).toMatchObject({ outcome: 'ran' });
    resume();
    await clock.advance(0);
    expect(await zombie).toMatchObject({ code: 'LeaseLost', reason: 'deadline' });
    expect(operations(world).filter((operation) => operation === 'onceComplete').length).toBe(1);
    expect(await other.readOnce({ key: 'backup' })).toMatchObject({ result: 'of the successor' });
  });

  it('holdfast.once throws LeaseLost if another caller has taken the slot', async () => {
    const { clock, service, one, other, faults } = setting();
    // The process is paused between the end of its work and the arrival of its result.
    faults.of = (operation) => {
      if (operation !== 'onceComplete') return undefined;
      clock.block(5000);
      return () => service.transport('onceBegin', { key: 'backup', holder: 'other' }, new AbortController().signal);
    };
    const late = await errorOf(one.once('backup', { ttlSeconds: 2 }, () => 'late'));
    expect(late).toMatchObject({ code: 'LeaseLost', reason: 'taken' });
    expect(await other.readOnce({ key: 'backup' })).toMatchObject({ state: 'held', holder: 'other', done: null });
  });

  it('holdfast.once stores the result once if the answer of the first try is lost', async () => {
    const world = setting();
    world.faults.of = (_operation, at) => (at === 0 ? 'answer lost' : undefined);
    const running = world.one.once('backup', {}, () => 'hello');
    await world.clock.advance(10_000);
    expect(await running).toMatchObject({ outcome: 'ran', result: 'hello', stored: true });
    const ids = world.sent.filter(({ operation }) => operation === 'onceBegin').map(({ payload }) => payload.requestId);
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
  });

  it.each(['answer lost', 'refused'] as const)(
    'holdfast.once says that the slot may be done, and does not release it: %s',
    async (fault) => {
      const world = setting();
      world.faults.of = (operation) => (operation === 'onceComplete' ? fault : undefined);
      const running = errorOf(world.one.once('backup', {}, () => 'hello'));
      await world.clock.advance(60_000);
      expect(await running).toMatchObject({
        ...{ code: 'OutcomeUnknown', key: 'backup', cause: { code: 'Unreachable' } },
        message: expect.stringContaining('the work has run, and slot - of backup may or may not be done: '),
      });
      expect(world.events.filter(({ type }) => type === 'released')).toMatchObject([
        { key: 'backup', confirmed: false, error: { code: 'OutcomeUnknown' } },
      ]);
      expect(operations(world)).not.toContain('release');
      world.faults.of = () => undefined;
      const { outcome } = await world.other.once('backup', {}, () => 'again');
      expect(outcome).toBe(fault === 'refused' ? 'ran' : 'done');
    },
  );

  it.each([
    [{}, 30_000],
    [{ timeoutMs: 8000 }, 8000],
    [{ timeoutMs: 0 }, 5000],
    [{ timeoutMs: 0, releaseTimeoutMs: 500 }, 500],
  ])('holdfast.once with %j tries to store the result for at most %i ms', async (options, maxMs) => {
    const world = setting();
    // The connection is there, and no answer comes.
    world.faults.of = (operation) => (operation === 'onceComplete' ? () => new Promise(() => {}) : undefined);
    let endedMs: number | undefined;
    void errorOf(world.one.once('backup', { ttlSeconds: 600, ...options }, () => 'hello')).then(() => {
      endedMs = world.clock.monotonicMs;
    });
    const fromMs = world.clock.monotonicMs;
    for (let ms = 0; ms < 60_000 && endedMs === undefined; ms += 250) await world.clock.advance(250);
    expect((endedMs ?? Number.POSITIVE_INFINITY) - fromMs).toBeLessThanOrEqual(maxMs + 4000);
    expect((endedMs ?? 0) - fromMs).toBeGreaterThanOrEqual(maxMs / 2);
  });

  it('holdfast.once says that the slot may be done even after the next slot', async () => {
    const { clock, one, other, faults } = setting();
    let tries = 0;
    faults.of = (operation) => (operation === 'onceComplete' && ++tries === 1 ? 'answer lost' : undefined);
    const first = errorOf(one.once('backup', { slot: '1' }, () => 'hello'));
    await clock.advance(0);
    expect(await other.once('backup', { slot: '2' }, () => 'next')).toMatchObject({ outcome: 'ran' });
    await clock.advance(10_000);
    expect(await first).toMatchObject({ code: 'OutcomeUnknown', key: 'backup' });
    expect(tries).toBe(3);
  });

  it('holdfast.once takes up a run again whose answers were all lost', async () => {
    const world = setting();
    world.faults.of = (operation, at) => (operation === 'onceBegin' && at < 2 ? 'answer lost' : undefined);
    const failed = errorOf(world.one.once('backup', { timeoutMs: 0 }, () => 'never'));
    await world.clock.advance(1000);
    expect(await failed).toMatchObject({ code: 'Unreachable' });
    await world.clock.advance(5000);
    expect(operations(world)).toEqual(['onceBegin', 'onceBegin', 'onceBegin', 'release']);
    expect(await world.other.once('backup', {}, () => 'ran')).toMatchObject({ outcome: 'ran' });
  });

  it('holdfast.once releases a run that arrives after its caller has aborted', async () => {
    const world = setting();
    const { clock, one, other } = world;
    const running = one.once('backup', {}, () => new Promise(() => {})).catch(() => {});
    await clock.advance(0);
    const controller = new AbortController();
    const waiting = errorOf(other.once('backup', { waitMs: 60_000, signal: controller.signal }, () => 'never'));
    await clock.advance(2000);
    controller.abort(new Error('enough'));
    expect(await waiting).toMatchObject({ message: 'enough' });
    const { fence } = (await other.readOnce({ key: 'backup' })) as { fence: number };
    await other.breakLease({ key: 'backup', fence, kind: 'once' });
    await clock.advance(30_000);
    expect(await other.readOnce({ key: 'backup' })).toMatchObject({ state: 'released', holder: 'other' });
    void running;
  });

  const cycle: Record<string, unknown> = {};
  cycle.itself = cycle;
  it.each([
    ['undefined', undefined],
    ['a cycle', cycle],
    ['a BigInt', 1n],
    ['5,000 bytes', 'x'.repeat(5000)],
  ])('holdfast.once completes the slot without a result if the result is %s', async (_, result) => {
    const { one, other } = setting();
    expect(await one.once('backup', {}, () => result)).toMatchObject({ outcome: 'ran', result, stored: false });
    expect(await other.once('backup', {}, () => 'never')).toMatchObject({ outcome: 'done', result: null });
  });

  it('holdfast.once does not have the option to bind a run to its execution', async () => {
    const { one } = setting();
    // @ts-expect-error The types refuse `bound` before the service does.
    expect(await one.once('backup', { bound: true }, () => 1)).toMatchObject({ outcome: 'ran' });
  });

  it('holdfast.once and a lease of the same key do not affect each other', async () => {
    const { one, other } = setting();
    await one.withLease('backup', async () => {
      expect(await other.once('backup', {}, () => 'ran')).toMatchObject({ outcome: 'ran' });
    });
  });
});
