import { ALL, BARE, type Entry, FAR, type Mix, type Rec, type Spec } from './state.ts';
import { entry } from './writes.ts';

const X = (more: Partial<Spec> = {}): Spec => ({ k: 'X', w: ALL, l: 0, runs: 1, wait: 'no', ...more });
const S = (l: number, more: Partial<Spec> = {}): Spec => ({ k: 'S', w: 1, l, runs: 1, wait: 'no', ...more });
const task = { wait: 'task' } as const;
const call = { wait: 'call' } as const;
const bound = { execution: 'bound' } as const;

const dead = (n: string, w: number, i: number): Entry => entry({ n, i, v: i - 1, w, x: -1 }, 1020);
const last = (n: string): Entry => ({ ...dead(n, ALL, 0), v: 0 });
/** The records with which a history begins. */
export const STARTS: Record<string, Rec> = {
  free: { ...BARE, used: 0, fence: 1020, h: last('X9a') },
  'free, marked': { ...BARE, used: 0, fence: 1020, ring: ['X9a'], mark: -1 },
  expired: { ...BARE, lv: 'ours', used: ALL, fence: 1020, h: dead('X9a', ALL, -12) },
  shared: { ...BARE, lv: 'ours', lx: FAR, used: 2, fence: 1021, shared: [dead('S8a', 1, -12), dead('S9a', 1, -15)] },
  'X1a has had it': { ...BARE, used: 0, fence: 1020, h: last('X1a'), ring: ['X1a'] },
};

