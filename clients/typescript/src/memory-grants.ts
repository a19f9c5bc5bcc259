import type { components } from './contract.ts';
import { HoldfastError } from './index.ts';
import type { Surroundings } from './surroundings.ts';
import type { RequestOf } from './transport.ts';

type Schemas = components['schemas'];
export type AcquireRequest = RequestOf<'acquire'>;
export type Acquired = Schemas['AcquiredGrant'];

/** The limit of a shared request that does not name one. */
const MAX_LIMIT = 200;

export interface Grant {
  request: AcquireRequest;
  leaseId: string;
  version: string;
  fence: number;
  acquiredAt: number;
  endsAt: number;
  previous: Acquired['previous'];
  limitChanged: Acquired['limitChanged'];
  /** True if the holder was asked to stop, by an operator or a newer request, and keeps the grant until its release. */
  ending: boolean;
  /** The holder of the newer request that asked this one to stop. */
  supersededBy?: string;
}

/** The reason for which a grant ends when its holder releases it. */
export const endOf = ({ ending, supersededBy }: Grant) =>
  supersededBy !== undefined ? 'superseded' : ending ? 'broken' : 'released';

/** What the next holder sees of a grant that has ended. */
export function previousOf({ request, fence, supersededBy }: Grant, reason: string, now: number): Acquired['previous'] {
  const ended = reason === 'released' || reason === 'broken' || reason === 'superseded' ? reason : 'expired';
  const by = ended === 'superseded' && supersededBy !== undefined && { by: supersededBy };
  return { holder: request.holder, fence, ended, at: instant(now), ...by };
}

export interface Waiter {
  request: AcquireRequest;
  ticket: string;
  since: number;
  resolve(grant: Acquired): void;
  reject(error: HoldfastError): void;
}

export type ProblemOf = (code: string, status: number, detail: string, fields?: object) => HoldfastError;

/** Makes errors with the fields that the service sends. */
export const problemsOf =
  (key: string, surroundings: Surroundings): ProblemOf =>
  (code, status, detail, fields = {}) => {
    const problem = {
      type: `urn:holdfast:error:${code}`,
      title: code,
      status,
      code,
      detail,
      traceId: surroundings.uuid(),
    };
    return new HoldfastError(Object.assign({ key }, fields, problem));
  };

export const instant = (ms: number): string => new Date(ms).toISOString();

/** True if a request is for the key alone. */
export const isExclusive = ({ limit, mode }: AcquireRequest): boolean =>
  mode === 'exclusive' || (limit === undefined && mode === undefined);

/** The weight that readers see. An exclusive grant counts as one. */
export const weightOf = ({ request: { weight = 1 } }: Pick<Grant, 'request'>): number => weight;

/** The limit of a request. Null for an exclusive request. */
export const limitOf = (request: AcquireRequest): number | null =>
  isExclusive(request) ? null : (request.limit ?? MAX_LIMIT);

export function holderOf(grant: Grant): Schemas['Holder'] {
  const { request, fence, endsAt } = grant;
  const mode = isExclusive(request) ? 'exclusive' : 'shared';
  return { holder: request.holder, fence, mode, weight: weightOf(grant), expiresAt: instant(endsAt) };
}

export const timesOf = ({ acquiredAt, endsAt }: Grant, now: number) => ({
  acquiredAt: instant(acquiredAt),
  expiresAt: instant(endsAt),
  remainingMs: Math.max(0, endsAt - now),
});

/** The fields of a grant that every reader may see. */
export function grantView(grant: Grant, now: number): Schemas['FullHolder'] {
  const { request, ending, endsAt, supersededBy } = grant;
  const { ttlSeconds = 60, data = null } = request;
  return {
    ...holderOf(grant),
    ...timesOf(grant, now),
    state: endsAt > now ? 'held' : 'expired',
    ...{ ttlSeconds, data, ending, ...(supersededBy !== undefined && { supersededBy }) },
    ...{ brokenAt: null, brokenBy: null, execution: null, bound: false, inGrace: false },
  };
}

/** A cap that an operator has set on a key. `until` is infinite if the cap lasts until it is lifted. */
export interface Cap {
  limit: number;
  reason: string;
  since: number;
  until: number;
}

export const capView = ({ limit, reason, since, until }: Cap): Schemas['Cap'] => ({
  ...{ limit, rates: null, reason, by: null, since: instant(since) },
  until: until === Number.POSITIVE_INFINITY ? null : instant(until),
});

/** The fields of a refusal because of a cap: the caller may ask again when the cap or a grant ends, or after a minute if neither has an end. */
export function cappedFields(cap: Cap, refusal: { holder: string | null; retryAfterMs: number }, now: number) {
  const grantMs = cap.limit > 0 && refusal.holder !== null ? refusal.retryAfterMs : Number.POSITIVE_INFINITY;
  const ms = Math.min(cap.until - now, grantMs);
  return { cap: capView(cap), retryAfterMs: Number.isFinite(ms) ? ms : 60_000 };
}

/** @param isMoved whether an operator has moved the waiter to the front */
export const waiterView = ({ request, ticket, since }: Waiter, isMoved: boolean): Schemas['Waiter'] => ({
  kind: 'caller',
  ticket,
  holder: request.holder,
  execution: null,
  parkedAt: instant(since),
  deadline: instant(since + (request.waitSeconds ?? 0) * 1000),
  dueAt: null,
  ...(isMoved && { movedBy: null }),
  ...(request.replace && { replace: request.replace }),
});
