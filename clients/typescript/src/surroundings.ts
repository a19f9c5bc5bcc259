/** The clocks, timers and random numbers of the client. Tests pass a `ManualClock`, so that they need not wait. */
export interface Surroundings {
  /** Epoch milliseconds. This clock can be set, and goes on while the machine sleeps. */
  wall(): number;
  /** Milliseconds since some start. This clock cannot be set, and on Linux it stands still while the machine sleeps. */
  monotonic(): number;
  /**
   * Calls `act` after `ms`.
   * @param idle true if the process may end before
   * @returns a function that cancels the timer
   */
  after(ms: number, act: () => void, idle?: boolean): () => void;
  /** A number in [0, 1). */
  random(): number;
  /** A version 4 UUID that cannot be guessed. */
  uuid(): string;
}

/** The longest delay of a timer, in milliseconds. A timer with a longer delay fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemSurroundings: Surroundings = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, act, idle) => {
    const timer: unknown = setTimeout(act, Math.min(ms, MAX_TIMER_MS));
    if (idle) (timer as { unref?(): void }).unref?.(); // in browsers a timer is a number
    return () => clearTimeout(timer as number);
  },
  random: () => Math.random(),
  uuid: () => crypto.randomUUID(),
};

/** One moment on both clocks. */
export type Moment = readonly [wall: number, monotonic: number];

export const moment = (surroundings: Surroundings): Moment => [surroundings.wall(), surroundings.monotonic()];

/**
 * Milliseconds since a moment, by the clock that advanced further: the wall clock may have been set back, and the monotonic clock may have stood still.
 */
export const since = (surroundings: Surroundings, [wall, monotonic]: Moment): number =>
  Math.max(surroundings.wall() - wall, surroundings.monotonic() - monotonic);

/** Waits, and keeps the process alive. Rejects with the reason of the signal as soon as it aborts. */
export const sleep = (surroundings: Surroundings, ms: number, signal?: AbortSignal): Promise<void> =>
  interruptible(signal, (resolve) => surroundings.after(ms, resolve));

/** Keeps the process alive while only idle timers run, which Node does not wait for. @returns a function that lets the process end */
export function stayAlive(surroundings: Surroundings): () => void {
  let cancel = () => {};
  const arm = () => {
    cancel = surroundings.after(MAX_TIMER_MS, arm);
  };
  arm();
  return () => cancel();
}

/** A promise that rejects as soon as the signal aborts. @param start begins the work, and returns a function that is called when the promise is settled */
export function interruptible<T>(
  signal: AbortSignal | undefined,
  start: (resolve: (value: T) => void, reject: (reason: unknown) => void) => () => unknown,
): Promise<T> {
  let over = () => {};
  return new Promise<T>((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => reject(signal?.reason);
    const end = start(resolve, reject);
    signal?.addEventListener('abort', abort);
    over = () => {
      signal?.removeEventListener('abort', abort);
      end();
    };
  }).finally(() => over());
}

/** Makes a signal call `check` each time it is read, so that it can abort even if no timer fired in time. */
export function watch(signal: AbortSignal, check: () => void): void {
  for (const name of ['aborted', 'reason', 'throwIfAborted'])
    Object.defineProperty(signal, name, {
      get: () => {
        check();
        return Reflect.get(AbortSignal.prototype, name, signal);
      },
    });
}
