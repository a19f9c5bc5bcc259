import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { seededIds, testSeed } from '../support/chance/seed.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
const world = await lineWorld({ clock: timeline });
const { acquire, release, rawItem, requests, steps, precededBy } = world;
afterAll(() => steps.stop());

beforeEach(() => {
  requests.sent = [];
  requests.faultsOf = {};
});

const waits = (key: string) => () => acquire({ key, holder: 'second', ttlSeconds: 10, waitSeconds: 20 });
const freeBeforeItsMark = (first: { key: string; leaseId: string }) => {
  requests.faultsOf.UpdateItem = ['none', precededBy(() => release(first))]; // the first try, and the mark
};

it('a call that joins a line just after the release takes the lease', async () => {
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

it('a plain caller does not pass a call between mark and hand-off', async () => {
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

describe('several permits', async () => {
  const timeline = new Timeline();
  const { now, sleep } = timeline;
  const clock = { now: () => Math.floor(now()), sleep };
  const world = await permitLineWorld({ clock, ids: seededIds(testSeed()) });
  const { acquire, park, release, read, keepWaiting, requests, steps } = world;
  afterAll(() => steps.stop());
  beforeEach(() => {
    requests.sent.length = 0;
  });

  type Proof = Parameters<typeof release>[0];

  /** How many milliseconds after the first of two releases the second one must take it for exited. */
  const A_WHILE = 100;

  describe('two hand-offs at once', () => {
    /** Two permits are held, and two calls are in line that have stopped polling. */
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

    it('a release that loses to another release of the line stops', async () => {
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

    it('a release leaves its room to the release before it', async () => {
      const held = await prepared('left');
      expect(await sentInBetween(held)).toEqual(['UpdateItem']);
      expect(requests.sent).toEqual(['UpdateItem', 'Query', 'UpdateItem', 'UpdateItem', 'UpdateItem']);
      expect(await holders('left')).toEqual(['c', 'd']);
    });

    it('a release hands off its room if the release before it may have exited', async () => {
      expect(await sentInBetween(await prepared('exited'), A_WHILE)).toContain('Query');
      expect(await sentInBetween(await prepared('in time'), A_WHILE - 1)).not.toContain('Query');
    });

    it('a release hands off its room if a task is next', async () => {
      const asked = { key: 'a task is next', limit: 2, ttlSeconds: 60 };
      const held = [await acquire({ ...asked, holder: 'a' }), await acquire({ ...asked, holder: 'b' })] as const;
      for (const holder of ['c', 'd']) {
        timeline.advance(1);
        await park({ ...asked, holder });
      }
      expect(await sentInBetween(held)).toContain('Query');
      expect(await holders('a task is next')).toEqual(['c', 'd']);
    });
  });
});
