import { HoldfastError } from '../../errors.ts';
import type { LostReason } from '../calls/types.ts';
import { ASK_EVERY_MS } from '../dependencies.ts';
import { capAt, capView, isBinding } from './capped.ts';
import { heldText } from './held-text.ts';
import { EXCLUSIVE_PATH } from './identity.ts';
import { holderView, limitOf, thirdPartyView, weightShown } from './outcomes.ts';
import { byEnd, endOfRequest, type HolderEntry, isBound, type KeyRecord } from './record.ts';
import { type RoomRequest, roomFreeFrom, weightInUse } from './room.ts';

// Why a caller does not get a key, or has lost it. A call that gets the key does not load this file.

/** Sorts grants by their expiry. Grants that have expired already come last: no caller has needed their room. */
const byNextEnd = (now: number) => (one: HolderEntry, other: HolderEntry) =>
  Number(one.expiresAt <= now) - Number(other.expiresAt <= now) || byEnd(one, other);

/** How many holders LeaseHeld names at most. */
const MAX_NAMED_HOLDERS = 10;

interface HeldBy {
  request: RoomRequest & { limit: number | null };
  now: number;
  clockSkewMs: number;
}

/**
 * The error LeaseHeld. Its `holder`, `fence` and `expiresAt` belong to the grant that expires next, or to an expired
 * grant if all have expired.
 */
export function leaseHeld(record: KeyRecord, { request, now, clockSkewMs }: HeldBy): HoldfastError {
  const { entries, thirdParty, key, mark } = record;
  const byExpiry = entries.toSorted(byNextEnd(now));
  const shown = byExpiry.slice(0, MAX_NAMED_HOLDERS).map(holderView);
  const holders = thirdParty ? [...shown, thirdPartyView(thirdParty)] : shown;
  const { holder = null, fence = null, expiresAt = null } = holders[0] ?? {};
  const current = capAt(record, { now, clockSkewMs });
  const cap = current && isBinding(current, [request]) ? current : undefined;
  const roomFrom = roomFreeFrom(record, request, clockSkewMs);
  // If no end on record makes room, others took the room a moment ago, and may have left it again.
  const roomInMs = Number.isFinite(roomFrom) ? Math.max(1, roomFrom - now) : cap ? CAPPED_MS : 1000;
  const fields = {
    key,
    holder,
    fence,
    expiresAt,
    used: weightShown(weightInUse(record, { now, clockSkewMs })),
    limit: request.limit ?? limitOf(record),
    holders,
  };
  const [first] = byExpiry;
  const text = heldText({
    ...{ ...fields, cap, askedLimit: request.limit, isBound: first !== undefined && isBound(first) },
    refusedDespiteRoom: roomFrom > now ? undefined : mark === undefined ? 'free' : 'line',
  });
  return new HoldfastError('LeaseHeld', text, {
    ...fields,
    ...(cap && { cap: capView(cap) }),
    retryAfterMs: entries.some(isBound) ? Math.min(roomInMs, ASK_EVERY_MS) : roomInMs,
  });
}

/** When a caller may try again if a cap without an end keeps it out. */
const CAPPED_MS = 60_000;

/**
 * Why a caller has lost its grant. A shared grant that others took over does not leave a trace, so the reason is
 * `unknown`. The reason of an exclusive grant is `taken` if there is another holder, or another last holder. If the
 * last grant expired or ended with its execution, the last holder may be the caller itself, so the reason is `unknown`
 * too.
 */
export function lostReason(record: KeyRecord, { name, path }: Pick<HolderEntry, 'name' | 'path'>): LostReason {
  const how = endOfRequest(record, name);
  if (how) return how;
  const { ended = 'expired' } = record.last ?? {};
  const hadOther = ended !== 'expired' && ended !== 'executionEnded';
  const isTaken = path === EXCLUSIVE_PATH && (record.entries.length > 0 || hadOther || record.thirdParty !== undefined);
  return isTaken ? 'taken' : 'unknown';
}

/**
 * The error LeaseLost. It names the current exclusive holder, unless the caller may be that holder: the grant was
 * broken or superseded.
 */
export function leaseLost(key: string, reason: LostReason | 'cancelled', record?: KeyRecord): HoldfastError {
  const wasEndedByOthers = reason === 'broken' || reason === 'superseded';
  const holder = wasEndedByOthers ? undefined : record?.entries.find(({ path }) => path === EXCLUSIVE_PATH)?.holder;
  const detail =
    reason === 'cancelled'
      ? 'an operator cancelled the waiter, or the caller withdrew it'
      : `the grant is no longer yours (${reason}): stop the work under the grant`;
  return new HoldfastError('LeaseLost', detail, { key, reason, holder: holder ?? null });
}
