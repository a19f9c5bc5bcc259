import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { call } from '../support/emulators/aws.ts';
import { isFull, rounds } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
// Requests take parts of milliseconds, which a clock does not tell.
const world = await queueWorld({ clock: { now: () => Math.floor(timeline.now()), sleep: timeline.sleep } });
const { acquire, release, rows, rawItem, requests, dependencies, steps, precededBy } = world;
afterAll(() => steps.stop());

const CALLERS = 32;
const HOLD_MS = 5;
/** Those of the bench. */
const MOST_REQUESTS = 13;
const ROUNDS = rounds(2);

/** One processor has the requests of all callers, one after the other, and each takes so long besides. */
const busy = { processorMs: 0, networkMs: 1, freeAt: 0, random: () => 0 };
let lost: string[] = [];

dependencies.dynamodb.middlewareStack.add(
  (next, context) => async (args) => {
    const between = (ms: number) => ms * (0.6 + 0.8 * busy.random());
    const half = between(busy.networkMs) / 2;
    busy.freeAt = Math.max(busy.freeAt, timeline.now()) + between(busy.processorMs);
    await timeline.sleep(busy.freeAt - timeline.now() + half);
    const answer = await next(args).catch((error) => {
      if (error.name === 'ConditionalCheckFailedException') lost.push(String(context.commandName));
      return error as Error;
    });
    await timeline.sleep(half);
    if (answer instanceof Error) throw answer;
    return answer;
  },
  { step: 'initialize', priority: 'high', name: 'busy' },
);

beforeEach(() => {
  lost = [];
  requests.sent = [];
  requests.faultsOf = {};
});

describe.runIf(isFull)('callers that come at once, each once', () => {
  const base = testSeed();
  const slow = { processorMs: 1, networkMs: 1 };
  it.each([
    { how: 'on processors of their own', processorMs: 0, networkMs: 1 },
    { how: 'on one processor, so that the first turn is over before the others have joined', ...slow },
  ])(
    `callers that come at once, $how, send few requests, and each request has an effect (${ROUNDS} rounds from seed ${base})`,
    async ({ how, ...machine }) => {
      for (let round = 0; round < ROUNDS; round++) {
        const seed = base + round;
        Object.assign(busy, machine, { freeAt: timeline.now(), random: seededRandom(seed) });
        lost = [];
        requests.sent = [];
        const key = `crowd ${how} ${round}`;
        let holders = 0;
        const turn = (holder: string) => async () => {
          const grant = await acquire({ key, holder, ttlSeconds: 10, waitSeconds: 20 });
          expect(++holders, `seed ${seed}`).toBe(1);
          await timeline.sleep(HOLD_MS);
          holders--;
          expect(await release(grant)).toMatchObject({ released: true });
        };
        await timeline.play(...Array.from({ length: CALLERS }, (_, at) => turn(`caller ${at}`)));
        expect(requests.sent.length / CALLERS, `seed ${seed}`).toBeLessThanOrEqual(MOST_REQUESTS);
        // The first try of all but one, and a few where the turns of the first ones cross.
        const updates = lost.filter((command) => command === 'UpdateItemCommand');
        expect(updates.length, `seed ${seed}`).toBeLessThanOrEqual(CALLERS / 4);
        expect(await rows(key)).toEqual([]);
      }
    },
  );
});

