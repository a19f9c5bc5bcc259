import { type Entry, isUnknown, saysNothing, timed } from '../history.ts';
import type { Model, Timed } from '../linearizability.ts';

/** The parts of an alias. Each is an item and a register of its own, because a read of several is not one snapshot. */
export const CONCERNS = ['commit', 'index', 'status', 'config', 'retracted'] as const;
export type Concern = (typeof CONCERNS)[number];

/** The value that a reader finds, as JSON. Null if there is no such alias. */
export type ConcernState = string | null;

export interface NameOperation extends Timed {
  entry: Entry;
  /** Whether this is an effect that the call may have had besides the answered one. */
  unanswered: boolean;
}

const INITIAL: Record<Concern, string> = {
  commit: pointer({ address: null, t: 0 }),
  index: pointer({ address: null, t: 0 }),
  status: status({ state: 'ready', v: 1 }),
  config: config({ v: 0, payload: null }),
  retracted: 'false',
};

interface Pointer {
  address: string | null;
  t: number;
}

function pointer({ address, t }: Pointer): string {
  return JSON.stringify([address, t]);
}

interface Status {
  state: string;
  v: number;
}

function status({ state, v }: Status): string {
  return JSON.stringify([state, v]);
}

interface Config {
  v: number;
  payload: unknown;
}

function config({ v, payload }: Config): string {
  return JSON.stringify([v, payload]);
}

const tOf = (state: string): number => JSON.parse(state)[1];

/** The calls that show a concern or may change it. */
export function nameOperations(entries: readonly Entry[], concern: Concern): NameOperation[] {
  const isPurged = entries.some(isPurge);
  return entries
    .filter((entry) => !saysNothing(entry) && concerns(entry, concern))
    .flatMap((entry) => {
      const operation = { entry, unanswered: false, ...timed(entry) };
      // A try without an answer may have landed before a newer write, and the next try is then answered as stale. A duplicate of
      // a request may find an alias that the first one did not find. A request that took effect does so once.
      const isStale = entry.body?.outcome === 'stale';
      const isDone = entry.outcome === 'ok' && !isStale;
      // After a purge, earlier requests and their tries may land again on an alias that is made again, because nothing remembers them.
      const isTwice = isPurged && (entry.strays > 0 || entry.faults.length > 0);
      const mayDoMore = isTwice || (isStale && entry.faults.length > 0) || (entry.strays > 0 && !isDone);
      return mayDoMore
        ? [operation, { ...operation, unanswered: true, answeredAt: Number.POSITIVE_INFINITY }]
        : [operation];
    });
}

/** Whether the call can create an alias, and so each of its concerns. */
const creates = ({ op, expected }: Entry['input']) =>
  op === 'initLedger' || op === 'fastForwardCommit' || (op === 'compareAndSetRef' && expected === null);

/** A purge removes all concerns of an alias at once. */
const isPurge = ({ input }: Entry): boolean => input.op === 'purge';

const CONCERN_OF: Record<string, Concern> = {
  publishCommit: 'commit',
  publishIndex: 'index',
  fastForwardCommit: 'commit',
  pushStatus: 'status',
  pushConfig: 'config',
  retract: 'retracted',
  resetStatus: 'status',
  resetConfig: 'config',
  unretract: 'retracted',
};

/** Whether the call shows a concern or may change it. */
function concerns(entry: Entry, concern: Concern): boolean {
  const { call, input } = entry;
  if (call === 'readNames' || creates(input) || isPurge(entry)) return true;
  return concern === concernOf(input);
}

const concernOf = ({ op, ref }: Entry['input']) =>
  op === 'compareAndSetRef' || op === 'resetRef' ? ref : CONCERN_OF[String(op)];

export const nameModel = (concern: Concern): Model<ConcernState, NameOperation> => ({
  initial: null,
  step: (state, { entry, unanswered }) => {
    const { call, input } = entry;
    const unknown = unanswered || isUnknown(entry);
    if (call === 'readNames') return read(concern, state, entry);
    if (isPurge(entry)) return purge(concern, state, entry, unknown);
    if (concern !== concernOf(input)) return create(concern, state, entry, unknown);
    const step = STEPS[String(input.op)];
    if (!step) throw new Error(`the model of the nameservice knows no ${input.op}`);
    return step({ state, entry, unknown, concern });
  },
});

