import { DELAY, GRACE, GUESSED_TTL, LAG, MARGIN, type Mutant, PERIOD, SETTLE } from './rules.ts';
import type { Event, Execution, Fault, Judge, Move, State, Status, Tick } from './types.ts';

/** What a mix explores: by how much the end of an execution may differ by its own clock, and the rule that is off. */
export interface Rules {
  skews: readonly number[];
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
function granted({ lease }: State, who: number, { mutant }: Rules): State['lease'] | undefined {
  const { holder, expires, version, ended } = lease;
  const isExpired = expires !== undefined && 0 > expires + MARGIN;
  const expiresAt = mutant === 'guessedTtl' ? GUESSED_TTL : undefined;
  if (holder === undefined || (isExpired && holder !== who))
    return { holder: who, version: version + 1, boundAt: 0, expires: expiresAt, ended: undefined };
  if (holder !== who) return undefined;
  if (ended === undefined && mutant === 'silentRepeat') return lease;
  // In its grace, the lease is bound again.
  return {
    ...lease,
    version: version + 1,
    boundAt: 0,
    ended: undefined,
    ...(ended !== undefined && { expires: undefined }),
  };
}

function* acquires(state: State, who: number, rules: Rules): Generator<Move> {
  const execution = state.executions[who];
  if (!execution?.runs || execution.believes) return;
  const lease = granted(state, who, rules);
  if (!lease) return;
  yield { what: `${nameOf(who)} acquires`, state: withExecution({ ...state, lease }, who, { believes: true }) };
  if (state.faults.answer > 0 && lease !== state.lease)
    yield { what: `${nameOf(who)} acquires, answer lost`, state: spend({ ...state, lease }, 'answer') };
}

/** The ways of the events of an end: delivered, lost, or delivered twice. */
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
        past: [...execution.past, { at: 0, status, stop }],
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

/** Step Functions redrives what has failed and what was stopped. Code of the run before may go on, of the same execution. */
function* redriven(state: State, who: number): Generator<Move> {
  const execution = state.executions[who];
  if (!execution || execution.runs || execution.redrives === 0) return;
  const change = { runs: true, past: [...execution.past, { at: 0, status: 'R' as const, stop: undefined }] };
  yield {
    what: `${nameOf(who)} is redriven`,
    state: withExecution(state, who, { ...change, redrives: execution.redrives - 1, believes: false }),
  };
}

function* lateTry(state: State): Generator<Move> {
  if (state.executions[0]?.runs || state.faults.late === 0 || state.lease.holder !== undefined) return;
  const { version } = state.lease;
  const lease = { holder: 0, version: version + 1, boundAt: 0, expires: undefined, ended: undefined };
  yield { what: 'a late try of A', state: spend({ ...state, lease }, 'late') };
}

const MOST_JUDGES = 2;
const judgeOf = (state: State, who: number): Pick<Judge, 'who' | 'seen' | 'at'> => ({
  who,
  seen: { version: state.lease.version, boundAt: state.lease.boundAt },
  at: 0,
});

function* arrives(state: State, { mutant }: Rules): Generator<Move> {
  if (state.judges.length >= MOST_JUDGES) return;
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
    const phase = pass === 1 ? 'write' : 'ask';
    const judge: Judge = { ...judgeOf(state, who), kind: pass, phase, said: status, stop };
    yield { what: `${what} reads`, state: { ...rest, judges: [...state.judges, judge] } };
  }
}

const mayLook = ({ mutant }: Rules) => mutant !== 'noLooks' && mutant !== 'firstPassAlone';

function* looks(state: State, rules: Rules): Generator<Move> {
  if (state.nextLook > 0 || !mayLook(rules) || state.judges.length >= MOST_JUDGES) return;
  const next = { ...state, nextLook: PERIOD };
  const { holder, expires } = state.lease;
  if (holder === undefined || expires !== undefined) yield { what: 'there is no bound holder', state: next };
  else {
    const judge: Judge = { ...judgeOf(state, holder), kind: 3, phase: 'ask', said: undefined, stop: undefined };
    yield { what: 'a caller looks', state: { ...next, judges: [...state.judges, judge] } };
  }
}

function* answersAbout(state: State, who: number): Generator<{ status: Status; stop: Tick | undefined; after: State }> {
  const past = state.executions[who]?.past ?? [];
  const current = past.at(-1);
  if (!current) return;
  yield { status: current.status, stop: current.stop, after: state };
  const old = past.findLast(({ at }) => at <= -LAG);
  if (state.faults.stale > 0 && old && old !== current)
    yield { status: old.status, stop: old.stop, after: spend(state, 'stale') };
}

const freed = (lease: State['lease']): State['lease'] => ({
  ...{ holder: undefined, version: lease.version + 1, boundAt: lease.boundAt },
  ...{ expires: undefined, ended: undefined },
});

function judged(state: State, judge: Judge, { mutant }: Rules): Move {
  const { kind, who, seen, said, stop, at } = judge;
  const { lease } = state;
  const hasEnded = said !== 'R';
  const isLater = hasEnded && stop !== undefined && stop - MARGIN > seen.boundAt;
  const isSettled = hasEnded && kind !== 1 && at - seen.boundAt > SETTLE;
  const isBelieved = hasEnded && (kind === 1 ? mutant === 'eventBelieved' : mutant === 'staleBelieved');
  const isSame = lease.version === seen.version || mutant === 'noVersion';
  const isHeld = lease.holder === who && lease.expires === undefined && isSame;
  if (!isHeld || !(isLater || isSettled || isBelieved)) return { what: 'leaves the lease', state };
  if (said !== 'S' || mutant === 'noGrace')
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
    for (const { status, stop, after } of answersAbout(state, judge.who)) {
      const asked: Judge = { ...judge, phase: 'write', said: status, stop, at: 0 };
      yield { what: `the answer is ${status}`, state: { ...after, judges: [...others, asked] } };
    }
    if (state.faults.throttle > 0) yield { what: 'throttled', state: spend({ ...state, judges: others }, 'throttle') };
  }
}

/** Time passes, unless something that is due would be late by more than its bound. */
function* passes(state: State, rules: Rules): Generator<Move> {
  const isFree = state.judges.length < MOST_JUDGES;
  const isLate = isFree && state.events.some(({ notBefore }) => notBefore <= -DELAY);
  const isLookDue = isFree && mayLook(rules) && state.nextLook <= -1;
  const isStuck = state.judges.some(({ at }) => at <= -1);
  if (!isLate && !isLookDue && !isStuck) yield { what: 'a tick', state: aged(state) };
}

/** Whether an execution that has ended is on record. */
const isDead = ({ lease, executions }: State): boolean =>
  lease.holder !== undefined && lease.expires === undefined && executions[lease.holder]?.runs === false;

function aged(state: State): State {
  const before = <T extends Tick | undefined>(at: T) => (at === undefined ? at : at - 1) as T;
  const { lease } = state;
  return {
    ...state,
    executions: state.executions.map((one) => ({
      ...one,
      codeUntil: one.codeUntil - 1,
      past: one.past.map(({ at, status, stop }) => ({ at: at - 1, status, stop: before(stop) })),
    })),
    lease: { ...lease, boundAt: lease.boundAt - 1, expires: before(lease.expires) },
    judges: state.judges.map((judge) => ({
      ...judge,
      ...{ at: judge.at - 1, stop: before(judge.stop) },
      seen: { ...judge.seen, boundAt: judge.seen.boundAt - 1 },
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
  yield* redriven(state, 0);
  yield* arrives(state, rules);
  yield* looks(state, rules);
  yield* judges(state, rules);
  yield* passes(state, rules);
}
