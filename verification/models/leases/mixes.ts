import type { Mutant } from '../engine/command.ts';
import { named, offset, some } from '../engine/parties.ts';
import type { Chooser, Scenario } from '../engine/world.ts';
import { type Cast, scenario } from './parties.ts';
import type { LeaseWorld } from './world.ts';

const pick = <T>(chooser: Chooser, ...values: readonly [T, ...T[]]): T =>
  values[chooser.choose(values.length)] ?? values[0];
/** A call behind one that died waits no longer than this. */
const behindDead = (world: LeaseWorld): number =>
  Math.max(world.releasedAt ?? 0, 1000) +
  world.crashes * (world.config.window + world.config.skew + 1 + 2 * world.config.lookFar) +
  world.config.lookFar +
  1;
const atOnce = (world: LeaseWorld): number => Math.max(world.releasedAt ?? 0, 1003) + world.config.lookFar + 1;

/** Gone through completely. */
export const SMALL: Record<string, () => Scenario> = {
  'a holder, one waits, one fault': () =>
    scenario({ callers: [named('h', { hold: 2 }), named('a', { wait: 12 })], faults: 1 }),
  'a holder, one waits, two faults': () =>
    scenario({
      callers: [named('h', { hold: 2 }), named('a', { wait: 8 })],
      faults: 2,
      fates: ['lostReply', 'unknown', 'crash', 'dup'],
    }),
  'a holder, one waits, a standstill and a fault': () =>
    scenario({
      callers: [named('h', { hold: 1 }), named('a', { wait: 8 })],
      faults: 1,
      ticks: 1,
      jumps: [5, 10],
      fates: ['lostReply', 'crash'],
    }),
  'a holder, two wait, nothing goes wrong': () =>
    scenario({
      callers: [
        named('h', { hold: 1 }),
        named('a', { wait: 200, served: true }),
        named('b', { wait: 200, served: true }),
      ],
    }),
  'one dies in front': () =>
    scenario({
      callers: [
        named('h', { hold: 2, spared: true }),
        named('d', { wait: 100 }),
        named('a', { wait: 100, spared: true, served: true, servedBy: behindDead }),
      ],
      faults: 1,
      fates: ['crash', 'crashAfter'],
    }),
  'a holder, one waits, one is parked': () =>
    scenario({ callers: [named('h', { hold: 1 }), named('a', { wait: 100, served: true })], tasks: [named('x', {})] }),
  'a withdrawal': () =>
    scenario({
      callers: [named('h', { hold: 2 }), named('a', { wait: 9 })],
      withdrawals: [named('w', { of: 'a', after: 1 })],
    }),
  'a withdrawal, one fault': () =>
    scenario({
      callers: [named('h', { hold: 2, spared: true }), named('a', { wait: 9 })],
      withdrawals: [named('w', { of: 'a', after: 1 })],
      faults: 1,
      fates: ['lostReply', 'dup'],
    }),
  'a withdrawal meets a hand-off, one answer is lost': () =>
    scenario({
      callers: [named('h', { hold: 2, spared: true }), named('a', { wait: 9, hold: 3 })],
      withdrawals: [named('w', { of: 'a', after: 2 })],
      faults: 1,
      fates: ['lostReply'],
    }),
  'one asks again and keeps its place': () =>
    scenario({
      callers: [
        named('h', { hold: 6 }),
        named('a', { wait: 3, again: 1, tries: 4 }),
        named('b', { wait: 40, after: 1 }),
      ],
    }),
  'a claim that stands still until others have had the key': () =>
    scenario({
      callers: [
        named('h', { hold: 1 }),
        named('a', { wait: 8 }),
        named('p', { after: 7, ttl: 24, hold: 20 }),
        named('q', { after: 25 }),
      ],
      ticks: 1,
    }),
  'one request twice in line': () =>
    scenario({
      callers: [named('h', { hold: 2 }), named('a', { wait: 9, twin: true }), named('a', { wait: 9, twin: true })],
    }),
};

