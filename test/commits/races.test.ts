import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import type { Fault, Requests } from '../support/emulators/aws.ts';
import { post } from '../support/stack/adapters.ts';
import { aFew, expectAllHappened, goesOn, type Happened, rounds } from '../support/time/rounds.ts';
import { type CommitWorld, commitWorld, PROTOCOLS } from '../support/worlds/commits.ts';
import { ObjectStoreWriter } from '../support/worlds/object-store.ts';

const all = <T>(count: number, work: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)));

interface Playing {
  count: number;
  atOnce: number;
  happened?: Happened;
}

/** Runs every round, some at a time: they share nothing but the emulators. */
async function play({ count, atOnce, happened = {} }: Playing, round: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  await all(atOnce, async () => {
    while (goesOn(next, count, happened)) await round(next++);
  });
}

describe.each([
  ['dynamo', 200],
  ['native', 50],
] as const)('calls of Holdfast, protocol %s', async (protocol, fenceRounds) => {
  const world = await commitWorld({ protocol });

  it('one of 50 creates of a path wins, and 49 learn its ETag', async () => {
    for (let round = 0; round < rounds(20, 1); round++) {
      const path = `create/${round}`;
      const answers = await all(50, (writer) =>
        post(world.handlers.commit, { path, ifNoneMatch: '*', body: `writer ${writer}`, commitId: `c-${writer}` }),
      );
      const [winner, ...others] = answers.filter(({ status }) => status === 201);
      expect(others).toEqual([]);
      const { etag } = await world.read(path);
      expect(winner?.body).toMatchObject({ path, etag, repeated: false });
      const lost = answers.filter(({ status }) => status === 412);
      expect(lost).toHaveLength(49);
      for (const { outcome, body } of lost) expect([outcome, body.etag]).toEqual(['PreconditionFailed', etag]);
    }
  });

  const each = rounds(10, 3);
  it(`5 workers of ${each} compare-and-swap increments count to ${5 * each}`, async () => {
    await world.commit({ path: 'counter', ifNoneMatch: '*', body: '0' });
    await all(5, async () => {
      for (let done = 0; done < each; ) {
        const { etag } = await world.read('counter');
        const value = Number(await world.body('counter'));
        const answer = await post(world.handlers.commit, { path: 'counter', ifMatch: etag, body: String(value + 1) });
        expect(['ok', 'PreconditionFailed']).toContain(answer.outcome);
        if (answer.outcome === 'ok') done += 1;
      }
    });
    expect(await world.body('counter')).toBe(String(5 * each));
  });

  it('the older holder never overwrites the object of the newer one', async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    await play({ count: rounds(fenceRounds, 5), atOnce: 8 }, async (round) => {
      const path = `fence/${round}`;
      const pause = [random() * 12, random() * 4];
      let newerHasWritten = false;
      const commit = async (holder: string, token: number) => {
        const { etag } = await world.read(path);
        const condition = etag === null ? { ifNoneMatch: '*' } : { ifMatch: etag };
        const lateFor = newerHasWritten;
        const fence = { key: 'job', token };
        const body = `${holder} ${random()}`;
        const { outcome } = await post(world.handlers.commit, { path, ...condition, body, fence });
        if (holder === 'older' && lateFor) expect(outcome).toBe('FenceRejected');
        return outcome;
      };
      const older = async () => {
        for (let tries = 0; tries < 3; tries++) {
          await commit('older', 10);
          await delay(pause[1]);
        }
      };
      const newer = async () => {
        await delay(pause[0]);
        while ((await commit('newer', 11)) !== 'ok');
        newerHasWritten = true;
      };
      await Promise.all([older(), newer()]);
      expect([seed, round, (await world.body(path))?.slice(0, 5)]).toEqual([seed, round, 'newer']);
      expect((await world.read(path)).fence).toEqual({ key: 'job', token: 11 });
    });
  });
});

