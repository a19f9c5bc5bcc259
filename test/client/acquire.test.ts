import { describe, expect, it } from 'vitest';
import {
  type AcquireOptions,
  Holdfast,
  type HoldfastEvent,
  isHoldfastError,
} from '../../clients/typescript/src/index.ts';
import { grantOf, ManualService, ManualSurroundings, type Sent, settled } from '../support/time/process-clock.ts';

function world() {
  const by = new ManualSurroundings();
  const service = new ManualService();
  const events: HoldfastEvent[] = [];
  const onEvent = (event: HoldfastEvent) => events.push(event);
  const holdfast = new Holdfast({ transport: service.transport, holder: 'tester', surroundings: by, onEvent });
  const asked = () => service.of('acquire').map(({ payload }) => payload);
  /** Gives the planned answers first, and then those of `service.reply`. */
  const plan = (...answers: ((sent: Sent) => unknown)[]) => {
    service.reply = (sent) => {
      const next = sent.operation === 'acquire' ? answers.shift() : undefined;
      return next ? next(sent) : sent.operation === 'release' ? { key: 'k', released: true } : undefined;
    };
  };
  const acquire = (options?: AcquireOptions) => {
    const outcome: { lease?: Awaited<ReturnType<Holdfast['acquire']>>; error?: unknown } = {};
    const done = holdfast.acquire('k', options).then(
      (lease) => Object.assign(outcome, { lease }),
      (error) => Object.assign(outcome, { error }),
    );
    return Object.assign(outcome, { done });
  };
  return { by, service, events, holdfast, asked, plan, acquire };
}

const grant = ({ payload }: Sent) => grantOf(payload);
const heldBy = (holder: string) => (sent: Sent) =>
  sent.fail('LeaseHeld', { key: 'k', holder, expiresAt: '2026-01-01T00:00:30.000Z', retryAfterMs: 30_000 });
const failing =
  (code: string, fields: object = {}) =>
  (sent: Sent) =>
    sent.fail(code, fields);

describe('an acquisition', () => {
  it('an acquisition keeps its requestId in retries, and counts from the last try', async () => {
    const { by, acquire, asked, plan } = world();
    plan(
      failing('Unreachable'),
      failing('OutcomeUnknown', { retryWith: { requestId: 'id-1' } }),
      failing('Unavailable', { retryAfterMs: 1000 }),
      grant,
    );
    const outcome = acquire();
    await by.advance(10_000);
    await outcome.done;
    expect(asked().length).toBe(4);
    expect(new Set(asked().map(({ requestId }) => requestId)).size).toBe(1);
    expect(asked()[0]?.requestId).toBeTruthy();
    expect(outcome.lease?.held).toBe(true);
    const second = acquire();
    await settled();
    expect(asked().at(-1)?.requestId).not.toBe(asked()[0]?.requestId);
    expect(second.lease).toBeUndefined();
  });

  it('an acquisition waits with full jitter, and as long as the service asks for', async () => {
    const { by, acquire, plan, asked, service } = world();
    const at: number[] = [];
    plan(
      ...[0, 500, 500, 500].map((retryAfterMs) => (sent: Sent) => {
        at.push(by.monotonicMs);
        sent.fail('Throttled', { retryAfterMs });
      }),
    );
    const { reply } = service;
    service.reply = (sent) => (asked().length > 4 ? grant(sent) : reply(sent));
    by.chance = () => 0.999;
    acquire();
    await by.advance(20_000);
    const pauses = at.slice(1).map((moment, index) => Math.round(moment - (at[index] ?? 0)));
    expect(pauses).toEqual([100, 700, 900]);
  });

  it('an acquisition ends at its limit, or at once if a retry cannot help', async () => {
    const { by, acquire, plan, service } = world();
    service.reply = failing('Unavailable', { retryAfterMs: 1000 }) as never;
    const outcome = acquire({ timeoutMs: 5000 });
    await by.advance(4990);
    expect(outcome.error).toMatchObject({ code: 'Unavailable' });
    const tries = service.of('acquire').length;
    expect(tries).toBeGreaterThan(2);
    plan(failing('InvalidRequest', { issues: [{ path: 'key', message: 'is long' }] }));
    const refused = acquire();
    await refused.done;
    expect(isHoldfastError(refused.error, 'InvalidRequest') && refused.error.issues).toEqual([
      { path: 'key', message: 'is long' },
    ]);
    expect(service.of('acquire').length).toBe(tries + 1);
  });

  it('an acquisition aborts a try that is not answered', async () => {
    const { by, acquire, plan, service, asked } = world();
    plan(() => {}, grant);
    const outcome = acquire();
    await by.advance(11_000);
    expect(service.of('acquire')[0]?.signal.aborted).toBe(true);
    expect(asked()[1]?.requestId).toBe(asked()[0]?.requestId);
    expect(outcome.lease?.held).toBe(true);
  });

  it('an acquisition begins again if the grant came too late to be used', async () => {
    const { by, acquire, plan, service, asked } = world();
    plan((sent) => {
      by.block(60_000);
      return grant(sent);
    }, grant);
    const outcome = acquire({ timeoutMs: 100_000 });
    await by.advance(100);
    expect(outcome.lease?.held).toBe(true);
    expect(asked().length).toBe(2);
    expect(asked()[1]?.requestId).not.toBe(asked()[0]?.requestId);
    expect(service.of('release').length).toBe(1);
  });

  it('an acquisition counts the time that it waited inside the service', async () => {
    const { by, acquire, plan } = world();
    plan(heldBy('other'), (sent) => {
      by.block(15_000);
      return { ...grant(sent), waitedMs: 15_000 };
    });
    const outcome = acquire({ waitMs: 20_000 });
    await by.advance(10);
    by.block(58_000);
    expect(outcome.lease?.held).toBe(true);
  });
});