function mixed(chooser: Chooser, more: Cast = {}): Scenario {
  const plain = [
    named('p', { rounds: 1 + chooser.choose(3), hold: 1 + chooser.choose(2) }),
    named('q', { rounds: 2, after: 1 }),
  ];
  const waiting = some(chooser, ['a', 'b', 'c', 'd']).map((name) =>
    named(name, {
      wait: pick(chooser, 4, 8, 14),
      rounds: 1 + chooser.choose(2),
      hold: 1 + chooser.choose(2),
      beats: chooser.choose(2),
      abandons: chooser.choose(6) === 0,
      again: chooser.choose(2) ? 1 + chooser.choose(4) : undefined,
      after: chooser.choose(3),
    }),
  );
  return scenario({ offset, callers: [...some(chooser, plain, 0), ...waiting], ...more });
}

type Mix = (chooser: Chooser) => Scenario;

/** Gone through by chance. */
export const MIXES: Record<string, Mix> = {
  'callers wait and nothing goes wrong': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 1 + chooser.choose(3) }),
        ...some(chooser, ['a', 'b', 'c', 'd']).map((name) =>
          named(name, {
            wait: 300,
            served: true,
            rounds: 1 + chooser.choose(2),
            hold: 1 + chooser.choose(2),
            after: chooser.choose(3),
          }),
        ),
      ],
    }),
  'callers and tasks wait and nothing goes wrong': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 1 + chooser.choose(3) }),
        ...some(chooser, ['a', 'b']).map((name) => named(name, { wait: 300, served: true, after: chooser.choose(3) })),
      ],
      tasks: some(chooser, ['x', 'y', 'z']).map((name) => named(name, { after: chooser.choose(3) })),
    }),
  'callers leave among tasks and nothing goes wrong': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 1 + chooser.choose(4) }),
        ...some(chooser, ['a', 'b']).map((name) =>
          named(name, { wait: 1 + chooser.choose(5), after: chooser.choose(3) }),
        ),
      ],
      tasks: some(chooser, ['x', 'y']).map((name) => named(name, { after: chooser.choose(4) })),
    }),
  'plain and waiting callers': (chooser) =>
    mixed(chooser, { faults: chooser.choose(4), ticks: chooser.choose(3), jumps: [1, 5, 12] }),
  'plain and waiting callers without standstills': (chooser) => mixed(chooser, { faults: 1 + chooser.choose(3) }),
  'callers and tasks': (chooser) =>
    mixed(chooser, {
      tasks: some(chooser, ['x', 'y']).map((name) =>
        named(name, { after: chooser.choose(4), hold: 1 + chooser.choose(3) }),
      ),
      faults: chooser.choose(4),
      ticks: chooser.choose(2),
      jumps: [1, 5, 12],
      deaths: chooser.choose(2) === 0,
      repairs: chooser.choose(3),
    }),
  'messages get lost': (chooser) =>
    scenario({
      offset,
      callers: [named('h', { hold: 2 }), named('a', { wait: 14, after: 1 })],
      tasks: ['x', 'y', 'z'].map((name) => named(name, { after: chooser.choose(3), hold: 3 })),
      faults: 1 + chooser.choose(2),
      fates: ['lostReply', 'unknown'],
      ticks: chooser.choose(3),
      jumps: [2, 5],
      repairs: chooser.choose(3),
      deaths: chooser.choose(2) === 0,
    }),
  'clocks two apart': (chooser) =>
    mixed(chooser, {
      config: { skew: 2 },
      offset: (_, world) => world.chooser.choose(3),
      faults: chooser.choose(3),
      tasks: some(chooser, [named('x', { after: 1, hold: 12 })], 0),
      ticks: chooser.choose(3),
      jumps: [3, 6],
    }),
  'long work': (chooser) =>
    scenario({
      offset,
      callers: [
        named('p', { rounds: 3, hold: pick(chooser, 1, 12), after: chooser.choose(3) }),
        named('q', { rounds: 3, hold: pick(chooser, 1, 12) }),
        ...some(chooser, ['a', 'b', 'c']).map((name) =>
          named(name, {
            wait: pick(chooser, 3, 9, 20),
            rounds: 2,
            hold: pick(chooser, 1, 7, 12),
            after: chooser.choose(3),
          }),
        ),
      ],
      tasks: some(chooser, [named('x', { after: 1, hold: 12 })], 0),
      faults: chooser.choose(3),
      ticks: chooser.choose(3),
      jumps: [2, 4, 7],
    }),
  'slow claims': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 1 }),
        named('a', { wait: 9, hold: 12 }),
        named('p', { wait: 30, after: 1, hold: pick(chooser, 1, 9) }),
        ...some(chooser, [named('q', { rounds: 3, after: 6, hold: 2 })], 0),
      ],
      ticks: 1 + chooser.choose(2),
      jumps: [4, 6],
    }),
  'late releases': (chooser) =>
    scenario({
      offset,
      callers: [
        named('p', { hold: 8 + chooser.choose(4) }),
        named('a', { wait: 2 + chooser.choose(4), again: 1 + chooser.choose(2), tries: 6 }),
        named('q', { rounds: 4, after: 1 + chooser.choose(4), tries: 4 }),
      ],
      ticks: chooser.choose(3),
      jumps: [1, 3],
    }),
  'a withdrawal meets a hand-off': (chooser) =>
    scenario({
      offset,
      callers: [named('h', { hold: 2 }), named('a', { wait: 9, hold: 3 })],
      withdrawals: [named('v', { of: 'a', after: 1 + chooser.choose(2) })],
      faults: 1,
      fates: ['lostReply'],
    }),
  'the impatient in front': (chooser) =>
    scenario({
      offset: () => 0,
      callers: [
        named('h', { hold: 6 + chooser.choose(3) }),
        ...some(chooser, ['a', 'b', 'c']).map((name) =>
          named(name, { wait: 2 + chooser.choose(4), after: chooser.choose(2) }),
        ),
        named('z', { wait: 200, after: 2, served: true, servedBy: atOnce }),
      ],
    }),
  'withdrawals and lost answers': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 1 + chooser.choose(3) }),
        named('a', { wait: 9 }),
        ...some(chooser, [named('b', { wait: 20 })], 0),
      ],
      withdrawals: [named('v', { of: 'a', after: 1 + chooser.choose(5) })],
      faults: 1,
      fates: ['lostReply'],
    }),
  withdrawals: (chooser) =>
    mixed(chooser, {
      withdrawals: some(chooser, [
        named('v', { of: 'a', after: 1 + chooser.choose(6) }),
        named('w', { of: 'b', after: 1 + chooser.choose(6) }),
      ]),
      faults: chooser.choose(3),
      ticks: chooser.choose(3),
      jumps: [1, 5, 12],
    }),
  'one request twice': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 1 + chooser.choose(3) }),
        named('a', { wait: 9, twin: true, hold: 1 + chooser.choose(3) }),
        named('a', { wait: pick(chooser, 0, 9), twin: true, after: chooser.choose(4), hold: 1 + chooser.choose(3) }),
        ...some(chooser, [named('b', { wait: 12 })], 0),
      ],
      faults: chooser.choose(3),
      ticks: chooser.choose(2),
      jumps: [1, 5],
    }),
  'asking again': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 6 + chooser.choose(5) }),
        ...some(chooser, ['a', 'b', 'c'], 2).map((name) =>
          named(name, {
            wait: pick(chooser, 3, 5),
            again: 1 + chooser.choose(5),
            forgets: chooser.choose(4) === 0,
            tries: 5,
            after: chooser.choose(3),
          }),
        ),
      ],
      faults: chooser.choose(3),
      ticks: chooser.choose(2),
      jumps: [1, 5],
      repairs: chooser.choose(2),
    }),
  'two die in front': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 1 + chooser.choose(3), spared: true }),
        ...some(chooser, ['d', 'e']).map((name) => named(name, { wait: 100, after: chooser.choose(3) })),
        named('a', { wait: 100, after: chooser.choose(3), spared: true, served: true, servedBy: behindDead }),
      ],
      faults: 2,
      fates: ['crash', 'crashAfter'],
    }),
  'third-party clients': (chooser) =>
    mixed(chooser, {
      foreigners: some(chooser, [
        named('f', { rounds: 3, after: 1 + chooser.choose(3) }),
        named('g', { rounds: 2, after: 2 }),
      ]),
      tasks: some(chooser, [named('x', { after: 1 })], 0),
      faults: chooser.choose(3),
      ticks: chooser.choose(2),
      jumps: [1, 5],
      repairs: chooser.choose(2),
    }),
  'a task that cannot be notified': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 2 + chooser.choose(4) }),
        ...some(
          chooser,
          [named('a', { wait: 20, after: 1 + chooser.choose(9) }), named('p', { after: 12, tries: 1 })],
          0,
        ),
      ],
      tasks: some(chooser, ['x', 'y', 'z']).map((name, n) =>
        named(name, { after: 1, parkMs: 4 + chooser.choose(8), unreachable: n === 0 || chooser.choose(2) === 0 }),
      ),
      repairs: chooser.choose(3),
      needsRepair: true,
    }),
  'a task is tried again': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 1 + chooser.choose(3) }),
        ...some(chooser, [named('a', { wait: 20, after: 1 + chooser.choose(9) })], 0),
      ],
      tasks: [named('x', { after: 1, hold: 2, ttl: 600, again: 1 + chooser.choose(6) })],
      faults: chooser.choose(4),
      fates: ['lostReply', 'lostRequest'],
      repairs: chooser.choose(3),
      needsRepair: true,
    }),
  'one request, two tasks': (chooser) =>
    scenario({
      offset,
      callers: [
        named('h', { hold: 2 + chooser.choose(3) }),
        ...some(chooser, [named('a', { wait: 20, after: 1 + chooser.choose(9) })], 0),
      ],
      tasks: [named('x', { after: 1, hold: 2, twin: true })],
      faults: chooser.choose(3),
      fates: ['lostReply'],
      repairs: chooser.choose(3),
      needsRepair: true,
    }),
  'records that vanish': (chooser) =>
    mixed(chooser, {
      ttlDeletes: true,
      config: { retention: 8 },
      faults: chooser.choose(3),
      ticks: 2,
      jumps: [9, 12],
    }),
};

