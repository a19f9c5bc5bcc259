import { isHeld } from './errors.ts';

/** A function that runs while a lease, several leases or a run is held. */
export type Work<Held, T> = (held: Held) => T | Promise<T>;

/** What to do if the key is not granted: `throw` the error (the default), or `skip` the work and resolve to undefined. */
export interface OnHeldOptions<Hold extends 'throw' | 'skip'> {
  onHeld?: Hold | undefined;
}

/** Takes the arguments apart: the options may be left out. @throws TypeError before anything is acquired */
export function optionsAndWork<Options, Held, T>(
  rest: unknown[],
): [options: Options & OnHeldOptions<'throw' | 'skip'>, work: Work<Held, T>] {
  const [work, options = {}] = rest.reverse();
  if (typeof work === 'function') return [options as Options & OnHeldOptions<never>, work as Work<Held, T>];
  throw new TypeError('work must be a function, the last argument');
}

/** Resolves to undefined if the key was not granted, and `onHeld` says to skip the work. */
export const unlessHeld = <T>(onHeld: 'throw' | 'skip' | undefined, acquiring: Promise<T>): Promise<T | undefined> =>
  onHeld === 'skip'
    ? acquiring.catch((error) => {
        if (!isHeld(error)) throw error;
        return undefined;
      })
    : acquiring;
