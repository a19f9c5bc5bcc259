import { beforeEach, describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { onceWorld } from '../support/worlds/once.ts';

const world = await onceWorld();
const { begin, run, complete, release, heartbeat, readKey, clock, requests, rawRow } = world;
const SKEW_MS = world.dependencies.clockSkewMs;

async function done(key: string, input: object = {}, result: unknown = { files: 7 }) {
  const begun = await run({ key, slot: '1', ...input });
  await complete({ key, leaseId: begun.leaseId, result });
  return begun;
}

beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

describe('begin', () => {
  it('a call that begins receives its run by one write', async () => {
    const begun = await run({ key: 'first', slot: 's', ttlSeconds: 600, holder: 'host-1', data: { step: 1 } });
    expect(begun).toMatchObject({
      ...{ outcome: 'run', key: 'first', slot: 's', holder: 'host-1', fence: clock.now() },
      ...{ remainingMs: 600_000, waitedMs: 0, repeated: false, previous: null, data: { step: 1 } },
    });
    expect(begun.leaseId).toMatch(/^o\.[\w-]{16}\.[0-9a-f-]{36}$/);
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a call that begins receives LeaseHeld with the holder while another works', async () => {
    await run({ key: 'held', holder: 'host-1', ttlSeconds: 10 });
    const { code, context } = await failure(begin({ key: 'held', holder: 'host-2' }));
    expect(code).toBe('LeaseHeld');
    expect(context).toMatchObject({ key: 'held', holder: 'host-1', retryAfterMs: 10_000 + SKEW_MS + 1 });
  });

  it('a call that begins receives the same run again if it repeats its request', async () => {
    const first = await run({ key: 'repeated', slot: 's', requestId: 'r' });
    clock.advance(1000);
    expect(await begin({ key: 'repeated', slot: 's', requestId: 'r' })).toMatchObject({
      ...{ outcome: 'run', leaseId: first.leaseId, fence: first.fence, repeated: true, remainingMs: 59_000 },
    });
  });

  it('a call that begins receives its first run if only the period changed', async () => {
    clock.set(Date.parse('2026-02-01T23:59:57.400Z'));
    const first = await run({ key: 'midnight', per: '1d', requestId: 'r' });
    clock.advance(200);
    expect(await begin({ key: 'midnight', per: '1d', requestId: 'r' })).toMatchObject({
      ...{ leaseId: first.leaseId, slot: '2026-02-01', repeated: true },
    });
  });

  it('a call that begins receives its run even if the first answer is lost', async () => {
    requests.faultsOf.UpdateItem = ['lostReply'];
    const begun = await run({ key: 'lost', slot: 's' });
    expect(begun).toMatchObject({ repeated: true, previous: null });
    expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
    expect(await complete({ key: 'lost', leaseId: begun.leaseId })).toMatchObject({ completed: true, repeated: false });
  });

  it('a call without an answer fails with OutcomeUnknown, which names its request id', async () => {
    requests.faultsOf.UpdateItem = ['lostReply', 'neverSent', 'neverSent'];
    const { code, context } = await failure(begin({ key: 'unanswered', slot: 's' }));
    expect(code).toBe('OutcomeUnknown');
    const retry = context.retryWith as object;
    expect(await begin({ key: 'unanswered', slot: 's', ...retry })).toMatchObject({ outcome: 'run', repeated: true });
  });

  it("a call that begins does not receive another caller's run by its request id", async () => {
    await run({ key: 'forged', requestId: 'r', holder: 'host-1' });
    expect((await failure(begin({ key: 'forged', requestId: 'r', holder: 'host-2' }))).code).toBe('LeaseHeld');
  });

  it('a call whose own run was released receives LeaseLost', async () => {
    const { leaseId } = await run({ key: 'failed', slot: 's', requestId: 'r' });
    await release({ key: 'failed', leaseId });
    const { code, context } = await failure(begin({ key: 'failed', slot: 's', requestId: 'r' }));
    expect([code, context.reason]).toEqual(['LeaseLost', 'released']);
    expect(await begin({ key: 'failed', slot: 's' })).toMatchObject({
      ...{ outcome: 'run', previous: { holder: 'tester', ended: 'released' } },
    });
  });

  it('a call that begins takes an expired run over only after the margin', async () => {
    const first = await run({ key: 'dead', slot: 's', ttlSeconds: 10, holder: 'host-1' });
    clock.advance(10_000 + SKEW_MS);
    expect((await failure(begin({ key: 'dead', slot: 's' }))).code).toBe('LeaseHeld');
    clock.advance(1);
    expect(await begin({ key: 'dead', slot: 's' })).toMatchObject({
      ...{ outcome: 'run', previous: { holder: 'host-1', fence: first.fence, ended: 'expired' } },
    });
  });

  it('a call that begins raises the fence even if the clock has gone back', async () => {
    const first = await done('set back');
    clock.advance(-5000);
    expect((await run({ key: 'set back', slot: '2' })).fence).toBe(first.fence + 1);
    clock.advance(5000);
  });

  it('a call that begins keeps nothing of the run before but what is done', async () => {
    const first = await run({ key: 'clean', slot: '1', data: 'old', inputHash: 'old' });
    await world.breakRun({ key: 'clean', fence: first.fence }, { ...callAs('operator') });
    await run({ key: 'clean', slot: '1' });
    const row = await rawRow('clean');
    expect(row).not.toHaveProperty('input_hash');
    expect(
      Object.keys(row?.h?.M ?? {})
        .toSorted()
        .join(''),
    ).toBe('abehimtuvw');
  });
});

describe('done slots', () => {
  it('a slot that is done answers later callers with the result', async () => {
    const first = await done('done', { holder: 'host-1' });
    clock.advance(1000);
    expect(await begin({ key: 'done', slot: '1', holder: 'host-2' })).toEqual({
      ...{ outcome: 'done', key: 'done', slot: '1', result: { files: 7 }, doneBy: 'host-1', fence: first.fence },
      doneAt: new Date(clock.now() - 1000).toISOString(),
    });
  });

  it('a slot that is done answers its own request with the result too', async () => {
    await done('own', { requestId: 'r' });
    expect(await begin({ key: 'own', slot: '1', requestId: 'r' })).toMatchObject({ outcome: 'done' });
  });

  it('a slot that is done supersedes earlier slots, whose callers do not receive results', async () => {
    await done('later', { slot: '2026-02-03' });
    const earlier = await begin({ key: 'later', slot: '2026-02-02' });
    expect(earlier).toMatchObject({ outcome: 'superseded', slot: '2026-02-02', doneSlot: '2026-02-03' });
    expect(earlier).not.toHaveProperty('result');
    expect(await begin({ key: 'later', slot: '2026-02-04' })).toMatchObject({ outcome: 'run' });
  });

  it('a slot that is done is remembered while and after a later slot runs', async () => {
    await done('kept');
    const { leaseId } = await run({ key: 'kept', slot: '2' });
    expect(await begin({ key: 'kept', slot: '1' })).toMatchObject({ outcome: 'done', result: { files: 7 } });
    await release({ key: 'kept', leaseId });
    expect(await begin({ key: 'kept', slot: '1' })).toMatchObject({ outcome: 'done', result: { files: 7 } });
  });

  it('slots sort by their bytes as in DynamoDB, not by UTF-16 units', async () => {
    const [astral, last] = ['\u{1f600}', '\uffff'];
    await done('bytes', { slot: astral });
    expect(await begin({ key: 'bytes', slot: last })).toMatchObject({ outcome: 'superseded' });
    await done('bytes too', { slot: last });
    expect(await begin({ key: 'bytes too', slot: astral })).toMatchObject({ outcome: 'run' });
  });

  it('a slot that is done runs again after keepSeconds and the margin', async () => {
    await done('forgotten', { keepSeconds: 60 });
    clock.advance(60_000 + SKEW_MS);
    expect(await begin({ key: 'forgotten', slot: '1' })).toMatchObject({ outcome: 'done' });
    clock.advance(1);
    expect(await begin({ key: 'forgotten', slot: '1' })).toMatchObject({ outcome: 'run', previous: null });
  });

  it('a later slot does not shorten how long an earlier one is kept', async () => {
    await done('longer', { keepSeconds: 3600 });
    await done('longer', { slot: '2', keepSeconds: 60 });
    clock.advance(120_000);
    expect(await begin({ key: 'longer', slot: '1' })).toMatchObject({ outcome: 'superseded' });
    clock.advance(3_600_000);
    expect(await begin({ key: 'longer', slot: '1' })).toMatchObject({ outcome: 'run' });
  });

  it('a call for a slot that is done fails with Conflict for another input', async () => {
    await done('input', { inputHash: 'a' });
    expect(await begin({ key: 'input', slot: '1', inputHash: 'a' })).toMatchObject({ outcome: 'done' });
    expect(await begin({ key: 'input', slot: '1' })).toMatchObject({ outcome: 'done' });
    const { code, context } = await failure(begin({ key: 'input', slot: '1', inputHash: 'b' }));
    expect([code, context]).toMatchObject(['Conflict', { key: 'input', field: 'inputHash', actual: { key: 'input' } }]);
    await done('no input');
    expect((await failure(begin({ key: 'no input', slot: '1', inputHash: 'b' }))).code).toBe('Conflict');
  });

  it("the input is compared with the done slot's while a later slot works", async () => {
    await done('two inputs', { inputHash: 'a' });
    await run({ key: 'two inputs', slot: '2', inputHash: 'b' });
    expect(await begin({ key: 'two inputs', slot: '1', inputHash: 'a' })).toMatchObject({ outcome: 'done' });
  });
});

describe('slots', () => {
  it.each([
    ['1d', '2026-03-04T23:59:57.499Z', '2026-03-04'],
    ['1d', '2026-03-04T23:59:57.500Z', '2026-03-05'],
    ['36h', '2026-03-04T12:00:00Z', '2026-03-03T12:00:00Z'],
    ['1h', '2026-03-04T05:06:07Z', '2026-03-04T05:00:00Z'],
    ['15m', '2026-03-04T05:46:07Z', '2026-03-04T05:45:00Z'],
    ['10s', '2026-03-04T05:46:08.999Z', '2026-03-04T05:46:00Z'],
    ['10s', '2026-03-04T05:46:09.000Z', '2026-03-04T05:46:10Z'],
    ['1s', '2026-03-04T05:46:08.899Z', '2026-03-04T05:46:08Z'],
    ['1s', '2026-03-04T05:46:08.900Z', '2026-03-04T05:46:09Z'],
  ])('a call with periods of %s at %s has the current or next slot', async (per, now, slot) => {
    clock.set(Date.parse(now));
    expect(await begin({ key: `per ${per} ${now}`, per, ttlSeconds: 2 })).toMatchObject({ outcome: 'run', slot });
  });

  it.each([
    ['1d', [80, -20, 80, -2400, 900, -1]],
    ['15m', [80, -20, 80, -2400, 900, -1]],
    ['10s', [80, -20, 80, -990, 900, -1]],
    ['1s', [80, -20, 80, -99, 50, -1]],
  ])('an early or late schedule runs in each period of %s', async (per, offsets) => {
    const ms = { '1d': 86_400_000, '15m': 900_000, '10s': 10_000, '1s': 1000 }[per] ?? 0;
    const from = Math.ceil(clock.now() / ms) * ms;
    for (const [nth, offset] of offsets.entries()) {
      const fire = from + (nth + 1) * ms;
      clock.set(fire + offset);
      const begun = await run({ key: `cron ${per}`, per, ttlSeconds: 2 });
      expect(Date.parse(begun.slot)).toBe(fire);
      await complete({ key: `cron ${per}`, leaseId: begun.leaseId });
      clock.set(fire + Math.max(offset, 0) + 10);
      expect(await begin({ key: `cron ${per}`, per, ttlSeconds: 2 }), `a second machine at ${offset}`).toMatchObject({
        ...{ outcome: 'done', slot: begun.slot },
      });
    }
  });

  it('a call that waits over the end of a period keeps its period', async () => {
    clock.set(Date.parse('2026-03-06T23:55:00Z'));
    const { leaseId } = await run({ key: 'over midnight', per: '1d', ttlSeconds: 1200 });
    const asked = { key: 'over midnight', per: '1d', holder: 'other' };
    const { code, context } = await failure(begin(asked));
    expect([code, context.retryWith]).toEqual(['LeaseHeld', { slot: '2026-03-06' }]);
    clock.set(Date.parse('2026-03-07T00:05:00Z'));
    const again = { ...asked, ...(context.retryWith as object) };
    expect((await failure(begin(again))).context.retryWith).toEqual({ slot: '2026-03-06' });
    await complete({ key: 'over midnight', leaseId, result: 'of the 6th' });
    expect(await begin(again)).toMatchObject({ outcome: 'done', slot: '2026-03-06', result: 'of the 6th' });
    clock.set(Date.parse('2026-03-07T23:55:00Z'));
    expect(await begin(asked)).toMatchObject({ outcome: 'run', slot: '2026-03-07' });
  });

  it('a call for an earlier period works if the first worker failed', async () => {
    clock.set(Date.parse('2026-03-08T23:55:00Z'));
    const { leaseId } = await run({ key: 'failed at midnight', per: '1d', ttlSeconds: 1200 });
    const asked = { key: 'failed at midnight', per: '1d', holder: 'other' };
    const { context } = await failure(begin(asked));
    clock.set(Date.parse('2026-03-09T00:05:00Z'));
    await release({ key: 'failed at midnight', leaseId });
    const second = await run({ ...asked, ...(context.retryWith as object) });
    expect(second.slot).toBe('2026-03-08');
    await complete({ key: 'failed at midnight', leaseId: second.leaseId });
    const { done: last } = await readKey('failed at midnight');
    expect(last, 'two periods').toMatchObject({ slot: '2026-03-08', keptUntil: '2026-03-11T00:05:00.000Z' });
    expect(await begin(asked)).toMatchObject({ outcome: 'run', slot: '2026-03-09' });
  });

  it.each([
    ['lostReply', 'OutcomeUnknown', true],
    ['neverSent', 'Unavailable', false],
  ] as const)('a call whose request was %s receives its period with %s', async (first, error, repeated) => {
    clock.set(Date.parse('2026-03-10T23:59:00Z'));
    requests.faultsOf.UpdateItem = [first, 'neverSent', 'neverSent'];
    const { code, context } = await failure(begin({ key: `in doubt ${first}`, per: '1d', ttlSeconds: 600 }));
    expect([code, context.retryWith]).toMatchObject([error, { slot: '2026-03-10' }]);
    clock.set(Date.parse('2026-03-11T00:00:30Z'));
    const retry = context.retryWith as object;
    const own = { outcome: 'run', slot: '2026-03-10', repeated };
    expect(await begin({ key: `in doubt ${first}`, per: '1d', ttlSeconds: 600, ...retry })).toMatchObject(own);
  });

  it('a call with per is refused for a period that has not begun', async () => {
    const { code, context } = await failure(begin({ key: 'future', per: '1d', slot: '9999-12-31' }));
    expect([code, context]).toMatchObject(['InvalidRequest', { issues: [{ path: 'slot' }] }]);
    expect(await begin({ key: 'future', per: '1d' })).toMatchObject({ outcome: 'run', previous: null });
  });

  it('a call with per fails with Conflict after a slot that sorts last', async () => {
    clock.set(Date.parse('2026-03-12T12:00:00Z'));
    const trapped = await done('trap', { slot: 'zzz', keepSeconds: 60_000_000 });
    const before = await rawRow('trap');
    const { code, context, message } = await failure(begin({ key: 'trap', per: '1d' }));
    expect([code, context]).toMatchObject(['Conflict', { key: 'trap', field: 'per', actual: { key: 'trap' } }]);
    expect(message).toContain('"zzz"');
    expect(await rawRow('trap')).toEqual(before);
    await world.forget({ key: 'trap', fence: trapped.fence });
    const { leaseId } = await run({ key: 'trap', per: '1d' });
    await complete({ key: 'trap', leaseId });
    clock.advance(-86_400_000);
    expect((await failure(begin({ key: 'trap', per: '1d' }))).context.field, 'a day ahead').toBe('per');
    clock.advance(86_400_000);
  });

  it('a call by a slow clock is superseded if the next period is done', async () => {
    clock.set(Date.parse('2026-03-13T23:59:57.500Z'));
    const { leaseId } = await run({ key: 'behind', per: '1d' });
    await complete({ key: 'behind', leaseId });
    clock.advance(-SKEW_MS);
    expect(await begin({ key: 'behind', per: '1d' })).toMatchObject({ outcome: 'superseded', slot: '2026-03-13' });
  });

  it('the slot of a call without slot and per is the whole key', async () => {
    const { leaseId, slot } = await run({ key: 'idempotent' });
    expect(slot).toBe('-');
    await complete({ key: 'idempotent', leaseId, result: 'once' });
    clock.advance(86_400_000);
    expect(await begin({ key: 'idempotent' })).toMatchObject({ outcome: 'done', result: 'once' });
    clock.advance(SKEW_MS + 1);
    expect(await begin({ key: 'idempotent' })).toMatchObject({ outcome: 'run' });
  });

  it('a call by a slow clock runs an earlier slot unless it is done', async () => {
    clock.set(Date.parse('2026-03-04T23:59:57.600Z'));
    const today = await run({ key: 'edge', per: '1d' });
    await complete({ key: 'edge', leaseId: today.leaseId });
    clock.set(Date.parse('2026-03-04T23:59:57.400Z'));
    expect(await begin({ key: 'edge', per: '1d' })).toMatchObject({ outcome: 'superseded' });
    expect(await begin({ key: 'edge too', per: '1d' })).toMatchObject({ outcome: 'run', slot: '2026-03-04' });
  });

  it('the slot of a call is kept for two periods at least', async () => {
    clock.set(Date.parse('2026-03-06T00:00:00Z'));
    const { leaseId } = await run({ key: 'two periods', per: '1w' });
    await complete({ key: 'two periods', leaseId });
    const { done: last } = await readKey('two periods');
    expect(last?.keptUntil).toBe('2026-03-20T00:00:00.000Z');
  });
});

describe('waits', () => {
  it('a call that waits receives the result by its next poll, without a write', async () => {
    const { leaseId } = await run({ key: 'awaited', slot: '1', ttlSeconds: 60 });
    clock.at(clock.now() + 2000, () => complete({ key: 'awaited', leaseId, result: 'ready' }));
    requests.sent.length = 0;
    const startedAt = clock.now();
    expect(await begin({ key: 'awaited', slot: '1', waitSeconds: 20 })).toMatchObject({
      ...{ outcome: 'done', result: 'ready' },
    });
    expect(clock.now() - startedAt).toBeLessThanOrEqual(2250);
    expect(requests.sent.filter((name) => name === 'UpdateItem')).toHaveLength(2); // the first try of the call, and complete
    const polls = requests.sent.filter((name) => name === 'GetItem').length;
    expect(polls).toBeGreaterThanOrEqual(8);
    expect(polls).toBeLessThanOrEqual(20);
  });

  it('a call that waits begins when the worker fails or its run expires', async () => {
    const { leaseId } = await run({ key: 'given up', slot: '1' });
    clock.at(clock.now() + 1000, () => release({ key: 'given up', leaseId }));
    expect(await begin({ key: 'given up', slot: '1', waitSeconds: 20 })).toMatchObject({
      ...{ outcome: 'run', previous: { ended: 'released' } },
    });
    await run({ key: 'dies', slot: '1', ttlSeconds: 2 });
    expect(await begin({ key: 'dies', slot: '1', waitSeconds: 20 })).toMatchObject({
      ...{ outcome: 'run', previous: { ended: 'expired' } },
    });
  });

  it('a call that waits learns that its slot is superseded, or conflicts', async () => {
    const late = await run({ key: 'overtaken', slot: '2', inputHash: 'a' });
    clock.at(clock.now() + 500, () => complete({ key: 'overtaken', leaseId: late.leaseId }));
    const [earlier] = await Promise.all([begin({ key: 'overtaken', slot: '1', waitSeconds: 5 })]);
    expect(earlier).toMatchObject({ outcome: 'superseded' });
    const again = await run({ key: 'overtaken', slot: '3', inputHash: 'a' });
    clock.at(clock.now() + 500, () => complete({ key: 'overtaken', leaseId: again.leaseId }));
    expect((await failure(begin({ key: 'overtaken', slot: '3', inputHash: 'b', waitSeconds: 5 }))).code).toBe(
      'Conflict',
    );
  });

  it('a call that waits receives LeaseHeld after waitSeconds', async () => {
    await run({ key: 'too long', slot: '1' });
    const startedAt = clock.now();
    expect((await failure(begin({ key: 'too long', slot: '1', waitSeconds: 3 }))).code).toBe('LeaseHeld');
    expect(clock.now() - startedAt).toBe(3000);
  });
});

describe('other records', () => {
  it('a run and a lease of the same key do not affect each other', async () => {
    const lease = await world.acquire({ key: 'both' });
    const begun = await run({ key: 'both' });
    expect(await heartbeat({ key: 'both', leaseId: begun.leaseId })).toMatchObject({ leaseId: begun.leaseId });
    expect(await heartbeat({ key: 'both', leaseId: lease.leaseId })).toMatchObject({ leaseId: lease.leaseId });
    expect(await complete({ key: 'both', leaseId: lease.leaseId })).toMatchObject({
      completed: false,
      reason: 'taken',
    });
    expect(await complete({ key: 'both', leaseId: begun.leaseId })).toMatchObject({ completed: true });
    expect(await world.read({ key: 'both' })).toMatchObject({ state: 'held', holder: lease.holder });
  });

  it('a run has a key of up to 1,010 bytes', async () => {
    expect(await begin({ key: 'k'.repeat(1010) })).toMatchObject({ outcome: 'run' });
    expect(() => begin({ key: 'k'.repeat(1011) })).toThrow('must be at most 1,010 bytes of UTF-8');
  });
});

const callAs = (principal: string) => call({ principal });