function read(concern: Concern, state: ConcernState, { outcome, body = {} }: Entry): ConcernState[] {
  if (outcome === 'NotFound') return state === null ? [state] : [];
  return state !== null && state === valueIn(concern, body) ? [state] : [];
}

function valueIn(concern: Concern, record: Readonly<Record<string, unknown>>): string {
  switch (concern) {
    case 'commit':
    case 'index':
      return pointer(record[concern] as Pointer);
    case 'status':
      return status(record.status as Status);
    case 'config':
      return config(record.config as Config);
    case 'retracted':
      return String(record.retracted);
  }
}

/** A call that may create an alias, as the concerns see it that it does not name. */
function create(
  concern: Concern,
  state: ConcernState,
  { outcome, body = {}, faults }: Entry,
  unknown: boolean,
): ConcernState[] {
  const created = state === null ? [INITIAL[concern]] : [];
  if (unknown) return created;
  if (outcome === 'ok' && body.created) return created;
  const exists = state === null ? [] : [state];
  // If the first answer was lost, the call that created the alias may be answered as a repeat.
  return outcome === 'ok' && body.repeated && faults.length > 0 ? [...exists, ...created] : exists;
}

/** An administrator removes the alias if each of its parts is as expected. */
function purge(concern: Concern, state: ConcernState, { outcome, input }: Entry, unknown: boolean): ConcernState[] {
  if (state === null) return !unknown && (outcome === 'NotFound' || outcome === 'Conflict') ? [state] : [];
  if (!unknown && outcome !== 'ok') return outcome === 'Conflict' ? [state] : [];
  return state === purged(concern, state, input.expected as Readonly<Record<string, unknown>>) ? [null] : [];
}

/** The value that a concern must have for the purge. A config is compared only by its version. */
function purged(concern: Concern, state: string, expected: Readonly<Record<string, unknown>>): string {
  if (concern === 'retracted') return 'true';
  if (concern === 'config') return JSON.parse(state)[0] === (expected.config as { v: number }).v ? state : 'another';
  return valueIn(concern, expected);
}

interface Situation {
  state: ConcernState;
  entry: Entry;
  unknown: boolean;
  concern: Concern;
}

const STEPS: Record<string, (situation: Situation) => ConcernState[]> = {
  publishCommit: (situation) => raise(situation, (state, t) => t > tOf(state)),

  publishIndex: (situation) =>
    raise(situation, (state, t, address) => {
      const isReindex =
        situation.entry.input.allowEqual === true && t === tOf(state) && JSON.parse(state)[0] !== address;
      return t > tOf(state) || isReindex;
    }),

  compareAndSetRef: (situation) => {
    const { input } = situation.entry;
    const expected = input.expected as Pointer | null;
    const next = input.next as Pointer;
    const mayFollow = expected === null || (input.ref === 'commit' ? next.t > expected.t : next.t >= expected.t);
    return compareAndSet(situation, {
      expected: expected && pointer(expected),
      next: pointer(next),
      mayFollow,
      shown: (value) => pointer(value as Pointer),
    });
  },

  resetRef: (situation) => {
    const [expected, next] = [situation.entry.input.expected, situation.entry.input.next] as [Pointer, Pointer];
    return setBack(situation, {
      expected: pointer(expected),
      next: pointer(next),
      mayFollow: next.t <= expected.t,
      shown: (value) => pointer(value as Pointer),
    });
  },

  fastForwardCommit: (situation) => {
    const { state, entry, unknown } = situation;
    const target = pointer(entry.input as unknown as Pointer);
    const rises = state === null || tOf(target) > tOf(state);
    if (unknown) return rises ? [target] : [];
    const { outcome, body = {} } = entry;
    if (outcome === 'Conflict')
      return isShown(state, body.actual, (value) => pointer(value as Pointer)) && !rises ? [state] : [];
    if (outcome !== 'ok') return [];
    return settled(situation, rises, target, body.created === true ? state === null : state !== null);
  },

  pushStatus: (situation) =>
    compareAndSet(
      situation,
      statusSwap(situation, (next, expected) => next > expected),
    ),
  resetStatus: (situation) =>
    setBack(
      situation,
      statusSwap(situation, (next, expected) => next <= expected),
    ),
  pushConfig: (situation) =>
    compareAndSet(
      situation,
      configSwap(situation, (next, expected) => next > expected),
    ),
  resetConfig: (situation) =>
    setBack(
      situation,
      configSwap(situation, (next, expected) => next <= expected),
    ),

  retract: ({ state, entry, unknown }) => {
    if (unknown) return state === null ? [] : ['true'];
    if (entry.outcome === 'NotFound') return state === null ? [state] : [];
    if (entry.outcome !== 'ok' || state === null) return [];
    const isRepeat = entry.body?.repeated === true;
    return isRepeat === (state === 'true') || entry.faults.length > 0 ? ['true'] : [];
  },

  unretract: ({ state, entry, unknown }) => {
    if (unknown) return state === null ? [] : ['false'];
    if (entry.outcome === 'NotFound') return state === null ? [state] : [];
    if (entry.outcome !== 'ok' || state === null) return [];
    const isRepeat = entry.body?.repeated === true;
    return isRepeat === (state === 'false') || entry.faults.length > 0 ? ['false'] : [];
  },

  initLedger: ({ state, entry, unknown, concern }) => create(concern, state, entry, unknown),
};

