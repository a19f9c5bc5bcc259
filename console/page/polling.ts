import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type Problem, problemOf } from './service.ts';

/** What a poll knows. */
export interface Polled<T> {
  /** The last answer; kept while later calls fail. */
  data: T | undefined;
  /** When that answer came, on the clock of `performance.now()`. */
  at: number;
  /** Why the last call failed; undefined if it did not. */
  problem: Problem | undefined;
  /** When the next try is due after a failure, on the same clock. */
  nextAt: number;
  /** Asks at once. */
  refresh(): void;
}

/** The poll whose answer the open view shows. */
export const shown: { polled?: Polled<unknown> } = {};

const MAX_BACKOFF_MS = 30_000;

/** After so many answers that say the same, it looks half as often, down to a quarter. */
const CALM_AFTER = 15;

export interface PollOptions<T> {
  /** Milliseconds between two looks while something happens. */
  everyMs: number;
  /** What tells two answers apart. */
  fingerprint?(data: T): string;
  /** Is handed each answer before it is shown. */
  onData?(data: T): void;
}

/**
 * Asks again and again, but only while the page is seen. After failures it waits longer each time, and a service that
 * comes back is found by itself.
 * @param ask what is asked; another function begins again
 */
export function usePolled<T>(ask: (signal: AbortSignal) => Promise<T>, options: PollOptions<T>): Polled<T> {
  const [state, setState] = useState<Omit<Polled<T>, 'refresh'>>(nothingYet);
  const latest = useRef(options);
  latest.current = options;
  const wake = useRef(() => {});

  useEffect(() => {
    setState(nothingYet);
    const poll = new Poll(ask, latest, setState);
    wake.current = () => poll.now();
    return () => poll.end();
  }, [ask]);

  return { ...state, refresh: useCallback(() => wake.current(), []) };
}

const nothingYet = () => ({ data: undefined, at: 0, problem: undefined, nextAt: 0 });

type Setter<T> = (change: (state: Omit<Polled<T>, 'refresh'>) => Omit<Polled<T>, 'refresh'>) => void;

class Poll<T> {
  readonly #ask: (signal: AbortSignal) => Promise<T>;
  readonly #options: { current: PollOptions<T> };
  readonly #set: Setter<T>;
  readonly #onVisible = () => (isSeen() ? this.now() : this.#pause());
  #timer: ReturnType<typeof setTimeout> | undefined;
  #under: AbortController | undefined;
  #failures = 0;
  #same = 0;
  #last: string | undefined;

  constructor(ask: (signal: AbortSignal) => Promise<T>, options: { current: PollOptions<T> }, set: Setter<T>) {
    this.#ask = ask;
    this.#options = options;
    this.#set = set;
    document.addEventListener('visibilitychange', this.#onVisible);
    if (isSeen()) this.now();
  }

  now(): void {
    this.#pause();
    this.#same = 0;
    void this.#look();
  }

  end(): void {
    document.removeEventListener('visibilitychange', this.#onVisible);
    this.#pause();
  }

  #pause(): void {
    clearTimeout(this.#timer);
    this.#under?.abort();
    this.#under = undefined;
  }

  async #look(): Promise<void> {
    const under = new AbortController();
    this.#under = under;
    try {
      const data = await this.#ask(under.signal);
      if (under.signal.aborted) return;
      this.#succeeded(data);
    } catch (error) {
      if (under.signal.aborted) return;
      this.#failed(problemOf(error));
    }
    this.#under = undefined;
  }

  #succeeded(data: T): void {
    const { everyMs, fingerprint, onData } = this.#options.current;
    const print = fingerprint?.(data);
    this.#same = print !== undefined && print === this.#last ? this.#same + 1 : 0;
    this.#last = print;
    this.#failures = 0;
    onData?.(data);
    this.#set(() => ({ data, at: performance.now(), problem: undefined, nextAt: 0 }));
    const calm = this.#same >= 2 * CALM_AFTER ? 4 : this.#same >= CALM_AFTER ? 2 : 1;
    this.#again(everyMs * calm);
  }

  #failed(problem: Problem): void {
    const { everyMs } = this.#options.current;
    this.#failures++;
    const backoff = Math.min(MAX_BACKOFF_MS, everyMs * 2 ** (this.#failures - 1)) * (0.75 + Math.random() / 2);
    // What is not allowed will not be in a moment either.
    const pause = problem.status === 401 || problem.status === 403 ? MAX_BACKOFF_MS : backoff;
    const inMs = Math.max(pause, problem.retryAfterMs ?? 0);
    this.#set((state) => ({ ...state, problem, nextAt: performance.now() + inMs }));
    this.#again(inMs);
  }

  #again(inMs: number): void {
    if (isSeen()) this.#timer = setTimeout(() => void this.#look(), inMs);
  }
}

const isSeen = () => document.visibilityState === 'visible';
