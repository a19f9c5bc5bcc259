import { describe, expect, it } from 'vitest';
import { Holdfast, type Transport, unreachable } from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { undocumented } from '../../contract/conformance.ts';

/** Loads the module that the client imports at its first rate: a manual clock does not wait for an import. */
await import('../../clients/typescript/src/rate.ts');

/** What happens to a request: its answer is lost, or takes some milliseconds. */
type Fault = 'answer lost' | number | undefined;

/** A service in memory whose answers are compared with the contract, and its clients, on one clock. */
function setting() {
  const clock = new ManualClock();
  const service = new MemoryService({ surroundings: clock });
  const sent: { operation: string; payload: Record<string, unknown> }[] = [];
  const faults = { of: (_operation: string, _at: number): Fault => undefined };
  const transport: Transport = async (operation, payload, ...rest) => {
    const fault = faults.of(operation, sent.filter((one) => one.operation === operation).length);
    sent.push({ operation, payload: payload as Record<string, unknown> });
    const body = await service.transport(operation, payload, ...rest);
    expect(undocumented(operation, { body })).toBeUndefined();
    if (fault === 'answer lost') throw unreachable('lost');
    if (fault) await new Promise<void>((resolve) => void clock.after(fault, resolve));
    return body;
  };
  const client = (holder: string) => new Holdfast({ transport, surroundings: clock, holder });
  const startedAt = clock.monotonicMs;
  /** Milliseconds since the begin of the test. */
  const at = () => clock.monotonicMs - startedAt;
  const paidMs = async (key = 'vendor') => {
    const { paidUntil } = (await client('reader').readRates({ key })) as { paidUntil: string | null };
    return paidUntil === null ? null : Date.parse(paidUntil) - (clock.wallMs - at());
  };
  return { clock, service, sent, faults, client, at, paidMs, holdfast: client('one') };
}

const errorOf = (act: Promise<unknown>) =>
  act.then(
    (value) => ({ value }),
    (error: unknown) => error,
  );

const operations = ({ sent }: ReturnType<typeof setting>) => sent.map(({ operation }) => operation);

/** A rate of one start in six seconds. */
const RATE = { limit: 10, per: '1m' };

