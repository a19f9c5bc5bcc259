import type { Mutant } from '../engine/command.ts';
import { named, offset, some } from '../engine/parties.ts';
import type { Chooser, Scenario } from '../engine/world.ts';
import { type CallerWish, scenario } from './parties.ts';

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
  'one holds, and a task parks, one fault': () =>
    scenario({ callers: [named('a', { tries: 1 })], tasks: [['x', {}]], faults: 1, needsRepair: true }),
  'one holds, and two tasks park': () =>
    scenario({
      callers: [named('a', { tries: 1 })],
      tasks: [
        ['x', {}],
        ['y', {}],
      ],
    }),
  'two hold, and two tasks park': () =>
    scenario({
      callers: ['a', 'b'].map((name) => named(name, { limit: 2, tries: 1 })),
      tasks: [
        ['x', { limit: 2 }],
        ['y', { limit: 2 }],
      ],
    }),
  'two readers, and a writer parks': () =>
    scenario({
      callers: ['a', 'b'].map((name) => named(name, { limit: 5, tries: 1 })),
      tasks: [['w', { exclusive: true }]],
    }),
  'a caller in line, one fault': () =>
    scenario({ callers: [named('a', { hold: 2, tries: 1 }), named('b', { wait: 9, tries: 2 })], faults: 1 }),
  'a light one comes behind a heavy one': () =>
    scenario({
      callers: [
        named('a', { limit: 2, hold: 3 }),
        named('h', { limit: 2, weight: 2, wait: 9, after: 1 }),
        named('l', { limit: 2, wait: 9, after: 2 }),
      ],
    }),
  'a break, and a release of the same': () =>
    scenario({ callers: [named('a', { hold: 2 }), named('b', { tries: 1 })], breaks: [2], faults: 1 }),
};

type Mix = (chooser: Chooser) => Scenario;

interface Bounds {
  /** Fewer than these. */
  faults?: number;
  ticks?: number;
  jumps?: number[];
}

/** Some faults and standstills. */
const trouble = (chooser: Chooser, { faults = 4, ticks = 3, jumps = [1, 4, 9] }: Bounds = {}) => ({
  faults: chooser.choose(faults),
  ticks: chooser.choose(ticks),
  jumps,
});

/** The same where functions die too, and the schedule repairs what they leave. */
const troubleOfTasks = (chooser: Chooser) => ({
  deaths: true,
  ...trouble(chooser),
  repairs: chooser.choose(2),
  needsRepair: true,
});

const perhapsCancelled = (chooser: Chooser): number[] => (chooser.choose(3) ? [] : [2 + chooser.choose(6)]);

