import { describe, expect, it } from 'vitest';
import { type AcquireOptions, Holdfast, type Lease } from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { grantOf, ManualService, ManualSurroundings, type Sent } from '../support/time/process-clock.ts';

/** Loads the module that the client imports at its first call: a manual clock does not wait for an import. */
await import('../../clients/typescript/src/several.ts');

const RUNNING = { replace: 'running', waitMs: Number.POSITIVE_INFINITY } as const;
const WAITING = { replace: 'waiting', waitMs: Number.POSITIVE_INFINITY } as const;

/** A client with a manual clock, whose requests the test answers: the last answer counts again. */
function answered(options: AcquireOptions, ...answers: ((sent: Sent) => unknown)[]) {
  const by = new ManualSurroundings();
  const service = new ManualService();
  const holdfast = new Holdfast({ transport: service.transport, holder: 'tester', surroundings: by });
  service.reply = (sent) => {
    if (sent.operation === 'withdraw') return { key: 'k', cancelled: true };
    if (sent.operation === 'release') return { key: 'k', released: true };
    return (answers.length > 1 ? answers.shift() : answers[0])?.(sent);
  };
  const outcome: { lease?: Lease; error?: unknown } = {};
  holdfast.acquire('k', options).then(
    (lease) => Object.assign(outcome, { lease }),
    (error) => Object.assign(outcome, { error }),
  );
  return { by, service, outcome, asked: () => service.of('acquire').map(({ payload }) => payload) };
}

const refusing =
  (code: string, fields: object = {}) =>
  ({ fail }: Sent) =>
    fail(code, fields);
const held = refusing('LeaseHeld', { key: 'k', holder: 'other', expiresAt: null, place: 1, comeBackMs: 0 });
const grant = ({ payload }: Sent) => grantOf(payload);

describe('a request with replace', () => {
  it('a request with replace waits from its first call on', async () => {
    const { by, asked, outcome } = answered({ ...RUNNING, waitMs: 60_000 }, held, grant);
    await by.advance(1000);
    expect(asked()).toMatchObject([
      { replace: 'running', waitSeconds: 1 },
      { replace: 'running', waitSeconds: 20, requestId: asked()[0]?.requestId },
    ]);
    expect(outcome.lease).toBeDefined();
  });

  it('a request with replace asks a last time with a wait of a second', async () => {
    const { by, asked, outcome } = answered({ ...WAITING, waitMs: 500 }, held);
    await by.advance(1000);
    expect(asked().map(({ waitSeconds }) => waitSeconds)).toEqual(asked().map(() => 1));
    expect(asked().at(-1)?.sleepMs).toBe(0);
    expect(outcome.error).toMatchObject({ code: 'LeaseHeld' });
  });

  it('a request that is superseded is not sent again', async () => {
    const { by, asked, outcome } = answered(RUNNING, held, refusing('Superseded', { key: 'k', by: 'newer' }));
    await by.advance(60_000);
    expect(outcome.error).toMatchObject({ code: 'Superseded', by: 'newer' });
    expect(asked()).toHaveLength(2);
  });

  it('a request that lost its grant before the answer is not sent again', async () => {
    const late = (sent: Sent) => grantOf(sent.payload, 0);
    const { by, asked, outcome, service } = answered(RUNNING, late);
    await by.advance(60_000);
    expect(outcome.error).toMatchObject({ code: 'LeaseLost', reason: 'deadline' });
    expect([asked().length, service.of('release').length]).toEqual([1, 1]);
    const ended = answered(WAITING, refusing('LeaseLost', { key: 'k', reason: 'broken', holder: null }));
    await ended.by.advance(60_000);
    expect(ended.outcome.error).toMatchObject({ code: 'LeaseLost', reason: 'broken' });
    expect([ended.asked().length, ended.service.of('withdraw').length]).toEqual([1, 1]);
  });
});

/** A service in memory, its clients by name, and the clock of both. */
function setting() {
  const clock = new ManualClock();
  const service = new MemoryService({ surroundings: clock });
  const client = (holder: string) => new Holdfast({ transport: service.transport, surroundings: clock, holder });
  const leases: Lease[] = [];
  const outcomes: Record<string, unknown> = {};
  /** Works for `workMs`, or until its signal aborts. */
  const work = (holder: string, options: AcquireOptions, workMs = 10_000) =>
    client(holder)
      .withLease('preview/12', options, (lease) => {
        leases.push(lease);
        return stopped(clock, lease, workMs);
      })
      .then(
        (result) => Object.assign(outcomes, { [holder]: result }),
        ({ code, reason, by }) => Object.assign(outcomes, { [holder]: { code, reason, by } }),
      );
  return { clock, service, client, outcomes, work, leases };
}