describe('a wait', () => {
  it('an acquisition without a wait throws LeaseHeld at once', async () => {
    const { acquire, plan, asked } = world();
    plan(heldBy('other'));
    const outcome = acquire();
    await outcome.done;
    expect(isHoldfastError(outcome.error, 'LeaseHeld') && outcome.error.holder).toBe('other');
    expect(asked().map(({ waitSeconds }) => waitSeconds)).toEqual([0]);
  });

  it('a wait begins without a pause, asks for 20 seconds, and names the holder', async () => {
    const { by, acquire, plan, asked, events } = world();
    const waits = (sent: Sent) => {
      by.after(Number(sent.payload.waitSeconds) * 1000, () => heldBy(`holder ${sent.payload.waitSeconds}`)(sent));
    };
    plan(waits, waits, waits, waits, waits, waits, waits);
    const outcome = acquire({ waitMs: 45_500 });
    await by.advance(46_000);
    expect(outcome.error).toMatchObject({ code: 'LeaseHeld' });
    expect(asked().map(({ waitSeconds }) => waitSeconds)).toEqual([0, 20, 20, 5, 0]);
    expect(new Set(asked().map(({ requestId }) => requestId)).size).toBe(1);
    expect(events.slice(0, 2)).toEqual([
      {
        type: 'waiting',
        key: 'k',
        holder: 'holder 0',
        since: '2026-01-01T00:00:00.000Z',
        expiresAt: '2026-01-01T00:00:30.000Z',
      },
      {
        type: 'waiting',
        key: 'k',
        holder: 'holder 20',
        since: '2026-01-01T00:00:00.000Z',
        expiresAt: '2026-01-01T00:00:30.000Z',
      },
    ]);
  });

  it('a wait sends back its ticket until it starts again with another request', async () => {
    const { by, acquire, plan, asked, events } = world();
    const place = (ticket: string) => (sent: Sent) =>
      sent.fail('LeaseHeld', {
        key: 'k',
        holder: 'other',
        place: 2,
        retryWith: { requestId: sent.payload.requestId, ticket },
      });
    plan(
      failing('QueueFull', { retryAfterMs: 100 }),
      place('one'),
      failing('Unreachable'),
      place('two'),
      failing('LeaseLost', { reason: 'broken' }),
      grant,
    );
    const outcome = acquire({ waitMs: 60_000 });
    await by.advance(5000);
    expect(outcome.lease?.held).toBe(true);
    const tickets = asked().map(({ ticket }) => ticket);
    expect(tickets).toEqual([undefined, undefined, 'one', 'one', 'two', undefined]);
    const ids = asked().map(({ requestId }) => requestId);
    expect(new Set(ids.slice(0, 5)).size).toBe(1);
    expect(ids[5]).not.toBe(ids[0]);
    expect(events.filter(({ type }) => type === 'waiting')).toEqual([
      expect.objectContaining({ holder: 'other', place: 2 }),
      expect.objectContaining({ holder: 'other', place: 2 }),
    ]);
  });

  it('a wait asks less and less often if the deployment answers at once', async () => {
    const { by, acquire, service, asked } = world();
    service.reply = heldBy('other');
    acquire({ waitMs: 300_000 });
    await by.advance(299_000);
    expect(asked().length).toBeLessThan(160);
    expect(asked().length).toBeGreaterThan(50);
  });

  it('a wait never pauses for longer than the service keeps its position in line', async () => {
    const { by, acquire, service, asked } = world();
    by.chance = () => 1;
    let answeredAt = Number.NaN;
    const awayMs: number[] = [];
    let calls = 0;
    service.reply = (sent) => {
      if (sent.operation !== 'acquire') return;
      awayMs.push(by.monotonic() - answeredAt);
      by.after(3000, () => {
        answeredAt = by.monotonic();
        const place = { place: 2, retryWith: { requestId: sent.payload.requestId, ticket: 'ticket-1' } };
        if (++calls % 20 === 0 || calls > 100) sent.fail('Unreachable');
        else
          sent.fail('LeaseHeld', {
            key: 'k',
            holder: 'other',
            expiresAt: null,
            retryAfterMs: 30_000,
            waiting: 5,
            ...place,
          });
      });
    };
    acquire({ waitMs: 3_600_000, timeoutMs: 3_600_000 });
    await by.advance(300_000);
    expect(asked().length).toBeGreaterThan(90);
    expect(awayMs.slice(2, 20)).toEqual(Array(18).fill(0));
    await by.advance(300_000);
    expect(Math.max(...awayMs.slice(1))).toBeLessThan(5000);
    expect(asked().at(-1)).toMatchObject({ ticket: 'ticket-1' });
  });

  it('a wait goes on without end if asked to, even after failures', async () => {
    const { by, acquire, service, plan } = world();
    let lost = 0;
    service.reply = (sent) => {
      if (sent.operation !== 'acquire') return;
      by.after(Number(sent.payload.waitSeconds) * 1000 + 50, () =>
        lost++ % 3 === 2 ? sent.fail('Unreachable') : heldBy('other')(sent),
      );
    };
    const outcome = acquire({ waitMs: Number.POSITIVE_INFINITY });
    await by.advance(3_600_000);
    expect(outcome.error).toBeUndefined();
    plan(grant);
    await by.advance(30_000);
    expect(outcome.lease).toBeDefined();
  });
});

