import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call } from '../support/emulators/aws.ts';
import { isFull, rounds } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

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
    requests.faultsOf.UpdateItem = [precededBy(() => release(first))];
  };

  it('a call that joins just after the lease came free writes the mark, and takes the lease at once, without a look', async () => {
    const first = await acquire({ key: 'just free', holder: 'first' });
    freeBeforeItsMark(first);
    requests.sent = [];
    const [grant] = await timeline.play(waits('just free'));
    expect(grant).toMatchObject({ holder: 'second', previous: { holder: 'first', ended: 'released' } });
    expect(requests.sent).toEqual([
      ...['PutItem', 'PutItem', 'UpdateItem', 'UpdateItem'], // the first try, the ticket, the mark, the release before that
      ...['Query', 'UpdateItem', 'DeleteItem'], // the line, the transfer to itself, the ticket
    ]);
    expect(await rawItem('just free')).not.toHaveProperty('waiters');
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
    expect(await rawItem('own')).not.toHaveProperty('waiters');
  });
});
