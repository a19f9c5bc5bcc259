import { isHeld } from './errors.ts';

/** What runs under a lease, or under what else is held. */
export type Work<Held, T> = (held: Held) => T | Promise<T>;

/** What to do if the key is not granted: throw the error (the default), or skip the work and resolve to undefined. */
export interface OnHeldOptions<Hold extends 'throw' | 'skip'> {
  onHeld?: Hold | undefined;
}

/** The options, which may be left out, and the work. @throws TypeError before anything is acquired */
export function parted<Options, Held, T>(
  rest: unknown[],
): [options: Options & OnHeldOptions<'throw' | 'skip'>, work: Work<Held, T>] {
  const [work, options = {}] = rest.reverse();
  if (typeof work === 'function') return [options as Options & OnHeldOptions<never>, work as Work<Held, T>];
  throw new TypeError('work must be a function, the last argument');
}

/** Undefined in place of the error, if the key was not granted and the work is skipped then. */
export const unlessHeld = <T>(onHeld: 'throw' | 'skip' | undefined, acquiring: Promise<T>): Promise<T | undefined> =>
  onHeld === 'skip'
    ? acquiring.catch((error) => {
        if (!isHeld(error)) throw error;
        return undefined;
      })
    : acquiring;