const stopped = (clock: ManualClock, { signal, fence }: Lease, ms: number) =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve('stopped'));
    clock.after(ms, () => resolve(`fence ${fence}`));
  });

describe('the newest request of a key', () => {
  it('the newest request runs, and each older one that waits fails with Superseded', async () => {
    const { clock, work, outcomes } = setting();
    for (const at of [1, 2, 3, 4]) {
      void work(`build ${at}`, WAITING);
      await clock.advance(100);
    }
    await clock.advance(30_000);
    expect(outcomes).toEqual({
      'build 1': 'fence 1',
      'build 2': { code: 'Superseded', reason: undefined, by: 'build 3' },
      'build 3': { code: 'Superseded', reason: undefined, by: 'build 4' },
      'build 4': 'fence 2',
    });
  });

  it('the newest request starts when the holder that said running has stopped', async () => {
    const { clock, work, outcomes, client, leases } = setting();
    void work('old', { ...RUNNING, ttlSeconds: 30 }, 3_600_000);
    await clock.advance(100);
    void work('new', RUNNING);
    await clock.advance(1500);
    expect(await client('reader').readLease('preview/12', { waiters: true })).toMatchObject({
      ...{ holder: 'old', ending: true, supersededBy: 'new' },
      waiters: [{ holder: 'new', replace: 'running' }],
    });
    await clock.advance(10_000);
    expect(outcomes).toEqual({ old: { code: 'LeaseLost', reason: 'superseded', by: undefined } });
    expect(leases).toMatchObject([
      { holder: 'old', fence: 1 },
      { holder: 'new', fence: 2, previous: { holder: 'old', ended: 'superseded', by: 'new' } },
    ]);
    await clock.advance(10_000);
    expect(outcomes).toMatchObject({ new: 'fence 2' });
  });

  it('a request that comes back between two calls learns that it was replaced', async () => {
    const { clock, service, work, outcomes } = setting();
    const release = service.hold('preview/12');
    void work('older', WAITING);
    await clock.advance(500);
    const { transport } = service;
    const asked = { key: 'preview/12', holder: 'newer', requestId: 'r', waitSeconds: 1, replace: 'waiting' };
    const newer = transport('acquire', asked, new AbortController().signal).catch(({ code }) => code);
    release();
    await clock.advance(500);
    expect(outcomes).toMatchObject({ older: { code: 'Superseded', by: 'newer' } });
    expect(await newer).toMatchObject({ holder: 'newer' });
  });

  it.each<[string, AcquireOptions]>([
    ['no wait', {}],
    ['a limit', { waitMs: 1000, limit: 2 }],
    ['the mode shared', { waitMs: 1000, mode: 'shared' }],
    ['a race', { waitMs: 1000, fair: false }],
  ])('a request with replace and %s is refused', async (_, options) => {
    const { clock, client } = setting();
    const refused = client('a').acquire('k', { replace: 'waiting', ...options });
    const error = refused.catch((reason) => reason);
    await clock.advance(0);
    expect(await error).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'replace' }] });
  });

  it('several keys are held together under the newest request of one of them', async () => {
    const { clock, client } = setting();
    const entries = [
      { key: 'preview/12', ...RUNNING },
      { key: 'builds', limit: 2 },
    ];
    const build = (holder: string) =>
      client(holder)
        .withLeases(entries, { waitMs: 60_000 }, async (held) => {
          await new Promise((resolve) => held.signal.addEventListener('abort', resolve));
          return 'stopped';
        })
        .catch(({ code, reason, key }) => ({ code, reason, key }));
    const old = build('old');
    await clock.advance(100);
    void build('new');
    await clock.advance(30_000);
    expect(await old).toEqual({ code: 'LeaseLost', reason: 'superseded', key: 'preview/12' });
    expect(await client('reader').readLease('builds')).toMatchObject({ used: 1, holder: 'new' });
  });
});
