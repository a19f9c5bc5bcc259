/** Events in the order of their times. Events of one time are in the order in which they were added. */
export class Events {
  now = 0;
  readonly #heap: { at: number; nth: number; act: () => void }[] = [];
  #count = 0;

  at(at: number, act: () => void): void {
    const heap = this.#heap;
    const event = { at: Math.max(at, this.now), nth: this.#count++, act };
    let to = heap.length;
    for (let parent = (to - 1) >> 1; to > 0 && isBefore(event, heap[parent]); parent = (to - 1) >> 1) {
      heap[to] = heap[parent] as typeof event;
      to = parent;
    }
    heap[to] = event;
  }

  playUntil(end: number): void {
    for (let event = this.#pop(); event && event.at <= end; event = this.#pop()) {
      this.now = event.at;
      event.act();
    }
    this.now = end;
  }

  #pop() {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!last || heap.length === 0) return first;
    let to = 0;
    for (let child = 1; child < heap.length; child = 2 * to + 1) {
      if (isBefore(heap[child + 1], heap[child])) child++;
      if (!isBefore(heap[child], last)) break;
      heap[to] = heap[child] as typeof last;
      to = child;
    }
    heap[to] = last;
    return first;
  }
}

type Timed = { at: number; nth: number } | undefined;

const isBefore = (left: Timed, right: Timed): boolean =>
  left !== undefined && (right === undefined || left.at < right.at || (left.at === right.at && left.nth < right.nth));

/** @returns numbers from 0 to 1, always the same for one seed (mulberry32) */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