function raise(situation: Situation, isNewer: (state: string, t: number, address: string) => boolean): ConcernState[] {
  const { state, entry, unknown } = situation;
  const { outcome, body = {}, input } = entry;
  if (state === null) return !unknown && outcome === 'NotFound' ? [state] : [];
  const target = pointer(input as unknown as Pointer);
  const rises = isNewer(state, Number(input.t), String(input.address));
  if (unknown) return rises ? [target] : [];
  if (outcome !== 'ok') return [];
  if (body.outcome === 'stale') return !rises && pointer(body.current as Pointer) === state ? [state] : [];
  return settled(situation, rises, target, true);
}

/** A success is the write itself, or the repeat of a write whose value is still there. */
function settled({ state, entry }: Situation, mayWrite: boolean, target: string, isTrue: boolean): ConcernState[] {
  const { body = {}, faults } = entry;
  if (!body.repeated) return mayWrite && isTrue ? [target] : [];
  // The repeat of a creation is answered with the current value.
  const isShown = creates(entry.input) && state !== null && pointer(body.current as Pointer) === state;
  const repeats = state === target || isShown ? [state] : [];
  return mayWrite && faults.length > 0 ? [...repeats, target] : repeats;
}

interface Swap {
  expected: string | null;
  next: string;
  mayFollow: boolean;
  shown: (value: unknown) => string;
}

type MayFollow = (next: number, expected: number) => boolean;

function statusSwap({ entry }: Situation, mayFollow: MayFollow): Swap {
  const { expected, next } = entry.input as { expected: Status; next: Status };
  return {
    expected: status(expected),
    next: status(next),
    mayFollow: mayFollow(next.v, expected.v),
    shown: (value) => status(value as Status),
  };
}

function configSwap({ state, entry }: Situation, mayFollow: MayFollow): Swap {
  const { expected, next } = entry.input as { expected: Config; next: Config };
  return {
    // A config is compared only by its version.
    expected: state !== null && JSON.parse(state)[0] === expected.v ? state : 'another version',
    next: config(next),
    mayFollow: mayFollow(next.v, expected.v),
    shown: (value) => config(value as Config),
  };
}

/** A compare-and-set of an administrator. It may go back, and does not create an alias. */
function setBack(situation: Situation, swap: Swap): ConcernState[] {
  const { state, entry, unknown } = situation;
  if (!unknown && entry.outcome === 'NotFound') return state === null ? [state] : [];
  return compareAndSet(situation, swap);
}

function compareAndSet(situation: Situation, { expected, next, mayFollow, shown }: Swap): ConcernState[] {
  const { state, entry, unknown } = situation;
  const matches = mayFollow && state === expected;
  if (unknown) return matches ? [next] : [];
  const { outcome, body = {} } = entry;
  if (outcome === 'Conflict') return isShown(state, body.actual, shown) && !matches ? [state] : [];
  return outcome === 'ok' ? settled(situation, matches, next, true) : [];
}

const isShown = (state: ConcernState, actual: unknown, shown: (value: unknown) => string) =>
  actual === null ? state === null : state === shown(actual);