describe('holdfast.rate', () => {
  it('holdfast.rate resolves at the starts of the callers, one after the other', async () => {
    const world = setting();
    const starts: number[] = [];
    const calls = ['a', 'b', 'c'].map(async (holder) => {
      const { waitedMs } = await world.client(holder).rate('vendor', { ...RATE, waitMs: 60_000 });
      starts.push(world.at());
      return waitedMs;
    });
    await world.clock.advance(20_000);
    expect(starts).toEqual([0, 6000, 12_000]);
    expect(await Promise.all(calls)).toEqual(starts);
    expect(operations(world)).toEqual(['rateReserve', 'rateReserve', 'rateReserve']);
    expect(world.clock.timers).toEqual([]);
  });

  it('holdfast.rate lets a burst start at once, and keeps the tightest of several rates', async () => {
    const { holdfast, clock, at } = setting();
    const rates = [
      { ...RATE, burst: 10 },
      { name: 'tokens', limit: 1000, per: '1m', units: 500, burst: 1000 },
    ];
    const starts: number[] = [];
    for (let calls = 0; calls < 4; calls++)
      void holdfast.rate('vendor', { rates, waitMs: Infinity }).then(() => starts.push(at()));
    await clock.advance(120_000);
    expect(starts).toEqual([0, 0, 30_000, 60_000]);
  });

  it('holdfast.rate is refused at once if the start is later than waitMs', async () => {
    const { holdfast, paidMs } = setting();
    await holdfast.rate('vendor', RATE);
    const refusal = { code: 'RateExceeded', key: 'vendor', boundBy: 'requests', retryAfterMs: 1000 };
    expect(await errorOf(holdfast.rate('vendor', { ...RATE, waitMs: 5000 }))).toMatchObject(refusal);
    expect(await paidMs()).toBe(6000);
  });

  it('holdfast.rate waits for waitMs at most while an operator has paused the key', async () => {
    const world = setting();
    const operator = world.client('operator');
    await operator.cap({ key: 'vendor', limit: 0, reason: 'down' });
    const started = world.holdfast.rate('vendor', { ...RATE, waitMs: 100_000 }).then(() => world.at());
    const refused = errorOf(world.client('two').rate('vendor', { ...RATE, waitMs: 30_000 })).then((error) => [
      (error as { code: string }).code,
      world.at(),
    ]);
    await world.clock.advance(50_000);
    expect(await refused).toEqual(['RateExceeded', 30_000]);
    await operator.cap({ key: 'vendor', limit: null });
    await world.clock.advance(50_000);
    expect(await started).toBe(60_000);
  });

  it('holdfast.rate waits a part of a second, which the service cannot count', async () => {
    const world = setting();
    const rate = { limit: 5, per: '1s' };
    await world.holdfast.rate('vendor', rate);
    expect(await errorOf(world.holdfast.rate('vendor', { ...rate, waitMs: 199 }))).toMatchObject({ retryAfterMs: 200 });
    const late = world.holdfast.rate('vendor', { ...rate, waitMs: 200 });
    await world.clock.advance(200);
    expect(await late).toMatchObject({ waitedMs: 200 });
    expect(operations(world)).toHaveLength(4);
  });

  it('holdfast.rate never starts early, even after a late answer or a lost one', async () => {
    const world = setting();
    const { clock, holdfast, faults, at } = world;
    await holdfast.rate('vendor', RATE);
    faults.of = (_, nth) => (nth === 1 ? 'answer lost' : nth === 2 ? 3000 : undefined);
    const starting = holdfast.rate('vendor', { ...RATE, waitMs: 60_000 }).then(at);
    await clock.advance(8000);
    // The service answered at 50 ms with a start 5950 ms later, and the answer took 3 seconds.
    clock.wallMs += 3_600_000;
    await clock.advance(4000);
    expect(await starting).toBe(9000);
    const [, first, second] = world.sent;
    expect([first?.payload.requestId, operations(world).length]).toEqual([second?.payload.requestId, 3]);
  });

  it.each([
    ['while it waits', 0],
    ['before the response', 2000],
  ])('an abort %s rejects at once, and cancels the reservation', async (_, answerMs) => {
    const world = setting();
    const { clock, holdfast, faults, paidMs } = world;
    await holdfast.rate('vendor', RATE);
    faults.of = (operation) => (operation === 'rateReserve' ? answerMs : undefined);
    const controller = new AbortController();
    const rest: Promise<unknown>[] = [];
    const options = { ...RATE, waitMs: 60_000, signal: controller.signal };
    const waiting = errorOf(holdfast.rate('vendor', { ...options, waitUntil: (one) => rest.push(one) }));
    await clock.advance(1000);
    expect(await paidMs()).toBe(12_000);
    controller.abort('enough');
    expect(await waiting).toBe('enough');
    await clock.advance(1000);
    await Promise.all(rest);
    expect([rest.length, await paidMs(), clock.timers]).toEqual([1, 6000, []]);
  });

  it('holdfast.rate does not send a call if its signal has already aborted', async () => {
    const world = setting();
    expect(await errorOf(world.holdfast.rate('vendor', { ...RATE, signal: AbortSignal.abort('no') }))).toBe('no');
    expect(operations(world)).toEqual([]);
  });

  it('settle corrects a charge once, and refuses the name of an unknown rate', async () => {
    const { holdfast, paidMs } = setting();
    const { settle } = await holdfast.rate('vendor', { ...RATE, units: 5, settle: true });
    expect(await paidMs()).toBe(30_000);
    expect(await errorOf(settle({ tokens: 1 }))).toMatchObject({ code: 'InvalidRequest' });
    expect([await settle({ requests: 2 }), await paidMs(), await settle({ requests: 1 })]).toEqual([
      ...[true, 12_000, false],
    ]);
  });

  it('settle resolves to false if the service does not answer', async () => {
    const { holdfast, clock, faults } = setting();
    const { settle } = await holdfast.rate('vendor', { ...RATE, settle: true });
    faults.of = () => 'answer lost';
    const settled = settle({ requests: 2 });
    await clock.advance(60_000);
    expect(await settled).toBe(false);
  });

  it('an operator forgets a rate as the operator has read it', async () => {
    const { holdfast } = setting();
    await holdfast.rate('vendor', RATE);
    const { paidUntil } = (await holdfast.readRates({ key: 'vendor' })) as { paidUntil: string };
    const early = new Date(Date.parse(paidUntil) - 1).toISOString();
    const forget = (seen: string, key = 'vendor') => holdfast.rateForget({ key, paidUntil: seen });
    expect(await errorOf(forget(early))).toMatchObject({ code: 'Conflict', actual: { kind: 'rate', by: 'one' } });
    expect(await forget(paidUntil)).toEqual({ key: 'vendor', forgotten: true });
    expect(await errorOf(forget(paidUntil))).toMatchObject({ code: 'NotFound' });
    expect(await holdfast.rate('vendor', RATE)).toMatchObject({ waitedMs: 0 });
  });
});

