import { json } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { type AcquireOptions, Holdfast, type HoldfastEvent } from '../../clients/typescript/src/index.ts';
import { listen } from '../../local/listen.ts';
import { grantOf, ManualService, ManualSurroundings, type Sent, settled } from '../support/time/process-clock.ts';

const FOREVER = Number.POSITIVE_INFINITY;

const held = { key: 'k', holder: 'other', expiresAt: null, retryAfterMs: 30_000 };
const inLine = (comeBackMs: number, keptMs = comeBackMs + 60_000) => ({
  ...{ ...held, place: 412, waiting: 500, comeBackMs, keptMs },
  retryWith: { requestId: 'request-1', ticket: 'ticket-1' },
});
const asleep =
  (...times: Parameters<typeof inLine>) =>
  ({ fail }: Sent) =>
    fail('LeaseHeld', inLine(...times));
const failing =
  (code: string, fields: object = {}) =>
  ({ fail }: Sent) =>
    fail(code, fields);
const grant = ({ payload }: Sent) => grantOf(payload);
const silent = () => {};

/** A client with a manual clock. The first call finds the lease held. Each later call gets the next answer, and at the end the last answer again. */
function world(options: AcquireOptions, ...answers: [...((sent: Sent) => unknown)[], (sent: Sent) => unknown]) {
  const by = new ManualSurroundings();
  const service = new ManualService();
  const events: HoldfastEvent[] = [];
  const holdfast = new Holdfast({
    ...{ transport: service.transport, holder: 'tester', surroundings: by },
    onEvent: (event) => void events.push(event),
  });
  const at: number[] = [];
  service.reply = (sent) => {
    if (sent.operation === 'withdraw') return { key: 'k', cancelled: true };
    if (sent.operation !== 'acquire') return undefined;
    at.push(by.monotonic());
    if (at.length === 1) return sent.fail('LeaseHeld', held);
    return (answers.length > 1 ? answers.shift() : answers[0])?.(sent);
  };
  const outcome: { lease?: unknown; error?: unknown } = {};
  const done = holdfast.acquire('k', options).then(
    (lease) => Object.assign(outcome, { lease }),
    (error) => Object.assign(outcome, { error }),
  );
  const asked = () => service.of('acquire').map(({ payload }) => payload);
  const withdrawn = () => service.of('withdraw').map(({ payload }) => payload.ticket);
  const pauses = () => at.slice(1).map((moment, index) => Math.round(moment - (at[index] ?? 0)));
  return { by, events, outcome, done, asked, withdrawn, pauses };
}

describe('a caller that sleeps', () => {
  it('a caller sleeps as the service says, and asks again with its ticket', async () => {
    const { by, outcome, asked, pauses, events, withdrawn } = world(
      { waitMs: FOREVER },
      asleep(51_840),
      asleep(7000),
      grant,
    );
    await by.advance(100_000);
    expect(outcome.lease).toMatchObject({ held: true });
    expect(pauses()).toEqual([0, 51_840, 7000]);
    expect(asked()).toMatchObject([
      { waitSeconds: 0 },
      { waitSeconds: 20, sleepMs: 300_000 },
      { waitSeconds: 20, sleepMs: 300_000, ticket: 'ticket-1', requestId: 'request-1' },
      { waitSeconds: 20, sleepMs: 300_000, ticket: 'ticket-1', requestId: 'request-1' },
    ]);
    expect([asked()[0]?.sleepMs, asked()[1]?.ticket]).toEqual([undefined, undefined]);
    const places = events.flatMap((event) => (event.type === 'waiting' ? [event.place] : []));
    expect([places, withdrawn()]).toEqual([[undefined, 412, 412], []]);
  });

  it('a caller asks again at once if the service says so', async () => {
    const heldCall = (sent: Sent, by: ManualSurroundings) => void by.after(20_000, () => asleep(0, 5000)(sent));
    const setting = world({ waitMs: FOREVER }, asleep(1000), (sent) => heldCall(sent, setting.by), grant);
    await setting.by.advance(30_000);
    expect(setting.pauses()).toEqual([0, 1000, 20_000]);
    expect(setting.outcome.lease).toBeDefined();
  });

  it('a caller says that it can sleep for what is left of its wait', async () => {
    const { by, asked } = world({ waitMs: 90_500 }, asleep(30_000));
    await by.advance(80_000);
    expect(asked().map(({ waitSeconds, sleepMs }) => [waitSeconds, sleepMs])).toEqual([
      [0, undefined],
      [20, 90_500],
      [20, 60_500],
      [20, 30_500],
    ]);
  });

  it.each([{ fair: false }, { waitMs: 900 }])('a caller with %o does not offer to sleep', async (options) => {
    const { by, asked } = world({ waitMs: 60_000, ...options }, failing('LeaseHeld', held));
    await by.advance(2000);
    expect(asked().length).toBeGreaterThan(1);
    expect(asked().filter(({ sleepMs }) => sleepMs !== undefined)).toEqual([]);
  });
});