describe('an aborted wait', () => {
  it('a wait whose signal has already aborted does not send a request', async () => {
    const { acquire, service } = world();
    const outcome = acquire({ signal: AbortSignal.abort('no') });
    await outcome.done;
    expect(outcome.error).toBe('no');
    expect(service.sent).toEqual([]);
  });
});

describe('a wait that ends with an unknown outcome', () => {
  const unknownOutcome = async () => {
    const setting = world();
    const { by, acquire, plan, service } = setting;
    plan(heldBy('other'), () => {});
    const controller = new AbortController();
    const outcome = acquire({ waitMs: 60_000, signal: controller.signal });
    await by.advance(10);
    controller.abort('enough');
    await outcome.done;
    await settled();
    const [withdrawal] = service.of('withdraw');
    withdrawal?.answer({ key: 'k', requestId: withdrawal.payload.requestId, cancelled: false, reason: 'unknown' });
    return { ...setting, lost: service.of('acquire')[1] as Sent };
  };

  it('an unanswered wait is withdrawn at once, and again after a lost answer', async () => {
    const { service, lost, by } = await unknownOutcome();
    const { requestId } = lost.payload;
    expect(service.of('withdraw').map(({ payload }) => payload)).toEqual([{ key: 'k', requestId, holder: 'tester' }]);
    lost.fail('Unreachable');
    await settled();
    expect(service.of('withdraw').length).toBe(2);
    service.of('withdraw')[1]?.answer({ key: 'k', requestId, cancelled: true });
    await by.advance(100_000);
    expect(service.of('withdraw').length).toBe(2);
    expect([service.of('acquire').length, by.timers]).toEqual([2, []]);
  });

  it('an unanswered wait is withdrawn again when its lost try must have ended', async () => {
    const { service, lost, by } = await unknownOutcome();
    const { requestId } = lost.payload;
    lost.fail('Unreachable');
    await settled();
    service.of('withdraw')[1]?.answer({ key: 'k', requestId, cancelled: false, reason: 'unknown' });
    await by.advance(10);
    expect(by.timers.map(({ idle }) => idle)).toEqual([true]);
    await by.advance(35_000);
    expect(service.of('withdraw').length).toBeGreaterThan(2);
  });

  it('an unanswered wait is withdrawn even at the limit of failures', async () => {
    const { by, acquire, service, events } = world();
    service.reply = ({ fail }) => fail('Unreachable');
    const outcome = acquire({ timeoutMs: 500, releaseTimeoutMs: 1000 });
    await by.advance(60_000);
    expect(outcome.error).toMatchObject({ code: 'Unreachable' });
    expect(service.of('withdraw').length).toBeGreaterThan(3);
    expect(events).toEqual([{ type: 'released', key: 'k', confirmed: false, error: expect.anything() }]);
  });

  it('an unanswered wait is not withdrawn if none of its tries was sent', async () => {
    const { by, acquire, service, events } = world();
    service.reply = ({ fail }) => fail('Unreachable', { sent: false });
    const outcome = acquire({ timeoutMs: 500 });
    await by.advance(60_000);
    expect(outcome.error).toMatchObject({ code: 'Unreachable', sent: false });
    expect([service.of('withdraw'), events]).toEqual([[], []]);
  });

  describe('a wait in line', () => {
    const inLine = failing('LeaseHeld', {
      ...{ key: 'k', holder: 'other', expiresAt: null, place: 3, retryAfterMs: 1 },
      retryWith: { requestId: 'id', ticket: 'ticket-1' },
    });
    const abortedAfter = async (...answers: ((sent: Sent) => unknown)[]) => {
      const setting = world();
      setting.plan(...answers, () => {});
      const controller = new AbortController();
      const outcome = setting.acquire({ waitMs: 60_000, signal: controller.signal });
      await setting.by.advance(20_000);
      controller.abort('enough');
      await outcome.done;
      await settled();
      return { ...setting, tickets: () => setting.service.of('withdraw').map(({ payload }) => payload.ticket) };
    };

    it('a wait in line is withdrawn by its ticket, which spares reading the line', async () => {
      const { tickets } = await abortedAfter(heldBy('other'), inLine);
      expect(tickets()).toEqual(['ticket-1']);
    });

    it('a wait is withdrawn without its ticket if any answer was lost', async () => {
      const { tickets } = await abortedAfter(heldBy('other'), failing('Unreachable'), inLine);
      expect(tickets()).toEqual([undefined]);
    });

    it('a wait is withdrawn again without its ticket if the last answer is lost', async () => {
      const { tickets, service } = await abortedAfter(heldBy('other'), inLine);
      service.of('acquire').at(-1)?.fail('Unreachable');
      await settled();
      expect(tickets()).toEqual(['ticket-1', undefined]);
    });
  });

  it('a wait in line is not withdrawn if no grant is possible', async () => {
    const { by, acquire, service } = world();
    service.reply = ({ fail }) => fail('Throttled');
    const outcome = acquire({ timeoutMs: 500 });
    await by.advance(60_000);
    expect(outcome.error).toMatchObject({ code: 'Throttled' });
    expect(service.of('withdraw')).toEqual([]);
  });
});

