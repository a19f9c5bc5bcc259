// What LeaseHeld says to people. Imports nothing that the client's in-memory service could not load.

/** The name in messages for a holder that the record does not name. */
export const NAMELESS = 'a client without a name';

/** The fields of LeaseHeld, and why the caller is refused. */
interface Refused {
  key: string;
  /** Of the grant that ends first. */
  holder: string | null;
  expiresAt: string | null;
  isBound: boolean;
  used: number;
  holders: readonly { mode: 'shared' | 'exclusive' }[];
  /** The limit of the call. Null if it wants the key alone. */
  asked: number | null;
  /** The cap that keeps the caller out. */
  cap: { limit: number; reason: string } | undefined;
  /** In spite of room: `line` if others are in line before the caller, `free` if the holders have just left. */
  room: 'line' | 'free' | undefined;
}

/** Begins with the key, which `nameKey` replaces by the caller's own name of the key. */
export function heldText({ key, holder, expiresAt, isBound, used, holders, asked, cap, room }: Refused): string {
  if (cap?.limit === 0) return `${key} is paused by an operator: ${cap.reason}`;
  if (room === 'line') return `${key} has other waiters in line`;
  if (room === 'free') return `${key} was held a moment ago, and may be free now: send the call again`;
  const end = isBound ? 'its execution ends' : expiresAt;
  const held = `${key} is held by ${holder ?? NAMELESS}${end === null ? '' : ` until ${end}`}`;
  if (holders[0]?.mode !== 'shared') return held;
  const limit = cap ? `${cap.limit}, an operator's cap` : asked;
  const most = asked === null ? 'the call needs the key alone' : `the limit is ${limit}`;
  return `${held}, and has no room: the holders weigh ${used}, and ${most}`;
}