describe('withLease with rates', () => {
  it('withLease takes the permit first, and holds it by heartbeats until the start', async () => {
    const world = setting();
    const { holdfast, clock, client, at } = world;
    const rates = [{ limit: 1, per: '1m' }];
    await holdfast.rate('vendor', { rates });
    const options = { limit: 1, rates, ttlSeconds: 9, waitMs: 90_000 };
    const working = holdfast.withLease('vendor', options, ({ held }) => [at(), held]);
    await clock.advance(30_000);
    expect(await client('two').readLease('vendor')).toMatchObject({ used: 1 });
    await clock.advance(31_000);
    expect(await working).toEqual([60_000, true]);
    expect(operations(world).filter((one) => one !== 'heartbeat')).toEqual([
      ...['rateReserve', 'acquire', 'rateReserve', 'readLeases', 'release'],
    ]);
    expect(world.sent.filter(({ operation }) => operation === 'rateReserve')[1]?.payload).toMatchObject({
      waitSeconds: 90,
    });
  });

  it('withLease that is refused a start releases the lease, and does not work', async () => {
    const { holdfast, service, clock } = setting();
    const release = service.hold('vendor', { holder: 'other' });
    await holdfast.rate('vendor', RATE);
    const refused = errorOf(holdfast.withLease('vendor', { rates: [RATE], waitMs: 3000 }, () => 'never'));
    await clock.advance(1000);
    release();
    await clock.advance(1000);
    // The caller may wait three seconds, and has spent one in line.
    expect(await refused).toMatchObject({ code: 'RateExceeded', retryAfterMs: 3000 });
    expect(await holdfast.readLease('vendor')).toMatchObject({ state: 'released' });
  });

  it.each([
    ['an abort', 'enough'],
    ['a loss', expect.objectContaining({ code: 'LeaseLost', reason: 'broken' })],
  ])('%s before the start releases the lease, and cancels the reservation', async (how, error) => {
    const { holdfast, service, clock, paidMs } = setting();
    const controller = new AbortController();
    await holdfast.rate('vendor', { limit: 1, per: '1m' });
    const options = { rates: [{ limit: 1, per: '1m' }], waitMs: Infinity, signal: controller.signal };
    const failed = errorOf(holdfast.withLease('vendor', options, () => 'never'));
    await clock.advance(5000);
    expect(await paidMs()).toBe(120_000);
    if (how === 'an abort') controller.abort('enough');
    else service.lose('vendor', 'broken');
    await clock.advance(30_000);
    expect(await failed).toEqual(error);
    expect([await paidMs(), (await holdfast.readLease('vendor')).state]).toEqual([60_000, 'released']);
    expect(clock.timers).toEqual([]);
  });

  it('lease.settle corrects a charge, and is refused for a lease without rates', async () => {
    const { holdfast, paidMs } = setting();
    const rates = [{ ...RATE, units: 5 }];
    await holdfast.withLease('vendor', { rates, settle: true }, (lease) => lease.settle({ requests: 1 }));
    expect(await paidMs()).toBe(6000);
    const error = await errorOf(holdfast.withLease('vendor', (lease) => lease.settle({ requests: 1 })));
    expect(error).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'rates' }] });
  });
});
