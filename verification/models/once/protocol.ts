import type { Move as ModelMove, Protocol } from '../engine/states.ts';

/**
 * The protocol of docs/protocols/once.md as states and moves: one record, two workers that want slot 1 and then slot 2, and a waiter that only wants
 * the result of slot 1. Each write is one conditional update. A write may land while its answer is lost, and may arrive late. A run lasts TTL ticks.
 */

export type Rule =
  | 'fenceAtTheStore'
  | 'remembers'
  | 'grantAtTheStore'
  | 'repeatById'
  | 'orderOfSlots'
  | 'waiterAsksForItsSlot'
  | 'expiry';

/** How much may still go wrong. */
export interface Faults {
  /** Answers that are lost, and writes that arrive late. */
  lost: number;
  deaths: number;
}

interface Row {
  fence: number;
  /** The fence of the grant, or 0. */
  held: number;
  /** Ticks until the grant expires. Below -1 the margin has passed too. */
  left: number;
  slot: number;
  doneSlot: number;
  /** The fence of the run whose result is stored. */
  doneBy: number;
}

interface Worker {
  slot: number;
  /** `asked`: the answer to begin was lost. `storing`: complete is under way, or was. */
  phase: 'idle' | 'asked' | 'work' | 'storing' | 'done';
  fence: number;
  /** Ticks until the worker must stop. */
  left: number;
}

type Late = { what: 'begin'; slot: number } | { what: 'store'; fence: number; slot: number };

interface State extends Faults {
  row: Row;
  workers: readonly Worker[];
  late: readonly Late[];
  /** The fence of the answered result of each slot. */
  answered: readonly number[];
  waiter: 'waits' | 'answered' | 'superseded';
}

type Move = ModelMove<State>;

const TTL = 2;
const LAST_SLOT = 2;

const start = (faults: Faults): State => ({
  ...faults,
  row: { fence: 0, held: 0, left: 0, slot: 0, doneSlot: 0, doneBy: 0 },
  workers: [0, 1].map(() => ({ slot: 1, phase: 'idle', fence: 0, left: -1 })),
  late: [],
  answered: [0, 0, 0],
  waiter: 'waits',
});

export class OnceProtocol implements Protocol<State> {
  readonly first: State;
  readonly #off: Rule | undefined;

  /** @param off the rule that is switched off */
  constructor(faults: Faults, off?: Rule) {
    this.first = start(faults);
    this.#off = off;
  }

  nameOf = (state: State): string => JSON.stringify(normal(state));