/** One that asks by chance for little, for much, or for the key alone. */
const anyTerms = (chooser: Chooser, limit: number): CallerWish =>
  chooser.choose(4) === 0 ? { exclusive: true } : { limit, weight: 1 + chooser.choose(limit) };

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
      ...trouble(chooser, { faults: 5, ticks: 4 }),
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
      ...trouble(chooser),
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
      ...trouble(chooser, { faults: 3, jumps: [4, 9] }),
    }),
  'callers that race': (chooser) =>
    scenario({
      offset,
      callers: ['a', 'b', 'c', 'd'].map((name) =>
        named(name, {
          limit: 2,
          wait: 30,
          races: true,
          rounds: 2,
          hold: 1 + chooser.choose(3),
          abandons: chooser.choose(5) === 0,
        }),
      ),
      ...trouble(chooser, { faults: 3, ticks: 2, jumps: [1, 4] }),
    }),
  'callers in line': (chooser) => {
    const limit = 1 + chooser.choose(3);
    return scenario({
      offset,
      callers: ['a', 'b', 'c', 'd'].map((name) =>
        named(name, {
          ...anyTerms(chooser, limit),
          wait: chooser.choose(5) ? 6 + chooser.choose(20) : 0,
          rounds: 1 + chooser.choose(2),
          hold: 1 + chooser.choose(3),
          again: chooser.choose(2) ? 1 + chooser.choose(4) : undefined,
          abandons: chooser.choose(5) === 0,
        }),
      ),
      cancels: perhapsCancelled(chooser),
      ...trouble(chooser),
    });
  },
  'tasks in line': (chooser) => {
    const limit = 1 + chooser.choose(3);
    return scenario({
      offset,
      callers: some(chooser, ['a', 'b'], 0).map((name) =>
        named(name, { limit, rounds: 2, abandons: chooser.choose(5) === 0 }),
      ),
      tasks: some(chooser, ['x', 'y', 'z']).map((name) => [
        name,
        {
          ...anyTerms(chooser, limit),
          hold: 1 + chooser.choose(2),
          again: chooser.choose(4) ? undefined : 2,
          ...(chooser.choose(4) === 0 && { parkMs: 6 }),
        },
      ]),
      cancels: perhapsCancelled(chooser),
      ...troubleOfTasks(chooser),
    });
  },
  'callers and tasks': (chooser) => {
    const limit = 1 + chooser.choose(3);
    return scenario({
      offset,
      callers: some(chooser, ['a', 'b', 'c']).map((name) =>
        named(name, {
          ...anyTerms(chooser, limit),
          wait: chooser.choose(3) ? 8 + chooser.choose(20) : 0,
          hold: 1 + chooser.choose(3),
          beats: chooser.choose(2),
          abandons: chooser.choose(5) === 0,
        }),
      ),
      tasks: some(chooser, ['x', 'y']).map((name) => [
        name,
        { ...anyTerms(chooser, limit), hold: 1 + chooser.choose(2) },
      ]),
      breaks: chooser.choose(4) ? [] : [3],
      ...troubleOfTasks(chooser),
    });
  },
  'nothing goes wrong in line': (chooser) => {
    const limit = 1 + chooser.choose(3);
    return scenario({
      callers: some(chooser, ['a', 'b', 'c']).map((name) =>
        named(name, { ...anyTerms(chooser, limit), wait: chooser.choose(2) ? 60 : 0 }),
      ),
      tasks: some(chooser, ['x', 'y', 'z']).map((name) => [name, anyTerms(chooser, limit)]),
    });
  },
  'tasks die in line': (chooser) =>
    scenario({
      callers: [named('a', { limit: 1, hold: 2 })],
      tasks: ['x', 'y', 'z'].map((name) => [name, { limit: 1 }]),
      deaths: true,
      fates: [],
      faults: 1 + chooser.choose(2),
    }),
  'the impatient in front': (chooser) =>
    scenario({
      callers: [
        named('a', { limit: 1, hold: 5 }),
        named('c', { limit: 1, wait: 6, after: 2, hold: 1 + chooser.choose(3), served: true }),
      ],
      ghosts: [named('b', { limit: 1, wait: 3, after: 1 })],
    }),
  'claims arrive twice': (chooser) =>
    scenario({
      offset,
      callers: [
        named('c', { limit: 1, hold: 1 + chooser.choose(2) }),
        named('a', { limit: 1, wait: 20, beats: 2, hold: 1, lingers: 5 }),
        named('b', { limit: 1, wait: 30, after: 4 + chooser.choose(3), hold: 3 }),
      ],
      faults: 2,
      fates: ['dup'],
      ticks: 3,
      jumps: [1, 2, 3],
    }),
  cancellations: (chooser) =>
    scenario({
      callers: [
        named('a', { limit: 1, hold: 2 + chooser.choose(2) }),
        named('b', { limit: 1, wait: 20, after: 1 }),
        named('c', { limit: 1, wait: 20, after: 2 }),
      ],
      cancels: [2 + chooser.choose(3), 3 + chooser.choose(3)],
    }),
  'callers die in line': (chooser) =>
    scenario({
      callers: [
        named('a', { limit: 1, hold: 3 }),
        named('c', { limit: 1, wait: 20, after: 2, hold: 1 + chooser.choose(3), served: true }),
      ],
      ghosts: [named('b', { limit: 1, wait: 60, after: 1, ttl: 40 })],
    }),
  'the dead make room for a task': (chooser) =>
    scenario({
      callers: some(chooser, ['a', 'b', 'c', 'd', 'e'], 2).map((name) => named(name, { limit: 5, abandons: true })),
      tasks: [['w', { ...(chooser.choose(2) ? { exclusive: true } : { limit: 5, weight: 5 }), after: 14 }]],
    }),
  'answers of writes get lost in line': (chooser) =>
    scenario({
      callers: [named('a', { limit: 1 })],
      tasks: ['x', 'y', 'z'].map((name) => [name, { limit: 1 }]),
      faults: 1 + chooser.choose(3),
      fates: ['lostWrite'],
      unaided: true,
    }),
  'answers get lost in line': (chooser) =>
    scenario({
      callers: [named('a', { limit: 1 })],
      tasks: ['x', 'y', 'z'].map((name) => [name, { limit: 1 }]),
      faults: 1 + chooser.choose(2),
      fates: ['lostReply'],
      needsRepair: true,
    }),
  'a line that is seen empty in between': (chooser) =>
    scenario({
      callers: ['a', 'b'].map((name) => named(name, { limit: 2, after: chooser.choose(2) })),
      tasks: ['x', 'y', 'z'].map((name) => [name, { limit: 2, after: chooser.choose(3) }]),
    }),
  'two release at once': (chooser) =>
    scenario({
      callers: ['a', 'b'].map((name) => named(name, { limit: 2, hold: 4 })),
      tasks: ['x', 'y', 'z'].map((name) => [name, { limit: 2, after: 1, hold: 1 + chooser.choose(6) }]),
    }),
  'slow claims': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { limit: 1, hold: 1 }),
        named('a', { limit: 1, wait: 9, hold: 5 }),
        ...some(chooser, [named('p', { limit: 1, wait: 30, after: 1, hold: 1 + chooser.choose(6) })], 0),
      ],
      ticks: 1 + chooser.choose(2),
      jumps: [3, 5],
    }),
  'one request twice in line': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { limit: 1, hold: 2 + chooser.choose(3) }),
        named('a', { limit: 1, wait: 12, after: chooser.choose(2), hold: 2 }),
        named('a', { limit: 1, wait: 12, after: chooser.choose(3), hold: 2 }),
        ...some(chooser, [named('b', { limit: 1, wait: 20 })], 0),
      ],
      cancels: [2 + chooser.choose(4)],
    }),
  'a task that cannot be notified': (chooser) =>
    scenario({
      callers: [
        named('h', { limit: 1, hold: 2 + chooser.choose(4) }),
        ...some(chooser, [named('a', { limit: 1, wait: 20, after: 1 + chooser.choose(9) })], 0),
      ],
      tasks: some(chooser, ['x', 'y', 'z']).map((name, n) => [
        name,
        { after: 1, limit: 1, parkMs: 4 + chooser.choose(8), unreachable: n === 0 || chooser.choose(2) === 0 },
      ]),
      repairs: chooser.choose(3),
      needsRepair: true,
    }),
  'a task is tried again': (chooser) =>
    scenario({
      callers: [named('h', { limit: 1, hold: 1 + chooser.choose(3) })],
      tasks: [['x', { after: 1, hold: 2, limit: 1, ttl: 600, again: 1 + chooser.choose(6) }]],
      faults: chooser.choose(4),
      fates: ['lostReply', 'lostRequest'],
      repairs: chooser.choose(3),
      needsRepair: true,
    }),
  'one request, two tasks, and room': (chooser) =>
    scenario({
      callers: [
        named('h', { limit: 2, weight: 2, hold: 3 + chooser.choose(3) }),
        named('p', { limit: 2, after: 12 + chooser.choose(5), served: true }),
      ],
      tasks: [['x', { after: 1, hold: 60, ttl: 90, limit: 2, twin: true }]],
      needsRepair: true,
    }),
  'clocks apart in line': (chooser) =>
    scenario({
      offset: (_, { chooser }) => chooser.choose(3),
      config: { skew: 2 },
      callers: [named('b', { limit: 1, wait: 30, after: 2 + chooser.choose(6), hold: 4 })],
      tasks: [['x', { limit: 1, hold: 5, again: 1 + chooser.choose(2), ttl: 6, beats: 1 }]],
      faults: 1,
      fates: ['lostReply'],
      needsRepair: true,
    }),
  breaks: (chooser) =>
    scenario({
      offset,
      callers: ['a', 'b', 'c'].map((name) =>
        named(name, { limit: 2, rounds: 2, hold: 1 + chooser.choose(4), beats: chooser.choose(2) }),
      ),
      breaks: [1 + chooser.choose(4), 2 + chooser.choose(8)],
      ...trouble(chooser, { faults: 3, ticks: 2, jumps: [1, 9] }),
    }),
  'breaks that wait': (chooser) =>
    scenario({
      offset,
      callers: [
        ...['a', 'b'].map((name) =>
          named(name, {
            limit: 1,
            rounds: 2,
            hold: 1 + chooser.choose(4),
            beats: chooser.choose(3),
            wait: chooser.choose(9),
          }),
        ),
      ],
      tasks: some(chooser, ['x', 'y']).map((name) => [
        name,
        { limit: 1, hold: 1 + chooser.choose(5), beats: chooser.choose(2) },
      ]),
      waitingBreaks: [1 + chooser.choose(4), 2 + chooser.choose(8)],
      ...troubleOfTasks(chooser),
    }),
  'clocks two apart': (chooser) =>
    scenario({
      offset: (_, { chooser }) => chooser.choose(3),
      config: { skew: 2 },
      callers: ['a', 'b', 'c'].map((name) =>
        named(name, {
          limit: 1,
          hold: 5,
          wait: 20,
          races: true,
          abandons: chooser.choose(3) === 0,
          after: chooser.choose(3),
        }),
      ),
    }),
  'beats overtake each other': (chooser) =>
    scenario({
      offset,
      callers: [
        named('a', { beats: 2, hold: 1, lingers: 5 }),
        named('b', { wait: 20, races: true, after: 3 + chooser.choose(3), hold: 3 }),
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
  barging: { what: 'a call that does not wait takes no notice of the line' },
  headPassed: { what: 'one that fits passes the first that does not' },
  markCounts: {
    what: 'the mark is the count of arrivals, which begins again after the mark went',
    mixes: ['a line that is seen empty in between'],
  },
  markStays: {
    what: 'an arrival leaves the value of a mark that is there',
    mixes: ['a line that is seen empty in between', 'tasks in line'],
  },
  markUnguarded: { what: 'the mark is removed whatever its value' },
  staleLook: { what: 'the mark is removed after a look at the line from before its value' },
  fenceUnseen: {
    what: 'the line grants permits after a look from before the last grant',
    survives: 'the entry and the memory of a request stand in for it, until the key changes its kind (keys)',
    mixes: ['callers in line', 'tasks in line', 'callers and tasks', 'two release at once'],
  },
  rowsTrusted: {
    what: 'the rows of a look are judged again though permits were granted since that do not stand any more',
    survives: 'in the age of a look no eight others give theirs back, so the record remembers those that did',
    mixes: ['nothing goes wrong in line', 'callers and tasks'],
  },
  endedUncounted: {
    what: 'a call counts a permit that it ended itself for one that it did not see',
    survives: 'it costs a query',
    mixes: ['nothing goes wrong in line'],
  },
  markFirst: { what: 'the mark comes before the ticket' },
  noLookAfterMark: { what: 'a call that joins the line does not look after the mark' },
  noLookAfterEnd: {
    what: 'a call that has ended a permit does not look again',
    mixes: ['the dead make room for a task'],
  },
  releaseIgnoresMark: { what: 'a release gives nothing to the line' },
  ownUnseen: {
    what: 'a grant that landed without an answer is taken for that of another call',
    mixes: ['answers of writes get lost in line'],
  },
  lateUntold: {
    what: 'the schedule tells no task of a grant that it may not have heard of',
    survives: 'it costs a ttl: then the task is granted another permit, and notified of that',
    mixes: ['answers get lost in line'],
  },
  noWindow: { what: 'a caller in line is granted its whole ttl before it claims it', mixes: ['callers die in line'] },
  unclaimedKeepsPlace: {
    what: 'a caller that did not claim its permit keeps its place',
    mixes: ['callers die in line'],
  },
  cancelUnseen: { what: 'a claim does not look whether it was withdrawn', mixes: ['cancellations'] },
  ownRowUnread: {
    what: 'a call whose own row was withdrawn is answered with the permit of another row',
    mixes: ['one request twice in line'],
  },
  claimTrusted: { what: 'a claim that was answered late is not renewed', mixes: ['slow claims'] },
  overdueKeepsMark: {
    what: 'an overdue task that cannot be notified keeps the mark',
    mixes: ['a task that cannot be notified'],
  },
  secondBlocks: {
    what: 'a second row of a request that has a permit keeps the mark',
    mixes: ['one request, two tasks, and room'],
  },
  secondRowUntold: {
    what: 'the schedule notifies no second task of a request that has a permit',
    mixes: ['a task is tried again'],
  },
  lostSilently: {
    what: 'a call that ends with LeaseLost does not give to the line',
    survives: 'it costs time: the next in line finds the room',
    mixes: ['cancellations', 'one request twice in line'],
  },
  absentGranted: { what: 'a caller that has left is granted a permit', mixes: ['the impatient in front'] },
  unmarkedUnseen: {
    what: 'a call in line does not put back a mark that is missing',
    survives: 'it costs time: the schedule puts it back',
    mixes: ['callers in line'],
  },
  leavesSilently: {
    what: 'a call that leaves does not give to the line',
    survives: 'it costs time: the next in line finds the room',
    mixes: ['callers in line'],
  },
  endingBeaten: { what: 'a heartbeat extends a permit that is ending', mixes: ['breaks that wait'] },
  endingKeepsVersion: {
    what: 'the end mark gives a permit no new version',
    mixes: ['breaks that wait'],
  },
  endingEndsNotified: {
    what: 'a break that waits ends the permit of a task that takes no message',
    mixes: ['breaks that wait'],
  },
  ttlOfWriter: { what: 'the record lives as long as its last writer asked for', mixes: ['a record that vanishes'] },
};
