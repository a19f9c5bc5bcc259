/** Time and chance as the client sees them. Tests pass some that they move by hand. */
export interface Surroundings {
  /** Epoch milliseconds. It can be set, and goes on while the machine sleeps. */
  wall(): number;
  /** Milliseconds since some start. It cannot be set, and on Linux it stands still while the machine sleeps. */
  monotonic(): number;
  /**
   * Calls `act` once after `ms`. @returns what calls that off
   * @param idle whether the process may end before
   */
  after(ms: number, act: () => void, idle?: boolean): () => void;
  /** A number in [0, 1). */
  random(): number;
  /** A version 4 UUID, unguessable. */
  uuid(): string;
}

export const systemSurroundings: Surroundings = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, act, idle) => {
    const timer: unknown = setTimeout(act, ms);
    if (idle) (timer as { unref?(): void }).unref?.(); // browsers have numbers
    return () => clearTimeout(timer as number);
  },
  random: () => Math.random(),
  uuid: () => crypto.randomUUID(),
};

/** One moment on both clocks. */
export interface Moment {
  wall: number;
  monotonic: number;
}

export const moment = (by: Surroundings): Moment => ({ wall: by.wall(), monotonic: by.monotonic() });

/**
 * Milliseconds since `then`. The further of the clocks counts: the wall clock may have been set back, and the monotonic
 * one may have stood still.
 */
export const since = (by: Surroundings, then: Moment): number =>
  Math.max(by.wall() - then.wall, by.monotonic() - then.monotonic);

/** Rejects with the signal's reason as soon as that aborts. Keeps the process alive, for somebody awaits it. */
export function sleep(by: Surroundings, ms: number, signal?: AbortSignal): Promise<void> {
  return interruptible(signal, (resolve) => by.after(ms, resolve));
}

/** @param start begins something, and returns what to call when it is over or the signal aborts */
export function interruptible<T>(
  signal: AbortSignal | undefined,
  start: (resolve: (value: T) => void, reject: (reason: unknown) => void) => () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => over(() => reject(signal?.reason));
    const over = (settle: () => void) => {
      signal?.removeEventListener('abort', abort);
      end();
      settle();
    };
    const end = start(
      (value) => over(() => resolve(value)),
      (reason) => over(() => reject(reason)),
    );
    signal?.addEventListener('abort', abort);
  });
}
