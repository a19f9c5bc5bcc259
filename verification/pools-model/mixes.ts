import type { Mutant } from '../queue-model/command.ts';
import type { Chooser, Scenario, World } from '../queue-model/world.ts';
import { type CallerWish, scenario } from './parties.ts';

const named = (name: string, wish: CallerWish): readonly [string, CallerWish] => [name, wish];
const some = <T>(chooser: Chooser, values: readonly T[], least = 1): T[] =>
  values.slice(0, least + chooser.choose(values.length - least + 1));
const offset = (party: number, { chooser }: World): number => (chooser.replays ? party % 2 : chooser.choose(2));

/** Gone through completely. */
export const SMALL: Record<string, () => Scenario> = {
  'two callers for one permit, two faults': () =>
    scenario({ callers: [named('a', { tries: 2 }), named('b', { tries: 1 })], faults: 2 }),
  'two callers for one permit, a standstill and a fault': () =>
    scenario({ callers: [named('a', { tries: 2 }), named('b', { tries: 2 })], faults: 1, ticks: 1 }),
  'three callers for two permits, one fault': () =>
    scenario({
      callers: [
        named('a', { limit: 2, tries: 1 }),
        named('b', { limit: 2, tries: 2 }),
        named('c', { limit: 2, tries: 1 }),
      ],
      faults: 1,
    }),
  'two readers and a writer, a standstill': () =>
    scenario({
      callers: [
        named('a', { limit: 5, tries: 1 }),
        named('b', { limit: 5, tries: 1 }),
        named('w', { exclusive: true, tries: 2 }),
      ],
      ticks: 1,
    }),
  'a heartbeat, a take-over and a fault': () =>
    scenario({
      callers: [named('a', { beats: 1, tries: 1 }), named('b', { tries: 1, after: 8 })],
      faults: 1,
      ticks: 1,
      jumps: [5],
    }),
  'three leave theirs, and a writer comes': () =>
    scenario({
      callers: [
        ...['a', 'b', 'c'].map((name) => named(name, { limit: 5, abandons: true })),
        named('w', { exclusive: true, after: 12, served: true }),
      ],
    }),
  'a break, and a release of the same': () =>
    scenario({ callers: [named('a', { hold: 2 }), named('b', { tries: 1 })], breaks: [2], faults: 1 }),
};

type Mix = (chooser: Chooser) => Scenario;

