/**
 * One operation of a history. `calledAt` and `answeredAt` are moments: numbers that order all calls and answers.
 * An operation without an answer (its caller crashed, or got the answer that the outcome is unknown) has `answeredAt` Infinity: it
 * may take effect at any moment after its call, or never.
 */
export interface Timed {
  calledAt: number;
  answeredAt: number;
}

/** A sequential specification: what an object does when operations come one after the other. */
export interface Model<State, Operation extends Timed> {
  initial: State;
  /**
   * Every state that may follow when the operation takes effect in `state` and gets the answer that it got. Empty if the operation
   * could not get that answer, several if the answer does not say which state follows.
   */
  step(state: State, operation: Operation): State[];
}

export type Verdict<Operation> =
  | { linearizable: true }
  /** `explained`: the longest order that was found. `stuckAt`: the operations that are left, of which none can come next. */
  | { linearizable: false; explained: Operation[]; stuckAt: Operation[] };

/**
 * Whether the operations can be put into one order that a sequential object would have given the same answers in, each at
 * some moment between its call and its answer.
 *
 * The search of J. M. Wing and C. Gong, Testing and Verifying Concurrent Objects (JPDC 17, 1993), with the memoization of
 * G. Lowe, Testing for Linearizability (CCPE 29, 2017): a set of operations that has led to a state once need not be
 * tried again. Operations without an answer are optional, as in A. Athalye's Porcupine and K. Kingsbury's Knossos.
 */
export function linearize<State, Operation extends Timed>(
  model: Model<State, Operation>,
  history: readonly Operation[],
): Verdict<Operation> {
  const operations = history.toSorted((a, b) => a.calledAt - b.calledAt);
  const answered = operations.filter(({ answeredAt }) => Number.isFinite(answeredAt)).length;
  const seen = new Set<string>();
  const done = new Array<boolean>(operations.length).fill(false);
  const order: number[] = [];
  let best: { explained: Operation[]; stuckAt: Operation[] } | undefined;

  /** The operations that may come next: no other one that is left was answered before they began. */
  function candidates(): number[] {
    let horizon = Number.POSITIVE_INFINITY;
    for (const [index, { answeredAt }] of operations.entries())
      if (!done[index]) horizon = Math.min(horizon, answeredAt);
    const found: number[] = [];
    for (const [index, { calledAt }] of operations.entries()) {
      if (calledAt > horizon) break;
      if (!done[index]) found.push(index);
    }
    return found;
  }

  function search(state: State, left: number): boolean {
    if (left === 0) return true;
    const place = `${done.map(Number).join('')}${JSON.stringify(state)}`;
    if (seen.has(place)) return false;
    seen.add(place);
    const next = candidates();
    for (const index of next) {
      const operation = operations[index] as Operation;
      const isAnswered = Number.isFinite(operation.answeredAt) ? 1 : 0;
      for (const after of model.step(state, operation)) {
        // An operation without an answer that changes nothing can be left out.
        if (!isAnswered && JSON.stringify(after) === JSON.stringify(state)) continue;
        done[index] = true;
        order.push(index);
        if (search(after, left - isAnswered)) return true;
        order.pop();
        done[index] = false;
      }
    }
    if (!best || order.length > best.explained.length)
      best = {
        explained: order.map((index) => operations[index] as Operation),
        stuckAt: next
          .map((index) => operations[index] as Operation)
          .filter(({ answeredAt }) => Number.isFinite(answeredAt)),
      };
    return false;
  }

  return search(model.initial, answered)
    ? { linearizable: true }
    : { linearizable: false, explained: best?.explained ?? [], stuckAt: best?.stuckAt ?? [] };
}
