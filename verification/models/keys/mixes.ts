import type { Mutant } from '../engine/command.ts';
import { named, offset, some } from '../engine/parties.ts';
import type { Chooser, Scenario } from '../engine/world.ts';
import { deadLease, deadPool, freeLease, scenario } from './parties.ts';

const one = <T>(name: string, wish: T) => [named(name, wish)];

/** Gone through completely. */
export const SMALL: Record<string, () => Scenario> = {
  'a lease and a permit, one fault': () =>
    scenario({ leases: { callers: one('l', { tries: 2 }) }, permits: { callers: one('p', { tries: 2 }) }, faults: 1 }),
  'a lease and a permit, a standstill': () =>
    scenario({
      leases: { callers: one('l', { tries: 2, hold: 2 }) },
      permits: { callers: one('p', { tries: 2, ttl: 3 }) },
      ticks: 1,
      jumps: [5],
    }),
  'a lease and a permit by turns, a late duplicate': () =>
    scenario({
      leases: { callers: one('l', { tries: 1, rounds: 2 }) },
      permits: { callers: one('p', { tries: 2, rounds: 2, limit: 2 }) },
      faults: 1,
      fates: ['dup'],
    }),
  'one waits for each kind': () =>
    scenario({
      leases: { callers: [named('h', { hold: 1 }), named('l', { wait: 6, tries: 1 })] },
      permits: { callers: one('p', { wait: 6, tries: 1 }) },
    }),
  'two permits, one waits, and a lease comes': () =>
    scenario({
      leases: { callers: one('l', { tries: 2, after: 2 }) },
      permits: { callers: [named('p', { tries: 1 }), named('q', { wait: 6, tries: 1 })] },
    }),
  'a lease comes to a dead pool': () =>
    scenario({
      record: deadPool(3),
      leases: { callers: one('l', { tries: 2, served: true }) },
      faults: 1,
    }),
  'a lease comes to a dead pool, and so does a permit': () =>
    scenario({
      record: deadPool(3),
      leases: { callers: one('l', { tries: 1 }) },
      permits: { callers: one('p', { tries: 2, limit: 2 }) },
    }),
  'a break, and a key that changes its kind': () =>
    scenario({
      leases: { callers: one('l', { tries: 2, after: 1 }) },
      permits: { callers: one('p', { tries: 2, hold: 2 }) },
      breaks: [2],
    }),
  'a withdrawal, and a key that changes its kind': () =>
    scenario({
      record: deadLease(999), // over by the clock of the permit alone
      offset: (party) => (party === 2 ? 1 : 0),
      leases: { callers: one('a', { wait: 9, hold: 0, tries: 1 }), withdrawals: one('w', { of: 'a', after: 0 }) },
      permits: { callers: one('p', { hold: 0, tries: 1 }) },
    }),
  'two pools in one moment': () =>
    scenario({
      leases: { callers: one('a', { hold: 0, tries: 1 }) },
      permits: {
        callers: [named('q', { limit: 2, hold: 0, tries: 1, rounds: 2 }), named('p', { limit: 2, hold: 0, tries: 1 })],
      },
      faults: 1,
      fates: ['dup'],
    }),
  'a task for each kind': () =>
    scenario({ leases: { tasks: one('x', {}) }, permits: { tasks: one('y', {}) }, needsRepair: true }),
};

type Mix = (chooser: Chooser) => Scenario;

const perhaps = <T>(chooser: Chooser, value: T): T[] => (chooser.choose(2) ? [value] : []);

const leaseCallers = (chooser: Chooser, names: readonly string[], wait: number) =>
  some(chooser, names).map((name) =>
    named(name, {
      rounds: 1 + chooser.choose(3),
      hold: 1 + chooser.choose(3),
      after: chooser.choose(4),
      ttl: 4 + chooser.choose(5),
      wait: chooser.choose(2) ? 0 : wait,
      beats: chooser.choose(2),
      abandons: chooser.choose(6) === 0,
      again: chooser.choose(3) ? undefined : 1 + chooser.choose(4),
    }),
  );

