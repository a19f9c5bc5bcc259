import type { Ids } from '../../ids.ts';

/** How often the next in line looks, and how often the others do: milliseconds, from and to. */
const NEXT_MS = [20, 30] as const;
const OTHERS_MS = [150, 250] as const;

interface Sight {
  /** Whether nobody is known to be before this call. */
  isNext: boolean;
  /** Until the lease can be taken over. Negative where it can, infinite where nobody knows. */
  toTakeoverMs: number;
}

/** How long a call in line sleeps before it looks again, with jitter. Nothing but time rests on it (docs/protocols/queue.md#wait). */
export function pauseMs({ isNext, toTakeoverMs }: Sight, ids: Ids): number {
  const [least, most] = isNext ? NEXT_MS : OTHERS_MS;
  const pause = Math.round(least + (most - least) * ids.random());
  // The next one is there in the moment in which the holder's time is over.
  return isNext && toTakeoverMs > 0 ? Math.min(pause, toTakeoverMs) : pause;
}
