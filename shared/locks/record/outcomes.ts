import { instant, isInstant } from '../../surroundings/clock.ts';
import type { LeaseGrant, Mode } from '../calls/types.ts';
import { EXCLUSIVE_PATH, EXCLUSIVE_WEIGHT, leaseIdOf } from './identity.ts';
import { type HolderEntry, isBound, type KeyRecord, type ThirdParty } from './record.ts';

// Answers to callers that acquire or hold a key. For refusals see refusals.ts, and for readers views.ts.

/** A holder as LeaseHeld names it. A third-party client has no name, no fence, and perhaps no expiry. */
export interface HolderView {
  holder: string | null;
  fence: number | null;
  mode: Mode;
  weight: number;
  expiresAt: string | null;
}

const isExclusiveWeight = (weight: number): boolean => weight >= EXCLUSIVE_WEIGHT;
const modeOfWeight = (weight: number): Mode => (isExclusiveWeight(weight) ? 'exclusive' : 'shared');
/** The weight that readers see. An exclusive holder, which outweighs every limit on record, has the weight 1 there. */
export const weightShown = (weight: number): number => (isExclusiveWeight(weight) ? 1 : weight);

export const instantOrNull = (epochMs: number | undefined): string | null =>
  epochMs !== undefined && isInstant(epochMs) ? instant(epochMs) : null;

export function grantView(key: string, entry: HolderEntry, now: number): LeaseGrant {
  const { version, holder, fence, acquiredAt, expiresAt, data } = entry;
  return {
    key,
    holder,
    leaseId: leaseIdOf(entry),
    version,
    fence,
    acquiredAt: instant(acquiredAt),
    expiresAt: instant(expiresAt),
    remainingMs: Math.max(0, expiresAt - now),
    ...(isBound(entry) && { bound: true }),
    ...(data !== undefined && { data }),
  };
}

/** The fields that only the answer for a permit has. */
export const sharedTerms = (
  { weight }: HolderEntry,
  { used, limit, limitBefore }: { used: number; limit: number | null; limitBefore: number | undefined },
) => ({
  ...{ mode: modeOfWeight(weight), limit, weight: weightShown(weight), used: weightShown(used) },
  ...(limit !== null &&
    limitBefore !== undefined &&
    limitBefore !== limit && { limitChanged: { from: limitBefore, to: limit } }),
});

export const holderView = ({ holder, fence, weight, expiresAt }: HolderEntry): HolderView => ({
  holder,
  fence,
  mode: modeOfWeight(weight),
  weight: weightShown(weight),
  expiresAt: instant(expiresAt),
});

/** A third-party client has the key alone, and no name. */
export const thirdPartyView = ({ endsAt }: ThirdParty): HolderView => ({
  ...{ holder: null, fence: null, mode: 'exclusive', weight: 1 },
  expiresAt: instantOrNull(endsAt),
});

const wasLastExclusive = ({ entries, last, thirdParty }: KeyRecord): boolean =>
  thirdParty !== undefined || last !== undefined || entries.some(({ path }) => path === EXCLUSIVE_PATH);

export const limitOf = (record: KeyRecord): number | null =>
  wasLastExclusive(record) ? null : (record.lastLimit ?? null);