/** Gone through by chance. */
export const MIXES: Record<string, Mix> = {
  permits: (chooser) => {
    const limit = 1 + chooser.choose(3);
    return scenario({
      offset,
      callers: some(chooser, ['a', 'b', 'c', 'd'], 2).map((name) =>
        named(name, {
          limit,
          rounds: 1 + chooser.choose(2),
          beats: chooser.choose(3),
          hold: 1 + chooser.choose(3),
          abandons: chooser.choose(5) === 0,
        }),
      ),
      guessed: chooser.choose(3) ? [] : ['ar0'],
      faults: chooser.choose(5),
      ticks: chooser.choose(4),
      jumps: [1, 4, 9],
    });
  },
  'a record that vanishes': (chooser) =>
    scenario({
      offset,
      ttlDeletes: true,
      callers: ['a', 'b', 'c'].map((name, n) =>
        named(name, {
          limit: 2,
          rounds: 3,
          beats: chooser.choose(2),
          ttl: n === 2 ? 40 : 6,
          abandons: chooser.choose(2) === 0,
          hold: n === 2 ? 30 : 2,
        }),
      ),
      faults: chooser.choose(3),
      ticks: 4,
      jumps: [9, 12, 90],
    }),
  'limits that differ': (chooser) =>
    scenario({
      offset,
      callers: ['a', 'b', 'c', 'd'].map((name) => named(name, { limit: 1 + chooser.choose(3), rounds: 2 })),
      faults: chooser.choose(2),
    }),
  'readers and writers': (chooser) =>
    scenario({
      offset,
      callers: ['a', 'b', 'c', 'd'].map((name) =>
        named(name, {
          ...(chooser.choose(2) ? { limit: 9 } : { exclusive: true }),
          rounds: 2,
          beats: chooser.choose(2),
          abandons: chooser.choose(4) === 0,
        }),
      ),
      faults: chooser.choose(4),
      ticks: chooser.choose(3),
      jumps: [1, 4, 9],
    }),
  weights: (chooser) =>
    scenario({
      offset,
      callers: ['a', 'b', 'c', 'd'].map((name) =>
        named(name, {
          limit: 4,
          weight: 1 + chooser.choose(4),
          rounds: 2,
          abandons: chooser.choose(4) === 0,
          beats: chooser.choose(2),
        }),
      ),
      faults: chooser.choose(3),
      ticks: chooser.choose(3),
      jumps: [4, 9],
    }),
  'callers that wait': (chooser) =>
    scenario({
      offset,
      callers: ['a', 'b', 'c', 'd'].map((name) =>
        named(name, { limit: 2, wait: 30, rounds: 2, hold: 1 + chooser.choose(3), abandons: chooser.choose(5) === 0 }),
      ),
      faults: chooser.choose(3),
      ticks: chooser.choose(2),
      jumps: [1, 4],
    }),
  breaks: (chooser) =>
    scenario({
      offset,
      callers: ['a', 'b', 'c'].map((name) =>
        named(name, { limit: 2, rounds: 2, hold: 1 + chooser.choose(4), beats: chooser.choose(2) }),
      ),
      breaks: [1 + chooser.choose(4), 2 + chooser.choose(8)],
      faults: chooser.choose(3),
      ticks: chooser.choose(2),
      jumps: [1, 9],
    }),
  'clocks two apart': (chooser) =>
    scenario({
      offset: (_, { chooser }) => chooser.choose(3),
      config: { skew: 2 },
      callers: ['a', 'b', 'c'].map((name) =>
        named(name, { limit: 1, hold: 5, wait: 20, abandons: chooser.choose(3) === 0, after: chooser.choose(3) }),
      ),
    }),
  'beats overtake each other': (chooser) =>
    scenario({
      offset,
      callers: [
        named('a', { beats: 2, hold: 1, lingers: 5 }),
        named('b', { wait: 20, after: 3 + chooser.choose(3), hold: 3 }),
      ],
      faults: 2,
      fates: ['dup'],
      ticks: 3,
      jumps: [1, 2, 3],
    }),
  'the dead make room': (chooser) =>
    scenario({
      callers: [
        ...some(chooser, ['a', 'b', 'c', 'd', 'e']).map((name) => named(name, { limit: 5, abandons: true })),
        named('w', { ...(chooser.choose(2) ? { exclusive: true } : { limit: 5, weight: 5 }), after: 14, served: true }),
      ],
    }),
};

/** Rules that can be switched off. */
export const MUTANTS: Record<string, Mutant> = {
  countIgnored: { what: 'the weight in use is not in the condition' },
  limitEquality: {
    what: 'the weight in use is compared by <> limit, as in the sample of AWS',
    mixes: ['limits that differ', 'weights'],
  },
  evictUnguarded: { what: 'an expired holder is removed without its version in the condition' },
  evictOnce: { what: 'no more expired holders make room than go in one write', mixes: ['the dead make room'] },
  noSkew: { what: 'there is no margin between clocks', mixes: ['clocks two apart'] },
  repeatForgotten: { what: 'a request may be granted a second permit' },
  ringForgotten: { what: 'a request that gave its permit back is granted another' },
  releaseUnguarded: { what: 'a permit is released without its lease id in the condition', mixes: ['permits'] },
  beatUnordered: {
    what: 'an earlier heartbeat overwrites a later one',
    mixes: ['beats overtake each other'],
  },
  fenceRestarts: { what: 'fences begin at 0 where the record has gone', mixes: ['a record that vanishes'] },
  ttlOfWriter: { what: 'the record lives as long as its last writer asked for', mixes: ['a record that vanishes'] },
};