describe('the rest of an acquire', () => {
  const setting = () => {
    const rest: Promise<unknown>[] = [];
    const isOver = () => Promise.race([Promise.all(rest).then(() => true), settled().then(() => false)]);
    return { ...world(), rest, isOver, waitUntil: (one: Promise<unknown>) => void rest.push(one) };
  };

  it('an acquire that is granted or refused does not have the promise `rest`', async () => {
    const { by, plan, acquire, rest, waitUntil } = setting();
    plan(heldBy('other'), grant);
    const refused = acquire({ waitUntil });
    await refused.done;
    const granted = acquire({ waitUntil });
    await granted.done;
    await by.advance(10);
    expect([refused.error, granted.lease?.held, rest]).toMatchObject([{ code: 'LeaseHeld' }, true, []]);
  });

  it('the rest of an aborted wait ends when its withdrawal is answered', async () => {
    const { by, plan, acquire, service, rest, isOver, waitUntil } = setting();
    const controller = new AbortController();
    plan(heldBy('other'));
    const outcome = acquire({ waitMs: 60_000, signal: controller.signal, waitUntil });
    await by.advance(1000);
    controller.abort('enough');
    await outcome.done;
    expect([outcome.error, rest.length, await isOver()]).toEqual(['enough', 2, false]);
    service.of('withdraw')[0]?.answer({ key: 'k', cancelled: true });
    expect(await isOver()).toBe(false);
    service.of('acquire').at(-1)?.fail('LeaseLost', { reason: 'cancelled' });
    expect(await isOver()).toBe(true);
  });

  it('the rest of an acquire without an answer ends when its withdrawal is answered', async () => {
    const { by, acquire, service, rest, isOver, waitUntil } = setting();
    const outcome = acquire({ timeoutMs: 0, waitUntil });
    await by.advance(11_000);
    expect([outcome.error, rest.length, await isOver()]).toMatchObject([{ code: 'Unreachable' }, 1, false]);
    service.of('withdraw')[0]?.answer({ key: 'k', cancelled: true });
    expect(await isOver()).toBe(true);
  });

  it('the rest of an aborted acquire ends when its late grant is released', async () => {
    const { acquire, service, isOver, waitUntil } = setting();
    const controller = new AbortController();
    const outcome = acquire({ signal: controller.signal, waitUntil });
    await settled();
    controller.abort('enough');
    await outcome.done;
    service.of('withdraw')[0]?.answer({ key: 'k', cancelled: false });
    service.of('acquire')[0]?.answer(grantOf({ key: 'k' }));
    expect(await isOver()).toBe(false);
    service.of('release')[0]?.answer({ key: 'k', released: true });
    expect(await isOver()).toBe(true);
  });
});