  broken = ({ row, workers, answered }: State): string | undefined => {
    if (workers.filter(({ phase, left }) => phase === 'work' && left >= 0).length > 1) return 'two workers at once';
    if (row.held && row.left < -1 && !this.#begin(row, LAST_SLOT)) return 'a dead worker keeps the key';
    if (row.doneSlot && ![0, row.doneBy].includes(answered[row.doneSlot] ?? 0)) return 'a slot has two results';
    return undefined;
  };

  *moves(state: State): Generator<Move> {
    for (const at of state.workers.keys()) yield* this.#movesOf(state, at);
    for (const late of state.late) yield this.#arrives(state, late);
    yield* this.#answersWaiter(state);
    const { row, workers } = state;
    if ((row.held && row.left >= -1) || workers.some(({ left }) => left >= 0))
      yield {
        what: 'a tick',
        state: {
          ...state,
          row: row.held ? { ...row, left: Math.max(row.left - 1, -2) } : row,
          workers: workers.map((worker) => ({ ...worker, left: Math.max(worker.left - 1, -1) })),
        },
      };
  }

  /** The row after begin, if its condition holds. */
  #begin(row: Row, slot: number): Row | undefined {
    const isFree = row.held === 0 || (row.left < 0 && this.#off !== 'expiry');
    const isUndone = this.#off === 'orderOfSlots' ? row.doneSlot !== slot : row.doneSlot < slot;
    if (!isFree || !isUndone) return undefined;
    const fence = row.fence + 1;
    const memory = this.#off === 'remembers' ? { doneSlot: 0, doneBy: 0 } : {};
    return { ...row, fence, held: fence, left: TTL, slot, ...memory };
  }

  /** Complete: the row after it, if its condition holds, and whether the answer is that the result is stored. */
  #store(row: Row, { fence, slot }: { fence: number; slot: number }): { row?: Row; stored: boolean } {
    const isOwn =
      row.held === fence ||
      (this.#off === 'fenceAtTheStore' && row.slot === slot && row.held > 0) ||
      (this.#off === 'grantAtTheStore' && row.held === 0 && row.doneSlot < slot);
    if (isOwn) return { row: { ...row, held: 0, left: 0, doneSlot: slot, doneBy: fence }, stored: true };
    return { stored: row.doneBy === fence || (this.#off === 'repeatById' && row.doneSlot === slot) };
  }

  *#movesOf(state: State, at: number): Generator<Move> {
    switch (state.workers[at]?.phase) {
      case 'idle':
        yield* this.#asks(state, at);
        return;
      case 'asked':
        yield this.#asksAgain(state, at);
        return;
      case 'work':
        yield* this.#works(state, at);
        return;
      case 'storing':
        yield* this.#stores(state, at);
    }
  }

  *#asks(state: State, at: number): Generator<Move> {
    const { row, lost, late } = state;
    const { slot } = workerAt(state, at);
    const begun = this.#begin(row, slot);
    if (begun) {
      if (isDone(state, slot)) yield { what: `W${at} begins`, broken: 'a done slot begins' };
      const { fence } = begun;
      yield {
        what: `W${at} begins slot ${slot}`,
        state: put({ ...state, row: begun }, at, { phase: 'work', fence, left: TTL }),
      };
      if (lost)
        yield {
          what: `W${at} begins slot ${slot}, and the answer is lost`,
          state: put({ ...state, row: begun, lost: lost - 1 }, at, { phase: 'asked', fence }),
        };
    } else if (row.doneSlot >= slot) {
      const answered = answerBy(state, row.doneSlot, row.doneBy);
      if (!answered) yield { what: `W${at} is answered`, broken: 'a slot has two results' };
      else
        yield {
          what: `W${at} learns that slot ${row.doneSlot} is done`,
          state: put({ ...state, answered }, at, after(slot)),
        };
    }
    if (lost && late.length === 0)
      yield {
        what: `the begin of W${at} is late`,
        state: { ...state, late: [{ what: 'begin', slot }], lost: lost - 1 },
      };
  }

  #asksAgain(state: State, at: number): Move {
    const { row } = state;
    return row.held === workerAt(state, at).fence && row.left >= 0
      ? { what: `W${at} repeats, and has its run`, state: put(state, at, { phase: 'work', left: row.left }) }
      : { what: `W${at} begins again`, state: put(state, at, { phase: 'idle', fence: 0 }) };
  }

  *#works(state: State, at: number): Generator<Move> {
    const { row, deaths } = state;
    yield { what: `W${at} goes to store`, state: put(state, at, { phase: 'storing' }) };
    const gone = { phase: 'done', left: -1 } as const;
    if (deaths) yield { what: `W${at} dies`, state: put({ ...state, deaths: deaths - 1 }, at, gone) };
    if (row.held === workerAt(state, at).fence)
      yield {
        what: `W${at} fails, and releases`,
        state: put({ ...state, row: { ...row, held: 0, left: 0 } }, at, gone),
      };
  }