/** Rules that can be switched off. */
export const MUTANTS: Record<string, Mutant> = {
  noSkew: { what: 'there is no margin between clocks', mixes: ['clocks two apart'] },
  barging: { what: 'plain callers ignore the mark' },
  releaseIgnoresMark: { what: 'the plain release ignores the mark' },
  markFlag: { what: 'the mark is a flag' },
  markUnguarded: { what: 'the mark goes without its value in the condition' },
  markRestarts: {
    what: 'the mark goes from a held record without a new version',
    mixes: ['late releases'],
    survives:
      'rare: a release must stand still while the mark goes, comes back with the same count, and the grant is extended',
  },
  freeMarkByCount: {
    what: 'the mark of a free record is known by its count alone',
    mixes: ['plain and waiting callers', 'callers and tasks'],
    survives:
      'rare: a call must stand still between its look at an empty line and its write, while another clears the mark and a third begins it again',
  },
  staleLook: { what: 'the mark goes at a value that is younger than the look at the queue' },
  markFirst: {
    what: 'the mark comes before the row',
    mixes: ['callers leave among tasks and nothing goes wrong', 'callers and tasks wait and nothing goes wrong'],
  },
  transferFence: {
    what: 'a transfer does not demand that the fence rises',
    mixes: ['messages get lost', 'callers and tasks', 'plain and waiting callers'],
  },
  freeWithoutFence: {
    what: 'a record that was seen free is known by being free alone',
    mixes: ['plain and waiting callers', 'long work', 'callers and tasks'],
  },
  renewalTrusted: { what: 'nobody looks at the clock after a renewal', mixes: ['messages get lost'] }, // seed 1798
  untoldRemembered: { what: 'a grant of which nobody heard is remembered as released' },
  claimUnconditional: {
    what: 'a claim does not name the version',
    small: ['a claim that stands still until others have had the key'],
  },
  claimTrusted: { what: 'nobody looks at the clock after the claim', mixes: ['slow claims'] },
  claimCountsFromAnswer: { what: 'the ttl counts from the answer to the claim', mixes: ['slow claims'] },
  windowAnswered: { what: 'a call answers with what is left of the window' },
  noWindow: { what: 'a caller that waits is granted the whole ttl unclaimed', mixes: ['two die in front'] },
  repeatUnclaimed: { what: 'a repeat is answered with the window' },
  rowBeforeClaim: { what: 'the row goes before the claim' },
  noLastLook: { what: 'a call leaves without a last look' },
  noReadAfterCancel: {
    what: 'a withdrawal does not read the record',
    mixes: ['withdrawals', 'withdrawals and lost answers'],
  },
  cancelDeletes: { what: 'a withdrawal deletes the row', mixes: ['withdrawals'] },
  cancelledDeleted: { what: 'a hand-off deletes withdrawn rows as any other', mixes: ['withdrawals'] },
  cancelUnseen: { what: 'a claim does not look whether it was withdrawn', mixes: ['withdrawals'] },
  cancelledByOldItem: {
    what: 'the row of a claim is deleted without a condition',
    small: ['a withdrawal meets a hand-off, one answer is lost'],
  },
  unclaimedKeepsPlace: { what: 'a grant that was not claimed in time keeps its place' },
  unclaimedOverwritten: { what: 'plain callers overwrite an unclaimed grant that lapsed' },
  absentGranted: { what: 'an absent caller is granted the key', mixes: ['the impatient in front'] },
  absentDeleted: { what: 'a row goes at its deadline', mixes: ['asking again'] },
  overdueUnguarded: {
    what: 'rows that are over go without a condition',
    mixes: ['asking again'],
    survives: 'it costs the call its place, and no promise: such a call has come back at the end of its five seconds',
  },
  rejoinSecondTicket: { what: 'a call that asks again takes a second ticket', mixes: ['asking again'] },
  nextTrusted: { what: 'only the next in line hands on', mixes: ['two die in front'] },
  leavingGranted: {
    what: 'a caller that may be leaving is granted the key in front of a task',
    survives: 'it costs time: the message has the key looked at again',
    mixes: ['callers leave among tasks and nothing goes wrong'],
  },
  noMessage: {
    what: 'no message looks again where a caller was granted the key in front of a task',
    mixes: ['callers leave among tasks and nothing goes wrong'],
  },
  leavesSilently: {
    what: 'a call that leaves does not pass a free lease on',
    survives: 'it costs time: the next in line finds the key free',
    mixes: ['callers leave among tasks and nothing goes wrong', 'asking again'],
  },
  lostSilently: {
    what: 'a call that ends with LeaseLost does not pass a free lease on',
    survives: 'it costs time: the next in line finds the key free',
    mixes: ['one request twice', 'withdrawals'],
  },
  previousOfUnclaimed: {
    what: '`previous` names a holder that never claimed',
    mixes: ['two die in front', 'plain and waiting callers without standstills'],
  },
  overdueKeepsMark: {
    what: 'an overdue task that cannot be notified keeps the mark',
    mixes: ['a task that cannot be notified'],
  },
  secondRowUntold: {
    what: 'the schedule notifies no second task of the request that has the lease',
    mixes: ['a task is tried again'],
  },
  endedTaskGranted: {
    what: 'a second task of a request that gave its grant back is granted the key',
    mixes: ['one request, two tasks'],
  },
  rowNotRead: {
    what: 'a call does not read its row before it puts back a lost mark',
    survives: 'it costs time: the next call finds the line empty, and removes the mark',
    mixes: ['third-party clients'],
  },
  quickUnproven: { what: 'a quick release does not prove its lease id' },
  quickToItself: {
    what: 'a quick release grants the key to the request that gives it back',
    mixes: ['one request twice'],
  },
  quickOverOwnRow: {
    what: 'a quick release passes over the row of its own grant',
    survives: 'the second of two nets: the transfer is not made to the request that gives the key back',
    mixes: ['callers and tasks', 'messages get lost'],
  },
  quickUnmarked: {
    what: 'a quick release does not demand the mark',
    survives:
      'the second of two nets: only a call that saw nobody in line removes the mark under a lease id, and each newcomer raises it after its row',
    mixes: ['third-party clients', 'plain and waiting callers'],
  },
  unmarkedUnseen: {
    what: 'a call that waits does not put back a lost mark',
    survives:
      'it costs time, and the order towards newcomers, which is not promised beside other clients: the schedule puts the mark back',
    mixes: ['third-party clients'],
  },
};
