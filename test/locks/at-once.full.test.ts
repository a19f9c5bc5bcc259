import { afterAll, expect, it } from 'vitest';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { Timeline } from '../support/time/timeline.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
// Requests take parts of milliseconds, which a clock does not show.
const clock = { now: () => Math.floor(timeline.now()), sleep: timeline.sleep };
const seed = testSeed();
const world = await permitLineWorld({ clock, ids: seededIds(seed) });
const { acquire, release, read, form, rows, requests, dynamodb, steps } = world;
afterAll(() => steps.stop());

/** How long a request takes on the one processor that serves all callers one after the other, and how long it takes besides. */
const busy = { processorMs: 0, networkMs: 0, freeAt: 0, random: seededRandom(seed) };

dynamodb.middlewareStack.add(
  (next) => async (args) => {
    if (busy.networkMs === 0) return next(args);
    const between = (ms: number) => ms * (0.6 + 0.8 * busy.random());
    const half = between(busy.networkMs) / 2;
    busy.freeAt = Math.max(busy.freeAt, timeline.now()) + between(busy.processorMs);
    await timeline.sleep(busy.freeAt - timeline.now() + half);
    const answer = await next(args).catch((error) => error as Error);
    await timeline.sleep(half);
    if (answer instanceof Error) throw answer;
    return answer;
  },
  { step: 'initialize', priority: 'high', name: 'busy' },
);

const own = { how: 'on processors of their own', processorMs: 0, networkMs: 1 };
const slow = { how: 'on processors of their own, with slow requests', processorMs: 0, networkMs: 3 };
const shared = { how: 'on one processor', processorMs: 1, networkMs: 1 };
// A release and a claim that see the same room, and a caller that does not know its position, cost 25 requests for one permit and 10.5 for eight.
const crowds = [
  { limit: undefined, ...own, maxRequests: 13, maxMs: 1500 },
  { limit: undefined, ...slow, maxRequests: 13.5, maxMs: 2300 },
  { limit: undefined, ...shared, maxRequests: 12.5, maxMs: 2500 },
  { limit: 1, ...own, maxRequests: 13.5, maxMs: 1800 },
  { limit: 1, ...slow, maxRequests: 15, maxMs: 2600 },
  { limit: 1, ...shared, maxRequests: 13.5, maxMs: 3500 },
  { limit: 8, ...own, maxRequests: 9.8, maxMs: 350 },
  { limit: 8, ...slow, maxRequests: 10.2, maxMs: 600 },
  { limit: 8, ...shared, maxRequests: 9.8, maxMs: 1200 },
].map((crowd) => ({ ...crowd, callers: 64, holdMs: 5, turns: 1 }));
const returning = [
  { limit: undefined, ...own, callers: 64, holdMs: 5, turns: 10, maxRequests: 9.5, maxMs: 14_000 },
  { limit: undefined, ...slow, callers: 64, holdMs: 5, turns: 10, maxRequests: 10, maxMs: 18_000 },
  { limit: undefined, ...own, callers: 24, holdMs: 20, turns: 10, maxRequests: 10, maxMs: 9600 },
  { limit: undefined, ...own, callers: 8, holdMs: 200, turns: 20, maxRequests: 13, maxMs: 42_000 },
  { limit: 1, ...own, callers: 64, holdMs: 5, turns: 10, maxRequests: 10.5, maxMs: 13_000 },
];
it.each([...crowds, ...returning])(
  `a crowd sends few requests: $callers callers, $limit permits, $how, $turns turns (seed ${seed})`,
  async ({ limit, how, callers, holdMs, turns, maxRequests, maxMs, ...machine }) => {
    const key = `${limit}, ${how}, ${callers}, ${turns}`;
    if (limit) await form(key);
    requests.sent.length = 0;
    Object.assign(busy, machine, { freeAt: timeline.now() });
    const beganAt = timeline.now();
    let holders = 0;
    const caller = (holder: string) => async () => {
      for (let turn = 0; turn < turns; turn++) {
        const grant = await acquire({ key, holder, ...(limit && { limit }), ttlSeconds: 10, waitSeconds: 20 });
        expect(++holders).toBeLessThanOrEqual(limit ?? 1);
        await timeline.sleep(holdMs);
        holders--;
        expect(await release(grant)).toMatchObject({ released: true });
      }
    };
    await timeline.play(...Array.from({ length: callers }, (_, at) => caller(`caller ${at}`)));
    busy.networkMs = 0;
    expect(requests.sent.length / callers / turns).toBeLessThanOrEqual(maxRequests);
    expect(timeline.now() - beganAt).toBeLessThanOrEqual(maxMs);
    expect(await read(key)).toMatchObject({ holders: [], waiting: 0 });
    expect(await rows(key)).toEqual([]);
  },
);
