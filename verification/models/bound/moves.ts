import type { Move as ModelMove } from '../engine/states.ts';
import { DELAY, GRACE, GUESSED_TTL, LAG, MARGIN, type Mutant, PERIOD, SETTLE } from './rules.ts';
import type { Event, Execution, Fault, Judge, State, Status, Tick } from './types.ts';

type Move = Extract<ModelMove<State>, { state: State }>;

/** What a mix explores: by how much the times of an execution may differ by its own clock, and the rule that is off. */
export interface Rules {
  skews: readonly number[];
  /** Whether an execution may be redriven at once. Otherwise a redrive takes longer than clocks differ. */
  promptly?: boolean | undefined;
  mutant?: Mutant | undefined;
}

const NAMES = ['A', 'B'];
const nameOf = (who: number) => NAMES[who] ?? '?';

const withExecution = (state: State, who: number, change: Partial<Execution>): State => ({
  ...state,
  executions: state.executions.map((one, index) => (index === who ? { ...one, ...change } : one)),
});

const without = <T>(items: readonly T[], index: number): T[] => items.filter((_, at) => at !== index);

const spend = (state: State, fault: Fault): State => ({
  ...state,
  faults: { ...state.faults, [fault]: state.faults[fault] - 1 },
});

/** The lease as an acquire or a repeat of this execution leaves it. Undefined if the execution is refused. */
function granted({ lease, executions }: State, who: number, { mutant }: Rules): State['lease'] | undefined {
  const { holder, expires, version, ended } = lease;
  const request = executions[who]?.request ?? 0;
  const isOwn = holder === who && lease.request === request;
  const isExpired = expires !== undefined && 0 > expires + MARGIN;
  const expiresAt = mutant === 'guessedTtl' ? GUESSED_TTL : undefined;
  if (holder === undefined || (isExpired && !isOwn))
    return { holder: who, version: version + 1, request, answeredAt: 0, expires: expiresAt, ended: undefined };
  if (!isOwn) return undefined;
  if (ended === undefined && mutant === 'silentRepeat') return lease;
  // A repeat in the grace makes the lease bound again.
  return {
    ...lease,
    version: version + 1,
    answeredAt: 0,
    ended: undefined,
    ...(ended !== undefined && { expires: undefined }),
  };
}

function* acquires(state: State, who: number, rules: Rules): Generator<Move> {
  const execution = state.executions[who];
  if (!execution?.runs || execution.believes) return;
  const [last] = execution.past.slice(-1);
  if (last?.redriven !== undefined && last.at === 0) return; // a redriven execution asks after its redrive
  const lease = granted(state, who, rules);
  if (!lease) return;
  yield { what: `${nameOf(who)} acquires`, state: withExecution({ ...state, lease }, who, { believes: true }) };
  if (state.faults.answer > 0 && lease !== state.lease)
    yield { what: `${nameOf(who)} acquires, answer lost`, state: spend({ ...state, lease }, 'answer') };
}

/** The events of an end: sent, lost, or sent twice. */
function* eventsOf(state: State, first: Event): Generator<{ events: Event[]; after: State }> {
  yield { events: [first], after: state };
  if (state.faults.event > 0) yield { events: [], after: spend(state, 'event') };
  if (state.faults.twice > 0) yield { events: [first, { ...first, notBefore: DELAY }], after: spend(state, 'twice') };
}

function* ends(state: State, who: number, { skews, mutant }: Rules): Generator<Move> {
  const execution = state.executions[who];
  if (!execution?.runs) return;
  for (const status of ['E', 'S'] as const)
    for (const stop of skews) {
      const isStopped = status === 'S';
      const over = withExecution(state, who, {
        runs: false,
        past: [...execution.past, { at: 0, status, stop, redriven: execution.past.at(-1)?.redriven }],
        codeUntil: isStopped ? GRACE : Number.NEGATIVE_INFINITY,
        believes: execution.believes && isStopped,
      });
      for (const { events, after } of eventsOf(over, { who, pass: 1, stop, status, notBefore: 0 })) {
        const second: Event = { who, pass: 2, stop, status, notBefore: SETTLE + 1 };
        const more = events.length > 0 && mutant !== 'firstPassAlone' ? [...events, second] : events;
        yield { what: `${nameOf(who)} ends ${status}`, state: { ...after, events: [...after.events, ...more] } };
      }
    }
}

/**
 * Step Functions redrives what has failed and what was stopped. Code of the earlier run may go on, and belongs to the same execution. The redriven
 * execution asks by the same request or by another one.
 */