describe('a caller that gives up', () => {
  it('a caller sleeps until its wait ends, asks once more, and withdraws', async () => {
    const { by, outcome, asked, pauses, withdrawn } = world({ waitMs: 70_000 }, asleep(50_000));
    await by.advance(69_000);
    expect([outcome, withdrawn()]).toEqual([{}, []]);
    await by.advance(2000);
    expect(outcome.error).toMatchObject({ code: 'LeaseHeld', place: 412 });
    expect(pauses()).toEqual([0, 50_000, 20_000]);
    expect(asked().at(-1)).toMatchObject({ waitSeconds: 0, ticket: 'ticket-1' });
    await by.advance(100_000);
    expect([withdrawn(), by.timers]).toEqual([['ticket-1'], []]);
  });

  it('a caller aborted in its sleep sends only a withdrawal by its ticket', async () => {
    const controller = new AbortController();
    const setting = world({ waitMs: FOREVER, signal: controller.signal }, asleep(200_000));
    await setting.by.advance(30_000);
    controller.abort('enough');
    await setting.done;
    await settled();
    expect(setting.outcome.error).toBe('enough');
    await setting.by.advance(500_000);
    expect([setting.asked().length, setting.withdrawn(), setting.by.timers]).toEqual([2, ['ticket-1'], []]);
  });

  it('a caller whose returns fail for too long withdraws its place', async () => {
    const { by, outcome, withdrawn } = world({ waitMs: 20_000, timeoutMs: 5000 }, asleep(5000), failing('Throttled'));
    await by.advance(60_000);
    expect([outcome.error, withdrawn()]).toMatchObject([{ code: 'Throttled' }, ['ticket-1']]);
  });

  it('a caller that was held to the end of its wait withdraws its row', async () => {
    const { by, outcome, withdrawn } = world({ waitMs: 3000 }, asleep(0, 5000));
    await by.advance(10_000);
    expect([outcome.error, withdrawn()]).toMatchObject([{ code: 'LeaseHeld' }, ['ticket-1']]);
  });
});

describe('a return that fails', () => {
  it('a throttled caller doubles its sleep, up to eight times, until a call passes', async () => {
    const throttled = Array<(sent: Sent) => unknown>(4).fill(failing('Throttled'));
    const { by, pauses } = world({ waitMs: FOREVER, timeoutMs: FOREVER }, asleep(1000), ...throttled, asleep(1000));
    by.chance = () => 0;
    await by.advance(26_500);
    expect(pauses()).toEqual([0, 1000, 2000, 4000, 8000, 8000, 1000, 1000, 1000]);
  });

  it('a throttled caller with a long sleep tries again while its place is kept', async () => {
    const { by, pauses } = world({ waitMs: FOREVER }, asleep(200_000), failing('Throttled'));
    by.chance = () => 0;
    await by.advance(258_000);
    expect(pauses()).toEqual([0, 200_000, 30_000, 15_000, 7500, 3750]);
  });

  it('a throttled caller does not sleep beyond the end of its wait', async () => {
    const { by, pauses } = world({ waitMs: 12_000 }, asleep(10_000), failing('Throttled'));
    by.chance = () => 0.5;
    await by.advance(12_000);
    expect(pauses().slice(0, 3)).toEqual([0, 10_000, 2000]);
  });

  it.each([
    ['breaks', failing('Unreachable')],
    ['has no answer', silent],
  ])('a caller keeps its ticket if a return %s, and soon tries again', async (_, lost) => {
    const { by, outcome, asked, pauses } = world({ waitMs: FOREVER }, asleep(100_000), lost, asleep(3000), grant);
    await by.advance(150_000);
    expect(pauses()[2]).toBeLessThan(31_000);
    expect(asked().slice(2)).toMatchObject(Array(3).fill({ ticket: 'ticket-1' }));
    expect(outcome.lease).toBeDefined();
  });
});

it('a sleeping client over HTTP is throttled by the gateway', async () => {
  const bodies: Record<string, unknown>[] = [];
  const problem = (fields: object) => ({
    type: 'urn:holdfast:error:LeaseHeld',
    title: 'held',
    detail: 'held',
    traceId: 't',
    ...fields,
  });
  const leaseHeld = (fields: object) => [409, problem({ status: 409, code: 'LeaseHeld', ...fields })] as const;
  const answers = [
    leaseHeld(held),
    leaseHeld(inLine(60)),
    [429, { message: 'Too Many Requests' }],
    leaseHeld(inLine(50)),
  ];
  const site = await listen(async (request, response) => {
    const body = (await json(request)) as Record<string, unknown>;
    bodies.push({ at: performance.now(), ...body });
    const [status, answer] = answers.shift() ?? ([201, grantOf(body)] as const);
    response.writeHead(status as number, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  const lease = await new Holdfast({ endpoint: site.url, holder: 'x' }).acquire('k', { waitMs: 60_000 });
  await site.stop();
  expect(lease.held).toBe(true);
  expect(bodies.map(({ sleepMs, ticket }) => [typeof sleepMs, ticket])).toEqual([
    ['undefined', undefined],
    ['number', undefined],
    ...Array(3).fill(['number', 'ticket-1']),
  ]);
  const [, first = 0, second = 0, third = 0, last = 0] = bodies.map(({ at }) => Number(at));
  expect(second - first).toBeGreaterThan(55);
  expect(third - second).toBeGreaterThan(115);
  expect(last - third).toBeGreaterThan(45);
});
