import { afterAll, describe, expect, it } from 'vitest';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { Timeline } from '../support/time/timeline.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
// Requests take parts of milliseconds, which a clock does not tell.
const clock = { now: () => Math.floor(timeline.now()), sleep: timeline.sleep };
const seed = testSeed();
const world = await poolLineWorld({ clock, ids: seededIds(seed) });
const { acquire, release, read, form, rows, requests, dynamodb, steps } = world;
afterAll(() => steps.stop());

const CALLERS = 64;
const HOLD_MS = 5;

/** One processor has the requests of all callers, one after the other, and each takes so long besides. */
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

describe('callers that come at once for permits, in simulated time', () => {
  const own = { how: 'on processors of their own', processorMs: 0, networkMs: 1 };
  const slow = { how: 'on processors of their own, with slow requests', processorMs: 0, networkMs: 3 };
  const shared = { how: 'on one processor', processorMs: 1, networkMs: 1 };
  // A release and a claim that look at the same room, and a caller that does not know its position, cost 25 requests for one permit and 10.5 for eight.
  const crowds = [
    { limit: 1, ...own, mostRequests: 13.5, mostMs: 1800 },
    { limit: 1, ...slow, mostRequests: 15, mostMs: 2600 },
    { limit: 1, ...shared, mostRequests: 13.5, mostMs: 3500 },
    { limit: 8, ...own, mostRequests: 9.8, mostMs: 350 },
    { limit: 8, ...slow, mostRequests: 10.2, mostMs: 600 },
    { limit: 8, ...shared, mostRequests: 9.8, mostMs: 1200 },
  ];
  it.each(crowds)(
    `callers that come at once for $limit permits, $how, send few requests, none too late (seed ${seed})`,
    async ({ limit, how, mostRequests, mostMs, ...machine }) => {
      const key = `${limit}, ${how}`;
      await form(key);
      requests.sent.length = 0;
      Object.assign(busy, machine, { freeAt: timeline.now() });
      const beganAt = timeline.now();
      let holders = 0;
      const turn = (holder: string) => async () => {
        const grant = await acquire({ key, holder, limit, ttlSeconds: 10, waitSeconds: 20 });
        expect(++holders).toBeLessThanOrEqual(limit);
        await timeline.sleep(HOLD_MS);
        holders--;
        expect(await release(grant)).toMatchObject({ released: true });
      };
      await timeline.play(...Array.from({ length: CALLERS }, (_, at) => turn(`caller ${at}`)));
      busy.networkMs = 0;
      expect(requests.sent.length / CALLERS).toBeLessThanOrEqual(mostRequests);
      expect(timeline.now() - beganAt).toBeLessThanOrEqual(mostMs);
      expect(await read(key)).toMatchObject({ used: 0, holders: [], waiting: 0 });
      expect(await rows(key)).toEqual([]);
    },
  );
});
