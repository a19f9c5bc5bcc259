import { expect, it } from 'vitest';
import { listKeys } from '../../shared/locks/calls/list-keys.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call } from '../support/emulators/aws.ts';
import { aFew, isFull, rounds } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import type { Grant, LineWorld } from './world.ts';

const SECOND_MS = 1000;
const ROUNDS = rounds(10);
const base = testSeed();

interface Client {
  holder: string;
  callMs?: number;
  untilMs?: number;
  /** How long the program stands still after its first call. */
  pauseMs?: number;
}

/** The list of keys, which reads the records, must count as many waiters as the line of a key, which reads the rows. */
export async function counts(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { dependencies, acquire, release, cancel, park, parkNext, repair, rows, see, newKey, timeline } = world;
  const { now, sleep, later } = timeline;
  const play = timeline.play.bind(timeline);

  /** The list and the line of a key at one moment. */
  async function counted(key: string) {
    const { leases } = await listKeys(dependencies)({ prefix: key, state: 'active' }, call());
    const { waiting, waiters } = await see(key);
    return {
      listed: leases.find((one) => one.key === key)?.waiting ?? 0,
      waiting,
      holders: waiters.map(({ holder }) => holder),
    };
  }

  /** Asks again for `untilMs`, as a client does. Before the second call the program stands still for `pauseMs`. */
  async function client(key: string, { holder, callMs = 3000, untilMs = 14_000, pauseMs = 0 }: Client) {
    const until = now() + untilMs;
    let retryWith: object = { requestId: holder };
    for (let calls = 1; now() < until; calls++) {
      const waitSeconds = Math.ceil(Math.min(callMs, until - now()) / SECOND_MS);
      const refused = await failure(acquire({ key, holder, waitSeconds, ttlSeconds: 600, ...retryWith }));
      retryWith = refused.context.retryWith as object;
      await sleep(calls === 1 ? pauseMs : 0);
    }
  }
  /** A call that waits for a second, and leaves. @returns the fields by which the caller keeps its position */
  const leaves = async (key: string, holder: string) => {
    const refused = await failure(acquire({ key, holder, requestId: holder, waitSeconds: 1 }));
    return refused.context.retryWith as object;
  };

  const held = (ttlSeconds = 3600) => acquire({ key: newKey(), holder: 'first', ttlSeconds });

  /** Counts four times a second. */
  async function samples(key: string, ms: number) {
    const seen: Awaited<ReturnType<typeof counted>>[] = [];
    for (const until = now() + ms; now() < until; await sleep(250)) seen.push(await counted(key));
    return seen;
  }

  /** Callers that wait, pause and give up, tasks, holders that release, and the schedule. */
  async function playRound(seed: number) {
    const random = seededRandom(seed);
    const below = (most: number) => Math.floor(random() * most);
    const key = newKey();
    const until = now() + 40_000;
    const asks = async (holder: string) => {
      for (let turn = 0; now() < until; turn++) {
        await sleep(below(6000));
        const requestId = `${holder} ${turn}`;
        let retryWith: object | undefined = {};
        while (retryWith && now() < until) {
          const waitSeconds = 1 + below(8);
          const asked: object = { key, holder, requestId, waitSeconds, ttlSeconds: 30, ...retryWith };
          const answer: Grant | Awaited<ReturnType<typeof failure>> = await acquire(asked).catch(
            (error) => error as Awaited<ReturnType<typeof failure>>,
          );
          retryWith = 'leaseId' in answer ? undefined : (answer.context.retryWith as object | undefined);
          await sleep(below(3) === 0 ? below(7000) : below(300));
          if ('leaseId' in answer) await release(answer);
          if (below(8) === 0) break; // gives up
        }
      }
    };
    const parks = async () => {
      for (; now() < until; await sleep(5000 + below(9000))) await park({ key, holder: 'task', ttlSeconds: 5 });
    };
    const repairs = async () => {
      for (; now() < until; await sleep(20_000)) await repair(key);
    };
    const plain = async () => {
      for (; now() < until; await sleep(below(4000))) {
        const grant = await acquire({ key, holder: 'plain', ttlSeconds: 10 }).catch(() => undefined);
        await sleep(below(2000));
        if (grant) await release(grant);
      }
    };
    const sampled = async () => {
      await sleep(1); // Actors begin at the same time. From then on, one acts while all others sleep.
      for (; now() < until; await sleep(97)) {
        const { listed, waiting } = await counted(key);
        expect(listed, `seed ${seed}, ${until - now()} ms before the end`).toBeGreaterThanOrEqual(waiting);
      }
    };
    await play(
      sampled,
      () => asks('a'),
      () => asks('b'),
      () => asks('c'),
      () => asks('d'),
      parks,
      repairs,
      plain,
    );
  }

  // A caller that comes back after its row has expired counts twice, until a call that leaves counts the line.
  const PAUSES: [how: string, pauseMs: number, listed: number][] = [
    ['a moment', 200, 3],
    ['four seconds', 4000, 3],
    ['nine seconds', 9000, 6],
  ];
  it.each(aFew(1, PAUSES))(
    'a list counts all waiters after their callers paused for %s',
    async (_, pauseMs, listed) => {
      const { key } = await held();
      const clients = ['a', 'b', 'c'].map((holder) => () => client(key, { holder, pauseMs }));
      const [seen] = await play(() => later(100, () => samples(key, 13_000)), ...clients);
      expect(seen.filter(({ listed, waiting }) => listed < waiting)).toEqual([]);
      expect(seen.at(-1)).toMatchObject({ listed, waiting: 3 });
    },
  );

  it('the positions in line do not change while callers ask again', async () => {
    const { key } = await held();
    const holders = Array.from({ length: 5 }, (_, index) => `etl-${index + 8}`);
    const clients = holders.map((holder, index) => () => later(index, () => client(key, { holder, pauseMs: 700 })));
    const [seen] = await play(() => later(100, () => samples(key, 13_000)), ...clients);
    for (const sample of seen) expect(sample.holders).toEqual(holders);
  });

  it("a list counts callers that may come back after another caller's grant", async () => {
    const first = await held();
    const { key } = first;
    const [left] = await play(
      () => leaves(key, 'a'),
      () => leaves(key, 'b'),
    );
    await release(first);
    expect(await counted(key)).toMatchObject({ listed: 2, waiting: 2 });
    await acquire({ key, holder: 'plain', ttlSeconds: 600 });
    expect(await counted(key)).toMatchObject({ listed: 2, waiting: 2 });
    const [during] = await play(
      () => later(500, () => counted(key)),
      () => failure(acquire({ key, waitSeconds: 1, holder: 'a', ...left })),
    );
    expect(during).toMatchObject({ listed: 2, waiting: 2 });
    timeline.advance(5000);
    const { listed, waiting } = await counted(key);
    expect(listed).toBeGreaterThanOrEqual(waiting);
  });
  it('a list does not count callers that did not come back', async () => {
    const first = await held();
    await play(() => leaves(first.key, 'a'));
    await release(first);
    expect(await counted(first.key)).toMatchObject({ listed: 1, waiting: 1 });
    timeline.advance(5000);
    expect(await counted(first.key)).toMatchObject({ listed: 0, waiting: 0 });
  });

  it.runIf(isFull)(
    `a list never shows fewer waiters than wait, whoever comes and goes (${ROUNDS} rounds from seed ${base})`,
    async () => {
      for (let round = 0; round < ROUNDS; round++) await playRound(base + round);
    },
  );

  it('a call that leaves corrects a count of waiters that were withdrawn', async () => {
    const { key } = await held();
    await park({ key, holder: 'stays' });
    await parkNext({ key, holder: 'leaves' });
    await cancel(key, (await rows(key))[1]?.ticket?.S ?? '');
    await play(() => leaves(key, 'a'));
    expect(await counted(key)).toMatchObject({ listed: 2, waiting: 2 });
  });
}
