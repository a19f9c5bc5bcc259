import type { Protocol } from '../engine/states.ts';
import { moves, type Rules } from './moves.ts';
import { BOUND, LAG, MARGIN, PERIOD, SETTLE } from './rules.ts';
import { FAULTS, type Fault, type State, type Tick } from './types.ts';

/** No rule looks further back than this. */
const OLD = -(SETTLE + MARGIN + 2);

function beginning(faults: readonly Fault[]): State {
  const past = [{ at: OLD, status: 'R' as const, stop: undefined, redriven: undefined }];
  const execution = { runs: true, past, believes: false, request: 0, codeUntil: Number.NEGATIVE_INFINITY };
  return {
    executions: [
      { ...execution, redrives: 1 },
      { ...execution, redrives: 0 },
    ],
    lease: { holder: undefined, version: 0, request: 0, answeredAt: OLD, expires: undefined, ended: undefined },
    judges: [],
    events: [],
    nextLook: PERIOD,
    faults: Object.fromEntries(FAULTS.map((fault) => [fault, faults.includes(fault) ? 1 : 0])) as State['faults'],
    age: 0,
  };
}

/** Makes states equal that every rule treats alike: old times become equally old, and overtaken versions equal. */
function nameOf(state: State): string {
  const at = (tick: Tick | undefined) => (tick === undefined ? '' : Math.max(OLD, tick));
  const { lease } = state;
  const pastOf = (past: State['executions'][number]['past']) =>
    past
      .slice((past.at(-1)?.at ?? 0) > -LAG - 1 ? -2 : -1)
      .map((one) => [Math.max(one.at, -2 * MARGIN - 1), one.status, at(one.stop), at(one.redriven)]);
  const judges = state.judges.map((one) =>
    [
      one.kind,
      one.who,
      one.phase,
      one.seen.version === lease.version,
      at(one.seen.answeredAt),
      one.said,
      at(one.stop),
      at(one.redriven),
      one.event?.status,
      at(one.event?.stop),
      at(one.at),
    ].join(),
  );
  const events = state.events.map(({ who, pass, stop, status, notBefore }) =>
    [who, pass, at(stop), status, notBefore].join(),
  );
  return JSON.stringify([
    state.executions.map((one) => [
      one.runs,
      one.believes,
      one.redrives,
      one.request,
      Math.max(one.codeUntil, -1),
      pastOf(one.past),
    ]),
    [
      lease.holder,
      lease.request,
      lease.holder === undefined ? OLD : at(lease.answeredAt),
      at(lease.expires),
      lease.ended,
    ],
    [judges.toSorted(), events.toSorted(), Math.max(state.nextLook, -2), Object.values(state.faults), state.age],
  ]);
}

/** @returns what is wrong in a state, or undefined */
function broken({ executions, lease, age }: State, { mutant }: Rules): string | undefined {
  const believers = executions.flatMap((one, who) => (one.believes && (one.runs || one.codeUntil >= 0) ? [who] : []));
  if (believers.length > 1) return 'two executions work, and both were answered with the lease';
  if (believers.length > 0 && mutant !== 'guessedTtl' && lease.holder !== believers[0])
    return 'an execution works that was answered with the lease, and is not on record';
  return age > BOUND ? `an execution that has ended is on record for ${BOUND} ticks` : undefined;
}

/** The beginning: two executions, and faults of which each may happen once. */
export const protocolOf = (faults: readonly Fault[], rules: Rules): Protocol<State> => ({
  first: beginning(faults),
  nameOf,
  broken: (state) => broken(state, rules),
  moves: (state) => moves(state, rules),
});