/** With weights, limits that differ and, by chance, the key alone. */
const permitCallers = (chooser: Chooser, names: readonly string[], wait: number) =>
  some(chooser, names).map((name) =>
    named(name, {
      ...(chooser.choose(4) === 0 ? { exclusive: true } : { limit: 1 + chooser.choose(3), weight: 1 }),
      rounds: 1 + chooser.choose(3),
      hold: 1 + chooser.choose(3),
      after: chooser.choose(4),
      ttl: 4 + chooser.choose(4),
      wait: chooser.choose(2) ? 0 : wait,
      races: chooser.choose(4) === 0,
      beats: chooser.choose(2),
      abandons: chooser.choose(6) === 0,
      again: chooser.choose(3) ? undefined : 1 + chooser.choose(4),
    }),
  );

const trouble = (chooser: Chooser) => ({
  faults: chooser.choose(4),
  ticks: chooser.choose(3),
  jumps: [1, 4, 9],
  needsRepair: true,
});

const records = (chooser: Chooser) =>
  [undefined, freeLease(990), freeLease(1040), deadPool(1), deadPool(3)][chooser.choose(5)];

/** Gone through by chance. */
export const MIXES: Record<string, Mix> = {
  'plain callers and permits': (chooser) =>
    scenario({
      offset,
      record: records(chooser),
      leases: { callers: leaseCallers(chooser, ['a', 'b'], 0) },
      permits: { callers: permitCallers(chooser, ['p', 'q', 'r'], 0) },
      ...trouble(chooser),
    }),
  'callers of both kinds wait': (chooser) =>
    scenario({
      offset,
      record: records(chooser),
      leases: { callers: leaseCallers(chooser, ['a', 'b', 'c'], 9) },
      permits: { callers: permitCallers(chooser, ['p', 'q', 'r'], 9) },
      ...trouble(chooser),
    }),
  'callers and tasks of both kinds': (chooser) =>
    scenario({
      offset,
      record: records(chooser),
      leases: {
        callers: leaseCallers(chooser, ['a'], 9),
        tasks: some(chooser, ['x', 'y'], 0).map((name) => named(name, { after: chooser.choose(6), hold: 2 })),
      },
      permits: {
        callers: permitCallers(chooser, ['p'], 9),
        tasks: some(chooser, ['v', 'w'], 0).map((name) =>
          named(name, { after: chooser.choose(6), hold: 2, limit: 1 + chooser.choose(2) }),
        ),
      },
      repairs: chooser.choose(3),
      deaths: true,
      ...trouble(chooser),
    }),
  'late duplicates': (chooser) =>
    scenario({
      offset,
      leases: {
        callers: some(chooser, ['a', 'b']).map((name) =>
          named(name, { hold: chooser.choose(2), after: chooser.choose(6) }),
        ),
      },
      permits: {
        callers: some(chooser, ['p', 'q', 'r'], 2).map((name) =>
          named(name, { limit: 2, hold: chooser.choose(2), after: chooser.choose(6), rounds: 1 + chooser.choose(2) }),
        ),
      },
      faults: 1 + chooser.choose(3),
      fates: ['dup'],
      slow: 1 + chooser.choose(40),
    }),
  'all in one moment': () =>
    scenario({
      record: { ...deadPool(0), fence: 1000 },
      leases: { callers: one('a', { hold: 0, rounds: 2 }) },
      permits: { callers: ['p', 'q'].map((name) => named(name, { limit: 2, hold: 0 })) },
      faults: 1,
      fates: ['dup'],
      slow: 40,
    }),
  'late tries by clocks two apart': () =>
    scenario({
      offset: (party) => (party === 1 ? 2 : 0),
      config: { skew: 2 },
      record: { ...deadPool(0), fence: 990 },
      leases: { callers: one('a', { hold: 0 }) },
      permits: { callers: ['p', 'q'].map((name) => named(name, { limit: 2, hold: 0 })) },
      faults: 1,
      fates: ['dup'],
      slow: 40,
    }),
  'a late hand-off': (chooser) =>
    scenario({
      offset,
      leases: { callers: one('a', { hold: 0, after: 3 + chooser.choose(3) }) },
      permits: {
        callers: [
          named('p', { limit: 1, hold: 1 }),
          named('q', { limit: 2, hold: 1, after: 6 + chooser.choose(4), rounds: 2 }),
        ],
        tasks: ['v', 'w'].map((name) => named(name, { limit: 1, hold: 0 })),
      },
      faults: 2 + chooser.choose(2),
      fates: ['dup'],
      slow: 40,
      needsRepair: true,
    }),
  'a pool is left and found again': (chooser) =>
    scenario({
      offset,
      leases: { callers: one('a', { rounds: 3, hold: 1, after: 1 + chooser.choose(2) }) },
      permits: {
        callers: [
          ...['p', 'q'].map((name) => named(name, { limit: 1, hold: 1, rounds: 2, wait: 9, after: chooser.choose(2) })),
          named('r', { limit: 1, hold: 1, rounds: 2, after: 1 + chooser.choose(4) }),
        ],
      },
      faults: chooser.choose(2),
      fates: ['dup', 'lostReply'],
      needsRepair: true,
    }),
  'a late clear': (chooser) =>
    scenario({
      leases: { callers: one('a', { hold: 0, after: 4 + chooser.choose(3) }) },
      permits: {
        callers: [named('p', { limit: 1, hold: 3 }), named('q', { limit: 1, hold: 5, after: 7 + chooser.choose(3) })],
        ghosts: one('g', { limit: 1, wait: 1, after: 1 }),
        tasks: one('w', { limit: 1, hold: 0, after: 9 + chooser.choose(4) }),
      },
      faults: 1 + chooser.choose(2),
      fates: ['dup'],
      slow: 40,
      unaided: true,
    }),
  'permits in line, and records that go': (chooser) =>
    scenario({
      offset,
      leases: {
        callers: leaseCallers(chooser, ['a', 'b'], 9),
        tasks: some(chooser, ['x', 'y'], 0).map((name) => named(name, { after: chooser.choose(3) })),
        foreigners: [
          named('f', {
            ttl: 3,
            after: chooser.choose(4),
            rounds: 2,
            beats: chooser.choose(3),
            hold: 1 + chooser.choose(2),
          }),
        ],
      },
      permits: {
        callers: permitCallers(chooser, ['p'], 9),
        tasks: some(chooser, ['v', 'w'], 0).map((name) => named(name, { after: chooser.choose(6), limit: 1 })),
      },
      repairs: chooser.choose(3),
      ...trouble(chooser),
    }),
  'TTL and clean-ups': (chooser) =>
    scenario({
      offset,
      leases: {
        callers: leaseCallers(chooser, ['a', 'b'], 4).map(([name, wish]) => named(name, { ...wish, rounds: 2 })),
      },
      permits: { callers: permitCallers(chooser, ['p', 'q'], 4) },
      cleanUps: [30 + chooser.choose(50)],
      ttlDeletes: true,
      ticks: 3,
      jumps: [9, 45, 90],
      faults: chooser.choose(3),
      needsRepair: true,
    }),
  'clocks two apart': (chooser) =>
    scenario({
      offset: (_, { chooser: by }) => by.choose(3),
      config: { skew: 2 },
      leases: { callers: leaseCallers(chooser, ['a', 'b'], 6) },
      permits: { callers: permitCallers(chooser, ['p', 'q'], 6) },
      faults: chooser.choose(3),
      fates: ['dup', 'lostReply', 'crash'],
      needsRepair: true,
    }),
  breaks: (chooser) =>
    scenario({
      offset,
      leases: { callers: leaseCallers(chooser, ['a', 'b'], 0) },
      permits: { callers: permitCallers(chooser, ['p', 'q'], 0) },
      breaks: [1 + chooser.choose(4), 2 + chooser.choose(8)],
      ...trouble(chooser),
    }),
  withdrawals: (chooser) =>
    scenario({
      offset,
      leases: {
        callers: leaseCallers(chooser, ['a', 'b'], 9),
        withdrawals: perhaps(chooser, named('w', { of: 'a', after: 1 + chooser.choose(6) })),
      },
      permits: { callers: permitCallers(chooser, ['p', 'q'], 9), cancels: [1 + chooser.choose(6)] },
      needsRepair: true,
    }),
};