function* redriven(state: State, who: number, { promptly = false }: Rules): Generator<Move> {
  const execution = state.executions[who];
  const end = execution?.past.at(-1);
  if (!execution || !end || execution.runs || execution.redrives === 0) return;
  if (!promptly && end.at > -2 * MARGIN) return;
  const clock = (end.stop ?? end.at) - end.at;
  const runs = { at: 0, status: 'R' as const, stop: undefined, redriven: clock };
  const change = { runs: true, past: [...execution.past, runs], redrives: execution.redrives - 1, believes: false };
  yield { what: `${nameOf(who)} is redriven`, state: withExecution(state, who, change) };
  const { lease } = state;
  const isClose = lease.holder === who && lease.answeredAt > -2 * MARGIN;
  if (promptly || isClose) return;
  const other = { ...change, request: execution.request + 1 };
  yield { what: `${nameOf(who)} is redriven, and asks by another request`, state: withExecution(state, who, other) };
}

function* lateTry(state: State): Generator<Move> {
  if (state.executions[0]?.runs || state.faults.late === 0 || state.lease.holder !== undefined) return;
  const { version } = state.lease;
  const request = state.executions[0]?.request ?? 0;
  const lease = { holder: 0, version: version + 1, request, answeredAt: 0, expires: undefined, ended: undefined };
  yield { what: 'a late try of A', state: spend({ ...state, lease }, 'late') };
}

const MAX_JUDGES = 2;
const judgeOf = (state: State, who: number): Omit<Judge, 'kind' | 'phase' | 'event'> => ({
  who,
  seen: { version: state.lease.version, answeredAt: state.lease.answeredAt },
  ...{ said: undefined, stop: undefined, redriven: undefined, at: 0 },
});

/** Whether the first pass asks AWS: only if clocks may differ about which came first, the last answer or the end. */
const isClose = (answeredAt: Tick, stop: Tick): boolean => answeredAt > stop - MARGIN && answeredAt <= stop;

function* arrives(state: State, { mutant }: Rules): Generator<Move> {
  if (state.judges.length >= MAX_JUDGES) return;
  for (const [index, { who, pass, stop, status, notBefore }] of state.events.entries()) {
    if (notBefore > 0) continue;
    const rest = { ...state, events: without(state.events, index) };
    const what = `event ${pass} of ${nameOf(who)}`;
    const isHolder = state.lease.holder === who && state.lease.expires === undefined;
    const isGraced = pass === 2 && mutant === 'secondPassEndsGrace' && state.lease.ended === who;
    if (isGraced) {
      yield { what: `${what} ends the grace`, state: { ...rest, lease: freed(state.lease) } };
      continue;
    }
    if (!isHolder) {
      yield { what: `${what}: another holder, or a grace`, state: rest };
      continue;
    }
    const asks = pass === 2 || (isClose(state.lease.answeredAt, stop) && mutant !== 'noQuestion');
    const event = pass === 1 ? { status, stop } : undefined;
    const judge: Judge = { ...judgeOf(state, who), kind: pass, phase: asks ? 'ask' : 'write', event };
    yield { what: `${what} reads`, state: { ...rest, judges: [...state.judges, judge] } };
  }
}

const mayLook = ({ mutant }: Rules) => mutant !== 'noLooks' && mutant !== 'firstPassAlone';

function* looks(state: State, rules: Rules): Generator<Move> {
  if (state.nextLook > 0 || !mayLook(rules) || state.judges.length >= MAX_JUDGES) return;
  const next = { ...state, nextLook: PERIOD };
  const { holder, expires } = state.lease;
  if (holder === undefined || expires !== undefined) yield { what: 'there is no bound holder', state: next };
  else {
    const judge: Judge = { ...judgeOf(state, holder), kind: 3, phase: 'ask', event: undefined };
    yield { what: 'a caller looks', state: { ...next, judges: [...state.judges, judge] } };
  }
}

function* answersAbout(state: State, who: number): Generator<{ shown: Execution['past'][number]; after: State }> {
  const past = state.executions[who]?.past ?? [];
  const current = past.at(-1);
  if (!current) return;
  yield { shown: current, after: state };
  const old = past.findLast(({ at }) => at <= -LAG);
  if (state.faults.stale > 0 && old && old !== current) yield { shown: old, after: spend(state, 'stale') };
}

const freed = (lease: State['lease']): State['lease'] => ({
  ...{ holder: undefined, version: lease.version + 1, request: 0, answeredAt: lease.answeredAt },
  ...{ expires: undefined, ended: undefined },
});

