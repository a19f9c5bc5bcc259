import type { CapView } from '../calls/types.ts';

// Rules of caps. The client's in-memory service loads this file, so the file may only import what that service can
// load.

interface Weighed {
  weight: number;
  /** How much weight may be in use before the grant, if there is no cap. */
  room: number;
}

/**
 * How much weight may be in use before a grant, under a cap. A pause leaves no room at all. A request that is heavier
 * than the cap is granted alone, because otherwise its line would wait for as long as the cap lasts.
 */
export function roomUnder(cap: { limit: number } | undefined, { weight, room }: Weighed): number {
  if (!cap) return room;
  if (cap.limit === 0) return -1;
  return weight > cap.limit ? 0 : Math.min(room, cap.limit - weight);
}

/**
 * Shows the cap of a lock and the cap of the rate of the same key as one cap, with the reason and the end of the later
 * command.
 */
export function bothCaps(ofLock: CapView | null, ofRate: CapView | undefined): CapView | null {
  if (!ofLock || !ofRate) return ofLock ?? ofRate ?? null;
  const later = ofLock.since < ofRate.since ? ofRate : ofLock;
  return { ...later, limit: ofLock.limit, rates: ofRate.rates };
}
