/** The clocks, timers and random numbers of the client. Tests pass their own and move time by hand. */
export interface Surroundings {
  /** Epoch milliseconds. It can be set, and goes on while the machine sleeps. */
  wall(): number;
  /** Milliseconds since some start. It cannot be set, and on Linux it stands still while the machine sleeps. */
  monotonic(): number;
  /**
   * Calls `act` once after `ms`. @returns a function that cancels it
   * @param idle whether the process may end before
   */
  after(ms: number, act: () => void, idle?: boolean): () => void;
  /** A number in [0, 1). */
  random(): number;
  /** A version 4 UUID, unguessable. */
  uuid(): string;
}

/** The longest delay of a timer, in milliseconds. A timer with a longer delay fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemSurroundings: Surroundings = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, act, idle) => {
    const timer: unknown = setTimeout(act, Math.min(ms, MAX_TIMER_MS));
    if (idle) (timer as { unref?(): void }).unref?.(); // browsers have numbers
    return () => clearTimeout(timer as number);
  },
  random: () => Math.random(),
  uuid: () => crypto.randomUUID(),
};

/** One moment on both clocks. */
export type Moment = readonly [wall: number, monotonic: number];

export const moment = (by: Surroundings): Moment => [by.wall(), by.monotonic()];

/**
 * Milliseconds since `then`, by the clock that advanced further: the wall clock may have been set back, and the monotonic
 * clock may have stood still.
 */
export const since = (by: Surroundings, [wall, monotonic]: Moment): number =>
  Math.max(by.wall() - wall, by.monotonic() - monotonic);

/** Rejects with the signal's reason as soon as it aborts. Keeps the process alive, because a caller awaits it. */
export const sleep = (by: Surroundings, ms: number, signal?: AbortSignal): Promise<void> =>
  interruptible(signal, (resolve) => by.after(ms, resolve));

/** Keeps the process alive, as work does whose promise is awaited. @returns a function that ends that */
export function stayAlive(by: Surroundings): () => void {
  let cancel = () => {};
  const arm = () => {
    cancel = by.after(MAX_TIMER_MS, arm);
  };
  arm();
  return () => cancel();
}

/** @param start begins something, and returns what to call when it is over or the signal aborts */
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

/** Makes a signal check, each time it is read, whether it is due to abort. */
export function watch(signal: AbortSignal, check: () => void): void {
  for (const name of ['aborted', 'reason', 'throwIfAborted'])
    Object.defineProperty(signal, name, {
      get: () => {
        check();
        return Reflect.get(AbortSignal.prototype, name, signal);
      },
    });
}