/** @returns how the execution ended, or undefined if the grant goes on */
function verdict({ kind, seen, said, stop, redriven, event, at }: Judge, { mutant }: Rules): Status | undefined {
  const { answeredAt } = seen;
  if (kind === 1 && event) {
    const isRedriven = redriven !== undefined && redriven >= event.stop - MARGIN;
    const isOneEnd = mutant === 'noQuestion' || (said !== undefined && !isRedriven);
    const cut = isOneEnd ? event.stop : event.stop - MARGIN;
    return answeredAt <= cut || mutant === 'eventBelieved' ? event.status : undefined;
  }
  if (said === 'R') {
    const margin = mutant === 'noMargin' ? 0 : MARGIN;
    const isBefore = redriven !== undefined && answeredAt <= redriven - margin && mutant !== 'noRedrive';
    return isBefore ? 'S' : undefined;
  }
  const isBefore = stop !== undefined && answeredAt <= stop;
  return isBefore || at - answeredAt > SETTLE || mutant === 'staleBelieved' ? said : undefined;
}

function judged(state: State, judge: Judge, rules: Rules): Move {
  const { who, seen } = judge;
  const { mutant } = rules;
  const { lease } = state;
  const isSame = lease.version === seen.version || mutant === 'noVersion';
  const isHeld = lease.holder === who && lease.expires === undefined && isSame;
  const ended = verdict(judge, rules);
  if (!isHeld || ended === undefined) return { what: 'leaves the lease', state };
  if (ended !== 'S' || mutant === 'noGrace')
    return { what: 'frees the lease', state: { ...state, lease: freed(lease) } };
  const graced = { ...lease, version: lease.version + 1, expires: GRACE, ended: who };
  return { what: 'gives the grace', state: { ...state, lease: graced } };
}

function* judges(state: State, rules: Rules): Generator<Move> {
  for (const [index, judge] of state.judges.entries()) {
    const others = without(state.judges, index);
    if (judge.phase === 'write') {
      yield judged({ ...state, judges: others }, judge, rules);
      continue;
    }
    for (const { shown, after } of answersAbout(state, judge.who)) {
      const { status: said, stop, redriven } = shown;
      const asked: Judge = { ...judge, phase: 'write', said, stop, redriven, at: 0 };
      yield { what: `the answer is ${said}`, state: { ...after, judges: [...others, asked] } };
    }
    if (state.faults.throttle > 0) yield { what: 'throttled', state: spend({ ...state, judges: others }, 'throttle') };
  }
}

/** Lets time pass, unless something due would then be later than its bound. */
function* passes(state: State, rules: Rules): Generator<Move> {
  const isFree = state.judges.length < MAX_JUDGES;
  const isLate = isFree && state.events.some(({ notBefore }) => notBefore <= -DELAY);
  const isLookDue = isFree && mayLook(rules) && state.nextLook <= -1;
  const isStuck = state.judges.some(({ at }) => at <= -1);
  if (!isLate && !isLookDue && !isStuck) yield { what: 'a tick', state: aged(state) };
}

/** Whether the record has a grant of an ended execution, or of one that was redriven and asks by another request. */
function isDead({ lease, executions }: State): boolean {
  const execution = lease.holder === undefined ? undefined : executions[lease.holder];
  if (!execution || lease.expires !== undefined) return false;
  return !execution.runs || execution.request !== lease.request;
}

function aged(state: State): State {
  const before = <T extends Tick | undefined>(at: T) => (at === undefined ? at : at - 1) as T;
  const { lease } = state;
  return {
    ...state,
    executions: state.executions.map((one) => ({
      ...one,
      codeUntil: one.codeUntil - 1,
      past: one.past.map(({ at, status, stop, redriven }) => ({
        ...{ at: at - 1, status, stop: before(stop), redriven: before(redriven) },
      })),
    })),
    lease: { ...lease, answeredAt: lease.answeredAt - 1, expires: before(lease.expires) },
    judges: state.judges.map((judge) => ({
      ...judge,
      ...{ at: judge.at - 1, stop: before(judge.stop), redriven: before(judge.redriven) },
      seen: { ...judge.seen, answeredAt: judge.seen.answeredAt - 1 },
      event: judge.event && { ...judge.event, stop: judge.event.stop - 1 },
    })),
    events: state.events.map((event) => ({ ...event, stop: event.stop - 1, notBefore: event.notBefore - 1 })),
    nextLook: state.nextLook - 1,
    age: state.age + 1,
  };
}

/** All that may happen next. A is redriven once, and may be stopped while its code runs on; B wants the key and keeps it. */
export function* moves(state: State, rules: Rules): Generator<Move> {
  for (const { what, state: next } of allMoves(state, rules))
    yield { what, state: isDead(next) ? next : { ...next, age: 0 } };
}

function* allMoves(state: State, rules: Rules): Generator<Move> {
  for (const who of [0, 1]) yield* acquires(state, who, rules);
  yield* lateTry(state);
  yield* ends(state, 0, rules);
  yield* redriven(state, 0, rules);
  yield* arrives(state, rules);
  yield* looks(state, rules);
  yield* judges(state, rules);
  yield* passes(state, rules);
}
