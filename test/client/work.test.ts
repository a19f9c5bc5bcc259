import { describe, expect, it } from 'vitest';
import { Holdfast, type HoldfastEvent } from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';

function setting() {
  const clock = new ManualClock();
  const service = new MemoryService({ surroundings: clock });
  const events: HoldfastEvent[] = [];
  const holdfast = new Holdfast({
    transport: service.transport,
    surroundings: clock,
    holder: 'test',
    onEvent: (event) => events.push(event),
  });
  const hasNoRecord = async (key: string) => !(await holdfast.readLease(key)).hasRecord;
  return { clock, service, holdfast, events, hasNoRecord };
}

describe('onHeld: skip', () => {
  it('withLease resolves to undefined without the work if the key is held', async () => {
    const { service, holdfast } = setting();
    const release = service.hold('nightly');
    const run = () => holdfast.withLease('nightly', { onHeld: 'skip' }, () => 'done');
    const skipped: string | undefined = await run();
    expect(skipped).toBeUndefined();
    release();
    expect(await run()).toBe('done');
  });

  it('withLease waits first, if it is asked to', async () => {
    const { service, holdfast, clock } = setting();
    service.hold('nightly', { ttlSeconds: 30 });
    const run = (waitMs: number) => holdfast.withLease('nightly', { onHeld: 'skip', waitMs }, () => 'done');
    const runs = [run(5000), run(60_000)];
    await clock.advance(31_000);
    expect(await Promise.all(runs)).toEqual([undefined, 'done']);
  });

  it('withLeases and once can skip, and then hold nothing', async () => {
    const { service, holdfast } = setting();
    service.hold('b');
    const entries = [{ key: 'a' }, { key: 'b' }];
    expect(await holdfast.withLeases(entries, { onHeld: 'skip' }, () => 'done')).toBeUndefined();
    expect((await holdfast.readLease('a')).state).toBe('released');
    const skipped = await holdfast.once('job', async () => ({
      answer: await holdfast.once('job', { onHeld: 'skip' }, () => 'again'),
    }));
    expect(skipped).toMatchObject({ outcome: 'ran', result: { answer: undefined } });
  });

  it('withLease skips if the rates do not allow a start in time', async () => {
    const { holdfast } = setting();
    const rates = [{ limit: 1, per: '1h' }];
    const run = () => holdfast.withLease('vendor', { rates, onHeld: 'skip' }, () => 'done');
    expect([await run(), await run()]).toEqual(['done', undefined]);
  });

  it('withLease passes on every other error, and LeaseHeld of the work itself', async () => {
    const { service, holdfast } = setting();
    service.hold('inner');
    const inner = () => holdfast.acquire('inner');
    await expect(holdfast.withLease('outer', { onHeld: 'skip' }, inner)).rejects.toMatchObject({ key: 'inner' });
    await expect(holdfast.withLease('', { onHeld: 'skip' }, inner)).rejects.toMatchObject({ code: 'InvalidRequest' });
  });
});

describe('arguments in a program without types', () => {
  const wrong = async (act: (holdfast: Holdfast) => Promise<unknown>, message: string) => {
    const { holdfast, hasNoRecord } = setting();
    await expect(act(holdfast)).rejects.toThrow(new TypeError(message));
    expect(await hasNoRecord('k')).toBe(true);
  };
  type Any = (...args: unknown[]) => Promise<unknown>;

  it.each([
    ['withLease', 'k'],
    ['withLeases', [{ key: 'k' }]],
    ['once', 'k'],
  ] as const)('%s does not acquire without work as its last argument', async (name, key) => {
    const message = 'work must be a function, the last argument';
    const options = { ttlSeconds: 60 };
    for (const rest of [[], [options], [() => {}, options], [options, undefined]])
      await wrong((holdfast) => (holdfast[name] as Any).call(holdfast, key, ...rest), message);
  });

  it.each([-1, Number.NaN, 'a minute'])('a wait of %s is refused before anything is acquired', async (ms) => {
    const waitMs = ms as number;
    const message = `waitMs must be a number from 0, not ${ms}`;
    await wrong((holdfast) => holdfast.acquire('k', { waitMs }), message);
    await wrong((holdfast) => holdfast.withLease('k', { waitMs }, () => {}), message);
    await wrong((holdfast) => holdfast.withLeases([{ key: 'k' }], { waitMs }, () => {}), message);
    await wrong((holdfast) => holdfast.once('k', { waitMs }, () => {}), message);
    await wrong((holdfast) => holdfast.rate('k', { limit: 1, per: '1s', waitMs }), message);
    await wrong((holdfast) => holdfast.acquire('k', { timeoutMs: waitMs }), message.replace('waitMs', 'timeoutMs'));
  });
});

it('a permit has its mode, limit and weight, and what was in use', async () => {
  const { service, holdfast } = setting();
  service.hold('gpus', { limit: 8, weight: 3 });
  const { mode, limit, weight, used } = await holdfast.acquire('gpus', { limit: 8, weight: 4 });
  expect({ mode, limit, weight, used }).toEqual({ mode: 'shared', limit: 8, weight: 4, used: 7 });
  const lease = await holdfast.acquire('alone');
  expect([lease.limit, lease.used]).toEqual([undefined, undefined]);
});

it('the event of a grant has the wait in whole milliseconds', async () => {
  const { holdfast, clock, events } = setting();
  await clock.advance(0.25);
  await holdfast.withLease('k', () => {});
  expect(events[0]).toMatchObject({ type: 'acquired', waitedMs: expect.any(Number) });
  expect(Number.isInteger(events[0]?.type === 'acquired' && events[0].waitedMs)).toBe(true);
});
