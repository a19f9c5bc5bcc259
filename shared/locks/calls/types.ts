import { integer, type Json, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { isInstant } from '../../surroundings/clock.ts';

export const ENDINGS = ['released', 'expired', 'broken', 'executionEnded'] as const;
type Ending = (typeof ENDINGS)[number];

/** How a grant ended that its holder had received (docs/protocols/locks.md#previous). `at` is in epoch milliseconds. */
export interface Ended {
  holder: string;
  fence: number;
  ended: Ending;
  at: number;
  /** The operator that broke the grant, if `ended` is `broken` and the operator was authenticated. */
  by?: string | undefined;
}

/** The attributes of a grant from the line that keep the holder before, because another call sends the answer. */
export const endedItem = ({ holder, fence, ended, at, by }: Ended): Item => ({
  prev_holder: text(holder),
  prev_fence: integer(fence),
  prev_ended: text(ended),
  prev_at: integer(at),
  ...(by !== undefined && { prev_by: text(by) }),
});

export function parseEnded(item: Item): Ended | undefined {
  const holder = item.prev_holder?.S;
  const ended = ENDINGS.find((one) => one === item.prev_ended?.S);
  const [fence, at] = [Number(item.prev_fence?.N ?? Number.NaN), Number(item.prev_at?.N ?? Number.NaN)];
  if (holder === undefined || ended === undefined || !Number.isSafeInteger(fence) || !isInstant(at)) return undefined;
  return { holder, fence, ended, at, ...(item.prev_by?.S !== undefined && { by: item.prev_by.S }) };
}

/** The name of an operator in a record has up to this many characters: the record of a key with many holders is large already. */
const MAX_OPERATOR = 256;

/** The name of the operator that breaks a grant, for its record. Undefined if the operator is not authenticated. */
export const operatorOf = ({ principal }: Pick<Call, 'principal'>): string | undefined =>
  principal?.slice(0, MAX_OPERATOR);

// Types of requests for grants, and of the answers. The schemas that check a request are in locks/calls/inputs.ts.

/** A request for a lease or a permit. */
export interface AcquireInput {
  key: string;
  holder: string;
  ttlSeconds: number;
  waitSeconds: number;
  /** How long the caller can stay away between two calls that wait in line. 0 if absent. */
  sleepMs?: number | undefined;
  /** True if the call waits in line. False if it races. */
  fair: boolean;
  /** The ticket that came with LeaseHeld to an earlier call of this request. */
  ticket?: string | undefined;
  requestId?: string | undefined;
  data?: unknown;
  execution?: string | undefined;
  target?: string | undefined;
  graceSeconds?: number | undefined;
  /** True if the grant lasts as long as `execution`. */
  bound?: boolean | undefined;
  taskToken?: string | undefined;
  callbackId?: string | undefined;
  parkSeconds?: number | undefined;
  /** With `limit`, or with the mode `shared`, the request is for a permit. */
  limit?: number | undefined;
  weight?: number | undefined;
  /** Without a limit, `exclusive` is the default. */
  mode?: Mode | undefined;
}

export interface ReleaseInput {
  key: string;
  leaseId: string;
}

export interface CancelInput {
  key: string;
  ticket: string;
}

/** How a holder shares the key with others. */
export type Mode = 'shared' | 'exclusive';

/** Why a caller no longer holds a grant. */
export type LostReason = 'released' | 'taken' | 'broken' | 'unknown';

/** The answer to the holder of a lease. `leaseId` and `version` are the holder's secrets. */
export interface LeaseGrant {
  key: string;
  holder: string;
  /** The proof for heartbeat and release. Heartbeats do not change it. */
  leaseId: string;
  /** Changes with every heartbeat. */
  version: string;
  /** The fencing token: strictly larger with every new grant of the key. */
  fence: number;
  /** ISO 8601, like all instants. */
  acquiredAt: string;
  expiresAt: string;
  /** The time left of the lease at the moment of the answer, for a caller that counts on its own clock. */
  remainingMs: number;
  /** True if the grant lasts as long as its execution. Absent otherwise. */
  bound?: true;
  data?: Json;
}

/** The durations in the answer for a new holder. */
export interface Durations {
  /** From the arrival of the call, or the moment when its task was parked, to the answer. The lease ends at sentAt + waitedMs + remainingMs on the caller's clock. */
  waitedMs: number;
  remainingMs: number;
}

/** The holder before, as far as the record shows. */
export interface Previous {
  holder: string;
  fence: number;
  ended: Ending;
  at: string;
  /** The operator that broke the lease: the ARN or the subject of the token. Absent if the record does not say. */
  by?: string;
}

export interface Acquired extends LeaseGrant, Durations {
  /** True if an earlier try of this request received the grant, because the caller tried again or an answer was lost. */
  repeated: boolean;
  /** The holder before, and how its lease ended. Null if the record does not say. */
  previous: Previous | null;
  /** This field and the next three are only in the answer for a permit (locks/calls/acquire.ts). */
  mode?: Mode;
  /** The highest total weight of all holders, as this caller asked for. Null for a caller that has the key alone. */
  limit?: number | null;
  weight?: number;
  /** The total weight of all holders, including this holder. */
  used?: number;
  /** Both limits, if the grant before named another limit. Callers of one key should name the same limit. */
  limitChanged?: { from: number; to: number };
}

/** The answer to the call. The task itself receives its grant, or the reason why there is none, as a message. */
export interface Parked {
  key: string;
  holder: string;
  /** The id of the waiter. */
  ticket: string;
  /** False if the task was notified at once, or another call is notifying it. */
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
  /** The holder that must end its work. Null if the record does not say. */
  holder: string | null;
  /** True if the key is free for the next caller. Otherwise the key is free after the release of the holder, or after `holderUntil`. */
  ended: boolean;
  /** The expiry on record when the lease was broken: the holder may continue until then, unless a heartbeat fails earlier. Null if the record does not say. */
  holderUntil: string | null;
  /** Null if there was no heartbeat since the grant, or the record does not say. */
  lastHeartbeatAt: string | null;
}

/** The name in messages for a holder that the record does not name. */
export const NAMELESS = 'a client without a name';

export const instant = (epochMs: number): string => new Date(epochMs).toISOString();

/**
 * One reading of the clock gives both durations, so their sum is never more than the time from `since` to the expiry. With two readings, the time
 * by which a clock is set back in between would count twice, and the caller would work past the take-over of its lease. All three are epoch milliseconds.
 */
export const durations = ({ since, expiresAt, now }: { since: number; expiresAt: number; now: number }): Durations => ({
  waitedMs: Math.max(0, Math.min(now, expiresAt) - since),
  remainingMs: Math.max(0, expiresAt - now),
});

export const previousView = (previous: Ended | undefined): Previous | null =>
  previous ? { ...named(previous), at: instant(previous.at) } : null;

const named = ({ by, ...ended }: Ended) => ({ ...ended, ...(by !== undefined && { by }) });

/** The states of a key, for its readers. */
export const KEY_STATES = ['held', 'expired', 'released', 'free'] as const;
