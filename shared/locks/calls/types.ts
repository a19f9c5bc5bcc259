import { integer, type Json, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import type { Rate } from '../../rates/charge.ts';
import { instant, isInstant } from '../../surroundings/clock.ts';

export const ENDINGS = ['released', 'expired', 'broken', 'executionEnded', 'superseded'] as const;
type EndReason = (typeof ENDINGS)[number];

/**
 * A grant that its holder had received, and how it ended (docs/protocols/locks.md#previous). `at` is in epoch
 * milliseconds.
 */
export interface EndedGrant {
  holder: string;
  fence: number;
  ended: EndReason;
  at: number;
  /** The authenticated operator that broke the grant, or the newer holder if the grant was superseded. */
  by?: string | undefined;
}

/**
 * The attributes that name the holder before a grant that came from the line. They are stored, because another call
 * answers with that grant.
 */
export const endedItem = ({ holder, fence, ended, at, by }: EndedGrant): Item => ({
  prev_holder: text(holder),
  prev_fence: integer(fence),
  prev_ended: text(ended),
  prev_at: integer(at),
  ...(by !== undefined && { prev_by: text(by) }),
});

export function parseEnded(item: Item): EndedGrant | undefined {
  const holder = item.prev_holder?.S;
  const ended = ENDINGS.find((known) => known === item.prev_ended?.S);
  const [fence, at] = [Number(item.prev_fence?.N ?? Number.NaN), Number(item.prev_at?.N ?? Number.NaN)];
  if (holder === undefined || ended === undefined || !Number.isSafeInteger(fence) || !isInstant(at)) return undefined;
  return { holder, fence, ended, at, ...(item.prev_by?.S !== undefined && { by: item.prev_by.S }) };
}

/**
 * The highest number of characters of an operator's name on record. The record of a key with many holders is large
 * already.
 */
const MAX_OPERATOR = 256;

/** The name of an operator, as a record stores it. Undefined if the operator is not authenticated. */
export const operatorOf = ({ principal }: Pick<Call, 'principal'>): string | undefined =>
  principal?.slice(0, MAX_OPERATOR);

// The types of the answers. contract/answers/leases.ts explains each field.

export type Mode = 'shared' | 'exclusive';

export type LostReason = 'released' | 'taken' | 'broken' | 'superseded' | 'unknown';

/** Which older requests a request replaces: those that wait, or the holder too (docs/protocols/replace.md). */
export const REPLACES = ['waiting', 'running'] as const;
export type Replace = (typeof REPLACES)[number];

/** The answer to the holder of a lease. `leaseId` and `version` are the holder's secrets. */
export interface LeaseGrant {
  key: string;
  holder: string;
  leaseId: string;
  version: string;
  fence: number;
  acquiredAt: string;
  expiresAt: string;
  remainingMs: number;
  bound?: true;
  data?: Json;
}

export interface Durations {
  waitedMs: number;
  remainingMs: number;
}

export interface Previous {
  holder: string;
  fence: number;
  ended: EndReason;
  at: string;
  by?: string;
}

export interface Acquired extends LeaseGrant, Durations {
  repeated: boolean;
  previous: Previous | null;
  /** This field and the next four are only in the answer for a permit. */
  mode?: Mode;
  limit?: number | null;
  weight?: number;
  used?: number;
  limitChanged?: { from: number; to: number };
}

/**
 * The answer to the call that parks a task. The task itself is notified of its grant, or of the error, by a message.
 */
export interface Parked {
  key: string;
  holder: string;
  ticket: string;
  parked: boolean;
}

export type Released =
  | { key: string; released: true }
  | { key: string; released: false; reason: Exclude<LostReason, 'released'> };

/** The answer to the operator that breaks a lease or a permit. */
export interface Broken {
  key: string;
  broken: true;
  fence: number;
  holder: string | null;
  ended: boolean;
  holderUntil: string | null;
  lastHeartbeatAt: string | null;
}

/** The cap that an operator has set on a key. If `limit` is 0, the key is paused. */
export interface CapView {
  limit: number | null;
  rates: Pick<Rate, 'name' | 'limit' | 'per'>[] | null;
  reason: string;
  by: string | null;
  since: string;
  until: string | null;
}

export interface Capped {
  key: string;
  cap: CapView | null;
  before: CapView | null;
  used: number;
  waiting: number;
}

/**
 * The answer to the operator that moves a waiter to the front. `before`: the waiter of an earlier command, which loses
 * the front.
 */
export type MovedToFront =
  | { key: string; ticket: string; moved: true; before: string | null }
  | { key: string; ticket: string; moved: false; reason: 'granted' | 'gone' | 'unknown' };

/**
 * Computes both durations from one reading of the clock, so their sum is never more than the time from `since` to the
 * expiry. With two readings, the time by which a clock is set back between them would count twice, and the caller would
 * work beyond the take-over of its lease. All three times are epoch milliseconds.
 */
export const durations = ({ since, expiresAt, now }: { since: number; expiresAt: number; now: number }): Durations => ({
  waitedMs: Math.max(0, Math.min(now, expiresAt) - since),
  remainingMs: Math.max(0, expiresAt - now),
});

export const previousView = (previous: EndedGrant | undefined): Previous | null =>
  previous ? { ...withoutAbsentBy(previous), at: instant(previous.at) } : null;

const withoutAbsentBy = ({ by, ...ended }: EndedGrant) => ({ ...ended, ...(by !== undefined && { by }) });

/** The states of a key, as its readers see them. */
export const KEY_STATES = ['held', 'expired', 'released', 'free'] as const;
