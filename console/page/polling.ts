import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type Problem, problemOf } from './service.ts';

/** The state of a poll. */
export interface Polled<T> {
  /** The last answer, which is kept while later calls fail. */
  data: T | undefined;
  /** When that answer came, on the clock of `performance.now()`. */
  answeredAt: number;
  /** Why the last call failed. Undefined if it succeeded. */
  problem: Problem | undefined;
  /** After a failure: when the next try is due, on the same clock. */
  nextAt: number;
  /** Asks at once. */
  refresh(): void;
}

/** The poll whose answer the open view shows. */
export const shown: { polled?: Polled<unknown> } = {};

const MAX_BACKOFF_MS = 30_000;

/** After this many identical answers in a row, the poll runs half as often; after twice as many, a quarter as often. */
const CALM_AFTER = 15;

export interface PollOptions<T> {
  /** How often to poll while something changes, in milliseconds. */
  everyMs: number;
  /** A text that differs if an answer has changed. */
  fingerprint?(data: T): string;
  /** Called with each answer before it is shown. */
  onData?(data: T): void;
}

/**
 * Polls while the page is visible. After failures it pauses longer each time, and goes on when the service answers again.
 * @param ask sends the call. If it is another function than before, the poll begins again
 */
export function usePolled<T>(ask: (signal: AbortSignal) => Promise<T>, options: PollOptions<T>): Polled<T> {
  const [state, setState] = useState<Omit<Polled<T>, 'refresh'>>(nothingYet);
  const latest = useRef(options);
  latest.current = options;
  const refresh = useRef(() => {});

  useEffect(() => {
    setState(nothingYet);
    const poll = new Poll(ask, latest, setState);
    refresh.current = () => poll.now();
    return () => poll.end();
  }, [ask]);

  return { ...state, refresh: useCallback(() => refresh.current(), []) };
}

const nothingYet = () => ({ data: undefined, answeredAt: 0, problem: undefined, nextAt: 0 });

type Setter<T> = (change: (state: Omit<Polled<T>, 'refresh'>) => Omit<Polled<T>, 'refresh'>) => void;

class Poll<T> {
  readonly #ask: (signal: AbortSignal) => Promise<T>;
  readonly #options: { current: PollOptions<T> };
  readonly #set: Setter<T>;
  readonly #onVisible = () => (isVisible() ? this.now() : this.#pause());
  #timer: ReturnType<typeof setTimeout> | undefined;
  #inFlight: AbortController | undefined;
  #failures = 0;
  #same = 0;
  #last: string | undefined;

  constructor(ask: (signal: AbortSignal) => Promise<T>, options: { current: PollOptions<T> }, set: Setter<T>) {
    this.#ask = ask;
    this.#options = options;
    this.#set = set;
    document.addEventListener('visibilitychange', this.#onVisible);
    if (isVisible()) this.now();
  }

  now(): void {
    this.#pause();
    this.#same = 0;
    void this.#poll();
  }

  end(): void {
    document.removeEventListener('visibilitychange', this.#onVisible);
    this.#pause();
  }

  #pause(): void {
    clearTimeout(this.#timer);
    this.#inFlight?.abort();
    this.#inFlight = undefined;
  }

  async #poll(): Promise<void> {
    const controller = new AbortController();
    this.#inFlight = controller;
    try {
      const data = await this.#ask(controller.signal);
      if (controller.signal.aborted) return;
      this.#succeeded(data);
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#failed(problemOf(error));
    }
    this.#inFlight = undefined;
  }

  #succeeded(data: T): void {
    const { everyMs, fingerprint, onData } = this.#options.current;
    const print = fingerprint?.(data);
    this.#same = print !== undefined && print === this.#last ? this.#same + 1 : 0;
    this.#last = print;
    this.#failures = 0;
    onData?.(data);
    this.#set(() => ({ data, answeredAt: performance.now(), problem: undefined, nextAt: 0 }));
    const calm = this.#same >= 2 * CALM_AFTER ? 4 : this.#same >= CALM_AFTER ? 2 : 1;
    this.#again(everyMs * calm);
  }

  #failed(problem: Problem): void {
    const { everyMs } = this.#options.current;
    this.#failures++;
    const backoff = Math.min(MAX_BACKOFF_MS, everyMs * 2 ** (this.#failures - 1)) * (0.75 + Math.random() / 2);
    // A permission that is missing now will still be missing in a moment.
    const pause = problem.status === 401 || problem.status === 403 ? MAX_BACKOFF_MS : backoff;
    const inMs = Math.max(pause, problem.retryAfterMs ?? 0);
    this.#set((state) => ({ ...state, problem, nextAt: performance.now() + inMs }));
    this.#again(inMs);
  }

  #again(inMs: number): void {
    if (isVisible()) this.#timer = setTimeout(() => void this.#poll(), inMs);
  }
}

const isVisible = () => document.visibilityState === 'visible';