export const MIXES: Record<string, Mix> = {
  'two alone': { ps: [X(), X()], bud: { beat: 1, twice: 1, late: 1 } },
  'two alone, twice each, a late try': { ps: [X({ runs: 2 }), X({ runs: 2 })], ring: 1, bud: { late: 1, beat: 1 } },
  'alone after a dead holder': { start: 'expired', ps: [X(), X()], bud: { beat: 1, lost: 1, late: 1 } },
  'alone and together': { ps: [X(), S(2), S(2)], ring: 3, bud: { beat: 1, twice: 1 } },
  'alone and together, late': { start: 'free', ps: [X(), S(2), S(2)], ring: 3, bud: { late: 1, beat: 1 } },
  'weights and limits': { ps: [S(3, { w: 2 }), S(3), S(1), S(3, { w: 3 })], bud: { beat: 1 } },
  'together after dead holders': { start: 'shared', ps: [S(2), S(2), X()], ring: 3, bud: { beat: 1, late: 1 } },
  'a repeated request': { ps: [S(2, { runs: 2 }), S(2)], ring: 3, bud: { late: 1, lost: 1 } },
  'the crate and two alone': { ps: [X({ runs: 2 }), X()], bud: { crate: 2, extend: 1, beat: 1 } },
  'the crate, late writes': { ps: [X(), X()], bud: { crate: 1, extend: 1, late: 1, twice: 1, beat: 1 } },
  'the crate, late tries': { ps: [X(), X()], bud: { crate: 1, late: 1, twice: 1 } },
  'the crate and together': { start: 'free', ps: [X(), S(2), S(2)], bud: { crate: 2, extend: 1, beat: 1 } },
  'the crate, TTL': { start: 'expired', ps: [X(), S(1)], bud: { crate: 1, ttl: 1, late: 1, beat: 1 } },
  'the crate and two together': { start: 'free', ps: [S(2), S(2)], bud: { crate: 1, beat: 1 } },
  'a task waits, and nothing goes wrong': { ps: [X({ runs: 2 }), X(task)] },
  'a call waits, and nothing goes wrong': { ps: [X({ runs: 2 }), X(call)] },
  'a task waits': { ps: [X(), X(task)], bud: { beat: 1, lost: 1, exit: 1, schedule: 1 } },
  'two tasks wait': { ps: [X(), X(task), X(task)] },
  'two tasks wait, the schedule': { ps: [X(), X(task), X(task)], bud: { schedule: 1 } },
  'two tasks wait, a double write': { start: 'free', ps: [X(task), X(task)], bud: { twice: 1, late: 1 } },
  'a writer, then readers as tasks': { ps: [X(), S(2, task), S(2, task)] },
  'a reader, then a writer and a reader as tasks': { ps: [S(2), X(task), S(2, task)] },
  'readers, a writer waits': { ps: [S(2), S(2), X(task)], bud: { beat: 1 } },
  'heavy and light in line': { ring: 3, ps: [S(2), S(2, { w: 2, ...task }), S(2, task)], bud: { beat: 1 } },
  'a call waits': { ps: [X(), X(call)], bud: { beat: 1, lost: 1, leave: 1, late: 1 } },
  'two calls wait': { ps: [X(), X(call), X(call)], bud: { leave: 1 } },
  'calls together in line': { ps: [X(), S(2, call), S(2, call)] },
  'a quick release': { ps: [X({ ...task, quick: true }), X({ ...task, quick: true }), X(task)] },
  'a quick release, late': {
    start: 'free',
    ps: [X({ ...task, quick: true }), X({ ...call, quick: true })],
    bud: { late: 1, twice: 1 },
  },
  'the crate, a task waits': { ps: [X(), X(task)], bud: { crate: 1, extend: 1, schedule: 1 } },
  'the crate, a task waits, late': { ps: [X(task)], bud: { crate: 2, extend: 1, late: 1, schedule: 1 } },
  'the crate, a call waits': { ps: [X(), X(call)], bud: { crate: 1, extend: 1, late: 1 } },
  'the crate, a task and a call': { ps: [X(call), X(task)], bud: { crate: 2 } },
  'the crate, a call leaves': { ps: [X(call), X()], bud: { crate: 1, extend: 1, leave: 1 } },
  'breaks with wait': { ps: [X(), X(task)], bud: { breakWait: 1, beat: 2, lost: 1 } },
  'breaks with wait, together': { ps: [S(2, { runs: 2 }), X(task)], bud: { breakWait: 1, beat: 1 } },
  'a break of a task': { ps: [X(), X(task)], bud: { breakWait: 1, mute: 1, schedule: 1 } },
  'breaks of tasks': { ps: [X({ runs: 2 }), X(task)], bud: { breakWait: 1, mute: 1, schedule: 1 } },
  breaks: { ps: [X({ runs: 2 }), X(task)], bud: { break: 1, late: 1, beat: 1 } },
  'breaks, together': { ps: [S(2), S(2, task), X()], bud: { break: 1 } },
  'tasks that are gone': { ps: [X(), X(task), S(1, task)], bud: { gone: 1 } },
  'messages without effect': { ps: [X({ runs: 2 }), X(task)], bud: { gone: 1, mute: 1, schedule: 1 } },
  'a state is tried again': { ps: [X({ runs: 2 }), X(task)], bud: { again: 1 } },
  'a state is tried again, the schedule': { ps: [X(), X(task)], bud: { again: 1, schedule: 2, mute: 1 } },
  'calls that exit': { ps: [X(), S(2, call)], bud: { exit: 2, schedule: 1 } },
  'the crate, shared from the line': { ps: [X(), S(2, task)], bud: { crate: 1, beat: 1 } },
  'a row that stayed': {
    ring: 4,
    start: 'X1a has had it',
    rows: ['X1a'],
    ps: [X({ quick: true }), X(call), X({ ...task, quick: true })],
  },
  'a request that is answered parks': { ps: [X(), X(task), X({ ...task, as: 0 })] },
  'rows that stayed, and a quick release': {
    rows: ['X2a', 'X0a'],
    ps: [X({ ...task, runs: 0 }), X({ as: 0, quick: true }), X({ ...task, runs: 0 })],
    bud: { schedule: 1 },
  },
  'two see a stale mark': { start: 'free, marked', ps: [X(), X(), X(task)] },
  'a stale mark': { start: 'free, marked', ring: 3, ps: [X(task), X(), S(2)], bud: { late: 1 } },
  'one request twice in line': { ps: [X(), X(call), X({ ...call, as: 1 })], bud: { leave: 1 } },
  'a call and a task of one request': { ps: [X(), X({ ...call, quick: true }), X({ ...task, as: 1 })] },
  withdrawals: { ps: [X(), X(call)], bud: { withdraw: 1, lost: 1 } },
  'withdrawals, together': { ps: [X(), S(2, call), S(2, call)], bud: { withdraw: 1 } },
  cancellations: { ps: [X(), X(task), X(task)], bud: { cancel: 1 } },
  'executions end': { ps: [X({ execution: 'ttl' }), X(task)], bud: { end: 1, redrive: 1 } },
  'one of two readers ends, a writer waits': { ps: [S(2, { execution: 'ttl' }), S(2), X(task)], bud: { end: 1 } },
  'executions end, together': { ps: [S(2, { execution: 'ttl' }), X(), S(2, task)], bud: { end: 1, redrive: 1 } },
  'bound grants': { ps: [X(bound), X(task), X()], bud: { end: 1, redrive: 1, lost: 1 } },
  'bound grants together': { ps: [S(2, bound), S(2, bound), X(task)], bud: { end: 2, redrive: 1 } },
  'bound grants with a grace': { ps: [X({ ...bound, grace: true }), X(task), X()], bud: { end: 1, redrive: 1 } },
  'bound grants of tasks': {
    ps: [X(), X({ ...task, ...bound, runs: 2 }), X()],
    bud: { gone: 1, mute: 1, schedule: 2 },
  },
  'the crate, bound grants': { ps: [X(bound), X()], bud: { crate: 1, end: 1, redrive: 1 } },
};
