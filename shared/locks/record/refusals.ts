import { HoldfastError } from '../../errors.ts';
import type { LostReason } from '../calls/types.ts';
import { ASK_EVERY_MS } from '../dependencies.ts';
import { capAt, capView, isBinding } from './capped.ts';
import { heldText } from './held-text.ts';
import { ALONE } from './identity.ts';
import { holderView, limitOf, thirdPartyView, weightShown } from './outcomes.ts';
import { byEnd, ending, type HolderEntry, isBound, type KeyRecord } from './record.ts';
import { type Asked, roomAt, weightInUse } from './room.ts';

// Why a caller does not get a key, or has lost it. A call that gets the key loads nothing of this.

/** Sorts grants by their ends. Expired grants, whose room no caller has needed, come last. */
const byNextEnd = (now: number) => (one: HolderEntry, other: HolderEntry) =>
  Number(one.expiresAt <= now) - Number(other.expiresAt <= now) || byEnd(one, other);

/** LeaseHeld lists up to this many holders. */
const MOST_NAMED_HOLDERS = 10;

interface HeldBy {
  asked: Asked & { limit: number | null };
  now: number;
  clockSkewMs: number;
}

/** `holder`, `fence` and `expiresAt` are those of the grant that ends first, or of an expired grant if all have expired. */
export function leaseHeld(record: KeyRecord, { asked, now, clockSkewMs }: HeldBy): HoldfastError {
  const { entries, thirdParty, key, mark } = record;
  const next = entries.toSorted(byNextEnd(now));
  const shown = next.slice(0, MOST_NAMED_HOLDERS).map(holderView);
  const holders = thirdParty ? [...shown, thirdPartyView(thirdParty)] : shown;
  const { holder = null, fence = null, expiresAt = null } = holders[0] ?? {};
  const seen = capAt(record, { now, clockSkewMs });
  const cap = seen && isBinding(seen, [asked]) ? seen : undefined;
  const room = roomAt(record, asked, clockSkewMs);
  // Without an end, others took the room in between, and it may be free again.
  const roomInMs = Number.isFinite(room) ? Math.max(1, room - now) : cap ? CAPPED_MS : 1000;
  const fields = {
    ...{ key, holder, fence, expiresAt },
    used: weightShown(weightInUse(record, { now, clockSkewMs })),
    limit: asked.limit ?? limitOf(record),
    holders,
  };
  const [first] = next;
  const text = heldText({
    ...{ ...fields, cap, asked: asked.limit, isBound: first !== undefined && isBound(first) },
    room: room > now ? undefined : mark === undefined ? 'free' : 'line',
  });
  return new HoldfastError('LeaseHeld', text, {
    ...fields,
    ...(cap && { cap: capView(cap) }),
    retryAfterMs: entries.some(isBound) ? Math.min(roomInMs, ASK_EVERY_MS) : roomInMs,
  });
}

/** A caller that a cap without an end keeps out tries again after this time. */
const CAPPED_MS = 60_000;

/**
 * Why a caller has lost its grant. A shared grant that others took over leaves no trace, so its reason is `unknown`. An exclusive grant is `taken` if another
 * holder is on record, or was the last. After the end of an execution, the last holder may be the caller itself, so that is `unknown` too.
 */
export function lostReason(record: KeyRecord, { name, path }: Pick<HolderEntry, 'name' | 'path'>): LostReason {
  const how = ending(record, name);
  if (how) return how;
  const { ended = 'expired' } = record.last ?? {};
  const hadOther = ended !== 'expired' && ended !== 'executionEnded';
  const isTaken = path === ALONE && (record.entries.length > 0 || hadOther || record.thirdParty !== undefined);
  return isTaken ? 'taken' : 'unknown';
}

/** Names the holder that has the key alone now. If the grant was broken or superseded, that holder may be the caller itself, so there is no name. */
export function leaseLost(key: string, reason: LostReason | 'cancelled', record?: KeyRecord): HoldfastError {
  const isEnding = reason === 'broken' || reason === 'superseded';
  const holder = isEnding ? undefined : record?.entries.find(({ path }) => path === ALONE)?.holder;
  const detail =
    reason === 'cancelled'
      ? 'an operator cancelled the waiter, or the caller withdrew it'
      : `the grant is no longer yours (${reason}): stop the work under the grant`;
  return new HoldfastError('LeaseLost', detail, { key, reason, holder: holder ?? null });
}