describe('a call that joins just after the lease came free', () => {
  const waits = (key: string) => () => acquire({ key, holder: 'second', ttlSeconds: 10, waitSeconds: 20 });
  const freeBeforeItsMark = (first: { key: string; leaseId: string }) => {
    requests.faultsOf.UpdateItem = ['none', precededBy(() => release(first))]; // the first try, and the mark
  };

  it('a call that joins just after the lease came free writes the mark, and takes the lease at once, without a look', async () => {
    const first = await acquire({ key: 'just free', holder: 'first' });
    freeBeforeItsMark(first);
    requests.sent = [];
    const [grant] = await timeline.play(waits('just free'));
    expect(grant).toMatchObject({ holder: 'second', previous: { holder: 'first', ended: 'released' } });
    expect(requests.sent).toEqual([
      ...['UpdateItem', 'PutItem', 'UpdateItem', 'UpdateItem'], // the first try, the ticket, the mark, the release before that
      ...['Query', 'UpdateItem', 'DeleteItem'], // the line, the transfer to itself, the ticket
    ]);
    expect(await rawItem('just free')).not.toHaveProperty('mark');
  });

  it('a call that joins is not passed by a plain caller that comes between its mark and its hand-off', async () => {
    const first = await acquire({ key: 'not passed', holder: 'first' });
    freeBeforeItsMark(first);
    let plain: Awaited<ReturnType<typeof failure>> | undefined;
    requests.faultsOf.Query = [
      precededBy(async () => {
        plain = await failure(acquire({ key: 'not passed', holder: 'plain' }));
      }),
    ];
    const [grant] = await timeline.play(waits('not passed'));
    expect(plain).toMatchObject({ code: 'LeaseHeld', context: { holder: 'second' } });
    expect(grant).toMatchObject({ holder: 'second', previous: { holder: 'first', ended: 'released' } });
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('a call that joins is answered with LeaseLost if the grant that ended was its own', async () => {
    const asked = { key: 'own', holder: 'h', requestId: 'r' };
    const first = await acquire(asked);
    await release(first);
    const again = acquire({ ...asked, waitSeconds: 1 }, call());
    expect(await failure(again)).toMatchObject({ code: 'LeaseLost' });
    expect(await rawItem('own')).not.toHaveProperty('mark');
  });
});

describe('a line for several permits', async () => {
  const timeline = new Timeline();
  const { now, sleep } = timeline;
  const clock = { now: () => Math.floor(now()), sleep };
  const world = await poolLineWorld({ clock, ids: seededIds(testSeed()) });
  const { acquire, park, release, read, keepWaiting, requests, dynamodb, steps } = world;
  afterAll(() => steps.stop());
  beforeEach(() => {
    requests.sent.length = 0;
  });

  type Proof = Parameters<typeof release>[0];

  /** The first of two releases has exited by then, as far as the second can see. */
  const A_WHILE = 100;

  describe('two calls that give to one line at the same time', () => {
    /** Two permits are held, and two calls in line, which look no more. */
    const prepared = async (key: string) => {
      const asked = { key, limit: 2, ttlSeconds: 60 };
      const held = [await acquire({ ...asked, holder: 'a' }), await acquire({ ...asked, holder: 'b' })] as const;
      for (const holder of ['c', 'd']) {
        const [left] = await timeline.play(() => failure(acquire({ ...asked, holder, waitSeconds: 1 })));
        const { ticket } = left.context.retryWith as { ticket: string };
        await keepWaiting(key, ticket, now() + 60_000);
      }
      requests.sent.length = 0;
      return held;
    };
    const holders = async (key: string) => (await read(key)).holders.map(({ holder }) => holder);

    it('two calls that give room to one line at the same time do not race: the call whose tickets the other call has granted stops', async () => {
      const [a, b] = await prepared('beaten');
      requests.faultsOf.Query = [
        async (send) => {
          const answer = await send();
          timeline.advance(A_WHILE);
          await release(b);
          return answer;
        },
      ];
      await release(a);
      const [first, second] = [
        ['UpdateItem', 'Query'],
        ['UpdateItem', 'Query', 'UpdateItem'],
      ];
      expect(requests.sent).toEqual([...first, ...second, 'UpdateItem']);
      expect(await holders('beaten')).toEqual(['c', 'd']);
    });

    /** What the other release sends while the first has read the line and not written its grant. */
    const sentInBetween = async ([a, b]: readonly [Proof, Proof], waitMs = 0) => {
      let sent: string[] = [];
      requests.faultsOf.Query = [
        async (send) => {
          const answer = await send();
          timeline.advance(waitMs);
          const before = requests.sent.length;
          await release(b);
          sent = requests.sent.slice(before);
          return answer;
        },
      ];
      await release(a);
      return sent;
    };

    it('a release leaves its room to the release before it, which hands off the room of both', async () => {
      const held = await prepared('left');
      expect(await sentInBetween(held)).toEqual(['UpdateItem']);
      expect(requests.sent).toEqual(['UpdateItem', 'Query', 'UpdateItem', 'UpdateItem', 'UpdateItem']);
      expect(await holders('left')).toEqual(['c', 'd']);
    });

    it('a release hands off its room if the release before it may have exited', async () => {
      expect(await sentInBetween(await prepared('exited'), A_WHILE)).toContain('Query');
      expect(await sentInBetween(await prepared('in time'), A_WHILE - 1)).not.toContain('Query');
    });

    it('a release hands off its room if a task is next, because a task does not look by itself', async () => {
      const asked = { key: 'a task is next', limit: 2, ttlSeconds: 60 };
      const held = [await acquire({ ...asked, holder: 'a' }), await acquire({ ...asked, holder: 'b' })] as const;
      for (const holder of ['c', 'd']) {
        timeline.advance(1);
        await park({ ...asked, holder });
      }
      expect(await sentInBetween(held)).toContain('Query');
      expect(await holders('a task is next')).toEqual(['c', 'd']);
    });

    it('a release hands off its room if there was no room before it', async () => {
      const [a, b] = await prepared('full before');
      await release(a);
      requests.sent.length = 0;
      await release(b);
      expect(requests.sent).toEqual(['UpdateItem', 'Query', 'UpdateItem']);
      expect(await holders('full before')).toEqual(['c', 'd']);
    });

    it('a call leaves the room of a release to that release, joins the line, and passes no waiter', async () => {
      const [a] = await prepared('first try');
      let sent: string[] = [];
      requests.faultsOf.Query = [
        async (send) => {
          const answer = await send();
          const before = requests.sent.length;
          await failure(acquire({ key: 'first try', limit: 2, ttlSeconds: 60, holder: 'plain' }));
          sent = requests.sent.slice(before);
          return answer;
        },
      ];
      await release(a);
      expect(sent).toEqual(['UpdateItem']);
      expect(await holders('first try')).toEqual(['b', 'c']);
    });

    it('the next in line leaves the room of a release to that release', async () => {
      const asked = { key: 'next leaves', limit: 1, ttlSeconds: 60 };
      const first = await acquire({ ...asked, holder: 'a' });
      const releasing = async () => {
        await sleep(20);
        requests.faultsOf.Query = [
          async (send) => {
            await sleep(20);
            return send();
          },
        ];
        await release(first);
      };
      const [grant] = await timeline.play(() => acquire({ ...asked, holder: 'b', waitSeconds: 5 }), releasing);
      expect(grant).toMatchObject({ holder: 'b' });
      expect(requests.sent.filter((command) => command === 'Query')).toHaveLength(1);
    });

    it('leave no room: the one that wins sees what the other has freed, and goes on', async () => {
      const [a, b] = await prepared('goes on');
      const granted = Promise.withResolvers<void>();
      let other: Promise<unknown> | undefined;
      const released = Promise.withResolvers<void>();
      requests.faultsOf.UpdateItem = [
        'none',
        async (send) => {
          const answer = await send();
          released.resolve();
          return answer;
        },
        async (send) => {
          const answer = await send();
          granted.resolve();
          await other; // it has lost by the time at which this one looks at its answer
          return answer;
        },
      ];
      requests.faultsOf.Query = [
        async (send) => {
          const answer = await send();
          timeline.advance(A_WHILE);
          other = release(b);
          await released.promise;
          return answer;
        },
        async (send) => {
          const answer = await send();
          await granted.promise;
          return answer;
        },
      ];
      await release(a);
      expect(requests.sent.filter((command) => command === 'UpdateItem')).toHaveLength(5);
      expect(await holders('goes on')).toEqual(['c', 'd']);
    });
  });

  describe('a crowd in line that comes back, in simulated time in which requests alone take any', () => {
    const REQUEST_MS = 2;
    let isSlow = false;
    dynamodb.middlewareStack.add(
      (next) => async (args) => {
        if (!isSlow) return next(args);
        await sleep(REQUEST_MS / 2);
        const answer = await next(args);
        await sleep(REQUEST_MS / 2);
        return answer;
      },
      { step: 'deserialize', priority: 'low', name: 'takes a while' },
    );

    // The worst of twelve seeds: 10.4 and 13.3 requests, 126 and 16 grants a second. Calls that do not know their places take 13 and 18, and have 70 and 14.
    const crowds = [
      { callers: 48, limit: 8, mostRequests: 12, leastPerSecond: 90 },
      { callers: 24, limit: 1, mostRequests: 15, leastPerSecond: 12 },
    ];
    it.runIf(isFull).each(crowds)(
      'a crowd in line that comes back sends few requests, none too late: $callers callers for $limit permits, each for five milliseconds',
      async ({ callers, limit, ...bounds }) => {
        const key = `${callers} for ${limit}`;
        isSlow = true;
        const beganAt = now();
        const turns = Array.from({ length: callers }, (_, nth) => async () => {
          await sleep(nth / 8);
          for (let turn = 0; turn < 2; turn++) {
            const grant = await acquire({ key, holder: `h${nth}`, limit, ttlSeconds: 10, waitSeconds: 20 });
            await sleep(5);
            await release(grant);
          }
        });
        await timeline.play(...turns);
        isSlow = false;
        const context = `seed ${testSeed()}`;
        const [each, perSecond] = [requests.sent.length / (2 * callers), (2000 * callers) / (now() - beganAt)];
        expect(each, context).toBeLessThanOrEqual(bounds.mostRequests);
        expect(perSecond, context).toBeGreaterThanOrEqual(bounds.leastPerSecond);
        expect(await read(key), context).toMatchObject({ used: 0, holders: [], waiting: 0 });
      },
    );
  });
});