/** Rules that can be switched off. */
export const MUTANTS: Record<string, Mutant> = {
  kindUnnamed: { what: 'a grant of permits does not ask that there is no lease', mixes: ['plain callers and permits'] },
  leaseOfAnyKind: {
    what: 'a grant of a lease does not ask that there are no permits, and no mark for them',
    mixes: ['plain callers and permits', 'callers and tasks of both kinds'],
  },
  lateTry: {
    what: 'a try of an ended request lands after the key was a lease',
    mixes: ['late duplicates', 'late tries by clocks two apart'],
  },
  clearKeepsFence: {
    what: 'permits become a lease, and the fence stays within reach of late tries',
    mixes: ['late duplicates', 'all in one moment', 'late tries by clocks two apart'],
  },
  fenceUnseen: {
    what: 'the line grants permits after a look from before the key was a lease',
    mixes: ['a late hand-off'],
  },
  markCounts: {
    what: 'the mark is the count of arrivals, which begins again with each line',
    mixes: ['a late clear'],
  },
  thirdPartyUnseen: {
    what: 'a permit is granted whatever a third-party client has become',
    mixes: ['permits in line, and records that go'],
  },
  markOfAnyKind: {
    what: 'a call that joins marks a record of the other kind',
    mixes: ['callers and tasks of both kinds', 'callers of both kinds wait'],
  },
  replacesUnseen: {
    what: 'a permit replaces a lease whatever has become of it',
    mixes: ['plain callers and permits'],
  },
  freeWithoutFence: {
    what: 'a permit replaces a free lease whatever its fence',
    survives: 'the highest fence that a try may meet stands in for it',
    mixes: ['late duplicates'],
  },
  replacesMarked: {
    what: 'a permit replaces a lease with a mark',
    survives: 'a waiter that joined looks once more, and leaves the line: it costs the position',
    mixes: ['callers of both kinds wait'],
  },
  clearUsed: {
    what: 'permits become a lease whatever is in use',
    survives: 'the fence as seen stands in for it',
    mixes: ['plain callers and permits'],
  },
  clearFence: {
    what: 'permits become a lease whatever the fence',
    survives: 'nothing in use stands in for it',
    mixes: ['plain callers and permits'],
  },
  clearNeither: {
    what: 'permits become a lease whatever is in use, and whatever the fence',
    mixes: ['plain callers and permits'],
  },
  clearMarked: {
    what: 'permits with a mark become a lease',
    survives: 'a waiter that joined looks once more, and leaves the line: it costs the position',
    mixes: ['callers of both kinds wait'],
  },
  endUnguarded: { what: 'expired entries are ended without their versions', mixes: ['plain callers and permits'] },
  breakOfAnyKind: { what: 'a break of a lease does not ask for a lease', mixes: ['breaks'] },
  lineUnserved: {
    what: 'a call of the other kind does not hand on at a mark',
    mixes: ['callers and tasks of both kinds'],
  },
  strangersRefused: {
    what: 'a task is told WrongKind while no caller has the key',
    mixes: ['permits in line, and records that go'],
  },
  leavesWithdrawn: {
    what: 'a call that leaves the line does not look whether it was withdrawn',
    small: ['a withdrawal, and a key that changes its kind'],
  },
};