describe('races with the Rust writer on one table and bucket', async () => {
  const world = await commitWorld({ clock: systemClock });
  const { table, bucket } = world;

  const raceRounds = rounds(200, 6);

  it(`a race with the Rust writer has one winner; ${raceRounds} seeded races`, async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    const won = { ours: 0, rust: 0 };
    await play({ count: raceRounds, atOnce: 20, happened: won }, async (race) => {
      const path = `race/${race}`;
      const etag = random() < 0.5 ? undefined : await world.rawPut(path, 'before');
      const rustIsIn = Promise.withResolvers<void>();
      const writers = Array.from({ length: 2 + Math.floor(random() * 3) }, (_, index) => {
        const kind = index === 0 ? 'ours' : index === 1 ? 'rust' : random() < 0.5 ? 'ours' : 'rust';
        const startMs = random() * 8;
        return {
          kind,
          body: `writer ${index}`,
          // Holdfast needs fewer requests and could always win, so in half of the races the Rust writer begins.
          start: kind === 'ours' && race % 2 === 1 ? rustIsIn.promise : delay(startMs),
          isIn: rustIsIn.resolve,
          stallMs: random() * 12,
          waitSeconds: random() < 0.5 ? 0 : 2,
        };
      });
      const outcomes = await Promise.all(writers.map((writer) => race1(path, etag, writer)));
      const winners = writers.filter((_, index) => outcomes[index] === 'won');
      expect([seed, race, outcomes, winners.length]).toEqual([seed, race, outcomes, 1]);
      const [winner] = winners;
      expect([seed, race, await world.body(path)]).toEqual([seed, race, winner?.body]);
      won[winner?.kind === 'ours' ? 'ours' : 'rust'] += 1;
    });
    // Each kind of writer must win some races.
    expectAllHappened(won, 1, ['rust']);
  });

  interface Writer {
    kind: string;
    body: string;
    /** When it starts. */
    start: Promise<void>;
    /** A Rust writer calls it once its record stands. */
    isIn: () => void;
    stallMs: number;
    waitSeconds: number;
  }

  async function race1(path: string, etag: string | undefined, writer: Writer): Promise<string> {
    await writer.start;
    if (writer.kind === 'ours') return ours(world, path, etag, writer);
    const rust = new ObjectStoreWriter({
      table,
      bucket,
      clock: systemClock,
      beforeOperation: () => {
        writer.isIn();
        return delay(writer.stallMs);
      },
    });
    const result = await (etag ? rust.update(path, writer.body, etag) : rust.create(path, writer.body));
    return 'etag' in result ? 'won' : result.error;
  }

  async function ours(world: CommitWorld, path: string, etag: string | undefined, writer: Writer): Promise<string> {
    const condition = etag ? { ifMatch: etag } : { ifNoneMatch: '*' };
    const { body, waitSeconds } = writer;
    const { outcome } = await post(world.handlers.commit, { path, ...condition, body, waitSeconds });
    return outcome === 'ok' ? 'won' : outcome;
  }
});

const WRITERS = 3;
const COMMITS_EACH = rounds(12, 4);

/** The most repeats of a writer. The outcome of a commit that enough others have replaced can no longer be known. */
const MAX_DOUBTS = 20;

const CHAIN = 8;

/** The fault of a try. One try in four has a fault, which the seed chooses. */
function chaos(requests: Requests, random: () => number): void {
  const lost =
    (sent: boolean): Fault =>
    async (send) => {
      if (sent) await send();
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    };
  const faults: Fault[] = [
    lost(true),
    lost(false),
    'error500',
    { name: 'SlowDown', status: 503 },
    { name: 'ConditionalRequestConflict', status: 409 },
  ];
  const pick = (): Fault => (random() < 0.25 ? (faults[Math.floor(random() * faults.length)] ?? 'none') : 'none');
  // A list that never runs out.
  requests.faults = { shift: pick } as unknown as Fault[];
}

describe.each(aFew(1, PROTOCOLS))('writers of one log under faults, protocol %s', async (protocol) => {
  const world = await commitWorld({ protocol, clock: systemClock });

  it('the writers of a log find exactly the commits that were answered as landed', async () => {
    const seed = testSeed();
    const path = `log/${seed}`;
    await world.commit({ path, ifNoneMatch: '*', body: 'begin' });
    const answered = { landed: [] as string[], refused: [] as string[], nothing: [] as string[] };
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => append(writer, seededRandom(seed + writer))));

    const lines = (await world.body(path))?.split('\n').slice(1) ?? [];
    const unanswered = answered.nothing.filter((id) => lines.includes(id));
    expect([seed, lines.toSorted()]).toEqual([seed, [...answered.landed, ...unanswered].toSorted()]);
    expect([seed, answered.refused.filter((id) => lines.includes(id))]).toEqual([seed, []]);
    expect(lines.length).toBeGreaterThanOrEqual(COMMITS_EACH * WRITERS);

    /** Whether the object's chain of eight has forgotten the commit. Without records its outcome is then unknown. */
    async function isOutrun(commitId: string): Promise<boolean> {
      if (protocol !== 'native') return false;
      const standing = (await world.body(path))?.split('\n') ?? [];
      return standing.includes(commitId) && standing.length - standing.indexOf(commitId) > CHAIN;
    }

    async function append(writer: number, random: () => number): Promise<void> {
      const service = world.another();
      chaos(service.objects, random);
      chaos(service.records, random);
      for (let done = 0, tries = 0; done < COMMITS_EACH; tries++) {
        const commitId = `${writer}-${tries}`;
        const { etag } = await world.read(path);
        const before = await world.body(path);
        const what = await outcome({ path, ifMatch: etag, body: `${before}\n${commitId}`, commitId });
        answered[what].push(commitId);
        if (what === 'landed') done += 1;
      }

      /** Asks again with the same commit id until the outcome is known, or clearly cannot be known. */
      async function outcome(input: { commitId: string; [field: string]: unknown }): Promise<keyof typeof answered> {
        for (let doubts = 0; ; ) {
          try {
            await service.commit(input);
            return 'landed';
          } catch (error) {
            const { code } = error as { code: string };
            if (code === 'PreconditionFailed') return (await isOutrun(input.commitId)) ? 'nothing' : 'refused';
            if (code === 'OutcomeUnknown' && ++doubts === MAX_DOUBTS) return 'nothing';
            expect([seed, ['OutcomeUnknown', 'Unavailable', 'Throttled']]).toEqual([
              seed,
              expect.arrayContaining([code]),
            ]);
          }
        }
      }
    }
  });
});
