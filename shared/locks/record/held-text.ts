// The message of LeaseHeld. The client's in-memory service loads this file, so the file may only import what that
// service can load.

/** What messages call a holder without a name on record. */
export const NAMELESS = 'a client without a name';

interface Refused {
  key: string;
  /** The holder whose grant ends first. The next two fields belong to the same grant. */
  holder: string | null;
  expiresAt: string | null;
  isBound: boolean;
  used: number;
  holders: readonly { mode: 'shared' | 'exclusive' }[];
  /** The limit that the call named. Null if the call wants the key alone. */
  askedLimit: number | null;
  /** The cap that keeps the caller out. */
  cap: { limit: number; reason: string } | undefined;
  /**
   * Why the caller is refused although there is room: others are in line before it (`line`), or the holders have just
   * left (`free`).
   */
  refusedDespiteRoom: 'line' | 'free' | undefined;
}

/**
 * The message begins with the key, because `withCallersKey` replaces the stored key there with the key that the caller
 * named.
 */
export function heldText({
  key,
  holder,
  expiresAt,
  isBound,
  used,
  holders,
  askedLimit,
  cap,
  refusedDespiteRoom,
}: Refused): string {
  if (cap?.limit === 0) return `${key} is paused by an operator: ${cap.reason}`;
  if (refusedDespiteRoom === 'line') return `${key} has other waiters in line`;
  if (refusedDespiteRoom === 'free') return `${key} was held a moment ago, and may be free now: send the call again`;
  const end = isBound ? 'its execution ends' : expiresAt;
  const held = `${key} is held by ${holder ?? NAMELESS}${end === null ? '' : ` until ${end}`}`;
  if (holders[0]?.mode !== 'shared') return held;
  const limit = cap ? `${cap.limit}, an operator's cap` : askedLimit;
  const need = askedLimit === null ? 'the call needs the key alone' : `the limit is ${limit}`;
  return `${held}, and has no room: the holders use ${used}, and ${need}`;
}