  *#stores(state: State, at: number): Generator<Move> {
    const { row, lost, late } = state;
    const worker = workerAt(state, at);
    const { fence, slot } = worker;
    const { row: written, stored } = this.#store(row, worker);
    if (written && fence < row.fence) yield { what: `W${at} stores`, broken: 'a worker stores over a later grant' };
    const landed = { ...state, row: written ?? row };
    if (stored) {
      const answered = written || row.doneBy === fence ? answerBy(landed, slot, fence) : undefined;
      if (!answered)
        yield { what: `W${at} is answered`, broken: 'a worker is answered that it stored, and the result is another' };
      else
        yield {
          what: `W${at} has stored`,
          state: put({ ...landed, answered }, at, { ...after(slot), fence: 0, left: -1 }),
        };
    } else yield { what: `W${at} may not store`, state: put(state, at, { phase: 'idle', fence: 0, left: -1 }) };
    if (!lost) return;
    yield { what: `W${at} stores, and the answer is lost`, state: { ...landed, lost: lost - 1 } };
    if (late.length === 0)
      yield {
        what: `the store of W${at} is late`,
        state: { ...state, late: [{ what: 'store', fence, slot }], lost: lost - 1 },
      };
  }

  /** Lets a late write land. Its caller does not receive an answer. */
  #arrives(state: State, arriving: Late): Move {
    const { row } = state;
    const late = state.late.filter((one) => one !== arriving);
    const what = `a late ${arriving.what}`;
    if (arriving.what === 'begin') {
      const begun = this.#begin(row, arriving.slot);
      if (begun && isDone(state, arriving.slot)) return { what, broken: 'a done slot begins' };
      return { what, state: { ...state, row: begun ?? row, late } };
    }
    const { row: written } = this.#store(row, arriving);
    if (written && arriving.fence < row.fence) return { what, broken: 'a worker stores over a later grant' };
    return { what, state: { ...state, row: written ?? row, late } };
  }

  /** The waiter asks again. */
  *#answersWaiter(state: State): Generator<Move> {
    const { row, waiter } = state;
    const takesAny = this.#off === 'waiterAsksForItsSlot';
    if (waiter !== 'waits' || (takesAny ? row.doneBy === 0 : row.doneSlot < 1)) return;
    if (row.doneSlot !== 1 && !takesAny) {
      yield { what: 'the waiter is superseded', state: { ...state, waiter: 'superseded' } };
      return;
    }
    const answered = answerBy(state, 1, row.doneBy);
    if (answered) yield { what: 'the waiter is answered', state: { ...state, answered, waiter: 'answered' } };
    else yield { what: 'the waiter is answered', broken: 'a waiter receives the result of another slot' };
  }
}

function workerAt({ workers }: State, at: number): Worker {
  const worker = workers[at];
  if (!worker) throw new RangeError(`there is no worker ${at}`);
  return worker;
}

const put = (state: State, at: number, change: Partial<Worker>): State => ({
  ...state,
  workers: state.workers.map((worker, index) => (index === at ? { ...worker, ...change } : worker)),
});

/** A worker goes on after its slot is done. */
const after = (slot: number): Partial<Worker> =>
  slot === LAST_SLOT ? { phase: 'done' } : { phase: 'idle', slot: slot + 1 };

/** Notes that a party was answered with the result of a fence. @returns undefined if a party was answered with another result */
function answerBy({ answered }: State, slot: number, fence: number): readonly number[] | undefined {
  return [0, fence].includes(answered[slot] ?? 0) ? answered.with(slot, fence) : undefined;
}

/** Whether the slot or a later one is done, by the row or by an answer. */
const isDone = ({ row, answered }: State, slot: number): boolean =>
  row.doneSlot >= slot || answered.slice(slot).some((fence) => fence > 0);

/** The state with its fences renamed to the smallest numbers, because only their order counts, and which are equal. */
function normal(state: State): State {
  const { row, workers, answered, late } = state;
  const ofLate = late.flatMap((one) => (one.what === 'store' ? [one.fence] : []));
  const used = [row.fence, row.held, row.doneBy, ...workers.map(({ fence }) => fence), ...answered, ...ofLate];
  const order = [...new Set([0, ...used])].sort((one, other) => one - other);
  const rank = (fence: number) => order.indexOf(fence);
  return {
    ...state,
    row: { ...row, fence: rank(row.fence), held: rank(row.held), doneBy: rank(row.doneBy) },
    workers: workers.map((worker) => ({ ...worker, fence: rank(worker.fence) })),
    answered: answered.map(rank),
    late: late.map((one) => (one.what === 'store' ? { ...one, fence: rank(one.fence) } : one)),
  };
}
