import { describe, expect, it } from 'vitest';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { rounds } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const seed = testSeed();
const random = seededRandom(seed);
const world = await nameserviceWorld();
const { publish, lookUp, rawItems } = world;

const WRITERS = 16;
const init = (alias: string) => publish({ op: 'initLedger', alias });
const writers = <T>(work: (writer: number) => Promise<T>) =>
  Promise.all(Array.from({ length: WRITERS }, (_, writer) => work(writer)));

interface Pointer {
  address: string | null;
  t: number;
}

/** The numbers from 1 to `length`, shuffled. */
function shuffled(length: number): number[] {
  const numbers = Array.from({ length }, (_, i) => i + 1);
  for (let i = length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const [a = 0, b = 0] = [numbers[i], numbers[j]];
    numbers[i] = b;
    numbers[j] = a;
  }
  return numbers;
}

/** The current value, or the actual one of a conflict. Any other error fails the test. */
async function won(op: object): Promise<{ won: boolean; value: Pointer }> {
  try {
    return { won: true, value: (await publish(op)).current as Pointer };
  } catch (error) {
    const { code, context } = error as { code: string; context: { actual: Pointer } };
    if (code !== 'Conflict') throw error;
    return { won: false, value: context.actual };
  }
}

describe(`races (SEED=${seed})`, () => {
  const each = rounds(1000, 12);
  it(`writers of four concerns of one alias never conflict: ${each} writes each`, async () => {
    const alias = 'concerns';
    await init(alias);
    const status = (v: number) => ({ state: v === 1 ? 'ready' : `s${v}`, v });
    const oneAfterAnother = async (op: (i: number) => object) => {
      for (let i = 1; i <= each; i++) expect(await publish({ alias, ...op(i) })).toMatchObject({ outcome: 'updated' });
    };
    await Promise.all([
      oneAfterAnother((i) => ({ op: 'publishCommit', address: `c${i}`, t: i })),
      oneAfterAnother((i) => ({ op: 'publishIndex', address: `i${i}`, t: i })),
      oneAfterAnother((i) => ({ op: 'pushStatus', expected: status(i), next: status(i + 1) })),
      oneAfterAnother((i) => ({ op: 'pushConfig', expected: { v: i - 1 }, next: { v: i, payload: { extra: { i } } } })),
    ]);
    expect(await lookUp(alias)).toMatchObject({
      commit: { address: `c${each}`, t: each },
      index: { address: `i${each}`, t: each },
      status: { state: `s${each + 1}`, v: each + 1 },
      config: { v: each, payload: { extra: { i: each } } },
    });
  }, 90_000);

  it('commit and index never go down under 16 publishers', async () => {
    const alias = 'monotonic';
    await init(alias);
    const last = rounds(320, 12);
    const todo = [
      ...shuffled(last).map((t) => ({ op: 'publishCommit', t })),
      ...shuffled(last).map((t) => ({ op: 'publishIndex', t })),
    ];
    const work = todo.sort(() => random() - 0.5).values();
    let done = false;
    const watcher = (async () => {
      let seen = { commit: 0, index: 0 };
      for (let reads = 0; ; reads++) {
        const { commit, index } = await lookUp(alias);
        expect(commit.t).toBeGreaterThanOrEqual(seen.commit);
        expect(index.t).toBeGreaterThanOrEqual(seen.index);
        expect([commit.address, index.address]).toEqual([
          commit.t ? `a${commit.t}` : null,
          index.t ? `a${index.t}` : null,
        ]);
        seen = { commit: commit.t, index: index.t };
        if (done) return reads;
      }
    })();
    await writers(async () => {
      for (const { op, t } of work) {
        const { outcome, current } = await publish({ op, alias, address: `a${t}`, t });
        if (outcome === 'updated') expect(current).toEqual({ address: `a${t}`, t });
        else expect((current as Pointer).t).toBeGreaterThan(t);
      }
    });
    done = true;
    expect(await watcher).toBeGreaterThan(0);
    expect(await lookUp(alias)).toMatchObject({ commit: { t: last }, index: { t: last } });
  });

  it('each t has one winner among 16 compare-and-set writers', async () => {
    const alias = 'cas';
    await init(alias);
    const last = rounds(80, 6);
    const winners = new Map<number, string | null>([[0, null]]);
    const actuals: Pointer[] = [];
    let losses = 0;
    await writers(async (writer) => {
      let expected: Pointer = { address: null, t: 0 };
      while (expected.t < last) {
        const next = { address: `w${writer}-${expected.t + 1}`, t: expected.t + 1 };
        const outcome = await won({ op: 'compareAndSetRef', alias, ref: 'commit', expected, next });
        if (outcome.won) {
          expect(winners.has(next.t), `t ${next.t} has two winners`).toBe(false);
          winners.set(next.t, next.address);
        } else {
          losses++;
          actuals.push(outcome.value);
        }
        expected = outcome.value;
      }
    });
    expect([...winners.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: last + 1 }, (_, t) => t));
    for (const { address, t } of actuals) expect(winners.get(t)).toBe(address);
    expect(losses).toBeGreaterThan(0);
  });

  it('16 fast-forwards converge on the highest, even if they create the ledger', async () => {
    for (let round = 0; round < rounds(10, 2); round++) {
      const alias = `forward-${round}`;
      if (round % 2) await init(alias);
      const outcomes = await writers((writer) =>
        won({ op: 'fastForwardCommit', alias, address: `w${writer}`, t: writer + 1 }),
      );
      expect((await lookUp(alias)).commit).toEqual({ address: `w${WRITERS - 1}`, t: WRITERS });
      for (const [writer, { won, value }] of outcomes.entries())
        if (won) expect(value.t).toBe(writer + 1);
        else expect(value).toEqual({ address: `w${value.t - 1}`, t: expect.any(Number) });
      expect((await rawItems(`${alias}:main`)).length).toBe(5);
    }
  });

  it('one of two creators by expected: null wins, and the other learns it', async () => {
    for (let round = 0; round < rounds(40, 3); round++) {
      const alias = `creators-${round}`;
      const create = (writer: number) =>
        won({
          op: 'compareAndSetRef',
          alias,
          ref: 'commit',
          expected: null,
          next: { address: `w${writer}`, t: writer },
        });
      const [one, two] = await Promise.all([create(1), create(2)]);
      expect([one.won, two.won].sort()).toEqual([false, true]);
      expect(one.value).toEqual(two.value);
      expect((await lookUp(alias)).commit).toEqual(one.value);
    }
  });

  it('a ledger and a graph source that are created at once leave one', async () => {
    for (let round = 0; round < rounds(20, 2); round++) {
      const alias = `kinds-${round}`;
      const source = { op: 'publishGraphSource', alias, sourceType: 'x', config: {}, dependencies: [] };
      const results = await Promise.allSettled(
        round % 2 ? [init(alias), publish(source)] : [publish(source), init(alias)],
      );
      const lost = results.find((result) => result.status === 'rejected');
      expect(lost?.reason).toMatchObject({ code: 'AlreadyExists' });
      const { kind } = await lookUp(alias);
      expect(lost?.reason.context.kind).toBe(kind);
      expect((await rawItems(`${alias}:main`)).length).toBe(kind === 'ledger' ? 5 : 4);
    }
  });

  it('one of 16 concurrent inits creates the ledger', async () => {
    const results = await Promise.allSettled(Array.from({ length: WRITERS }, () => init('inits')));
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'AlreadyExists' });
  });

  it('16 definitions of one graph source each count in its config version', async () => {
    const define = (writer: number) => ({
      op: 'publishGraphSource',
      alias: 'definitions',
      sourceType: 'x',
      config: { writer },
      dependencies: [],
    });
    const results = await writers((writer) => publish(define(writer)));
    expect(results.filter(({ created }) => created).length).toBe(1);
    expect(await lookUp('definitions')).toMatchObject({ config: { v: WRITERS } });
  });

  it('a missing concern is restored once by concurrent writers', async () => {
    await init('restored');
    await world.deleteRaw('restored:main', 'head');
    await writers((writer) =>
      publish({ op: 'publishCommit', alias: 'restored', address: `w${writer}`, t: writer + 1 }),
    );
    expect((await lookUp('restored')).commit).toEqual({ address: `w${WRITERS - 1}`, t: WRITERS });
    expect((await failure(init('restored'))).code).toBe('AlreadyExists');
  });
});
