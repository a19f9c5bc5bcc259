import type { CapView } from '../calls/types.ts';

// Rules of caps. Imports nothing that the client's in-memory service could not load.

/** What a request needs of a key. `room`: how much may be in use already, without a cap. */
interface Weighed {
  weight: number;
  room: number;
}

/**
 * How much may be in use before a grant under a cap. In a pause, nothing may be granted. A request that is heavier than the cap is granted alone: otherwise it
 * would keep its line waiting for as long as the cap lasts.
 */
export function roomUnder(cap: { limit: number } | undefined, { weight, room }: Weighed): number {
  if (!cap) return room;
  if (cap.limit === 0) return -1;
  return weight > cap.limit ? 0 : Math.min(room, cap.limit - weight);
}

/** The caps of a lock and of the rate of its key, as one: with the reason and the end of the later command. */
export function bothCaps(ofLock: CapView | null, ofRate: CapView | undefined): CapView | null {
  if (!ofLock || !ofRate) return ofLock ?? ofRate ?? null;
  const later = ofLock.since < ofRate.since ? ofRate : ofLock;
  return { ...later, limit: ofLock.limit, rates: ofRate.rates };
}
