import type { components } from './contract.ts';
import { HoldfastError } from './index.ts';
import type { Surroundings } from './surroundings.ts';
import type { RequestOf } from './transport.ts';

type Schemas = components['schemas'];
export type AcquireRequest = RequestOf<'acquire'>;
export type Acquired = Schemas['AcquiredGrant'];

/** The limit of a shared request that names none. */
const MOST_PERMITS = 200;

export interface Grant {
  request: AcquireRequest;
  leaseId: string;
  version: string;
  fence: number;
  acquiredAt: number;
  endsAt: number;
  previous: Acquired['previous'];
  limitChanged: Acquired['limitChanged'];
  /** True if an operator broke the grant, and it stays until its release. */
  ending: boolean;
}

export interface Waiter {
  request: AcquireRequest;
  ticket: string;
  since: number;
  resolve(grant: Acquired): void;
  reject(error: HoldfastError): void;
}

export type ProblemOf = (code: string, status: number, detail: string, fields?: object) => HoldfastError;

/** Problems as the service sends them. */
export const problemsOf =
  (key: string, by: Surroundings): ProblemOf =>
  (code, status, detail, fields = {}) => {
    const problem = { type: `urn:holdfast:error:${code}`, title: code, status, code, detail, traceId: by.uuid() };
    return new HoldfastError(Object.assign({ key }, fields, problem));
  };

export const instant = (ms: number): string => new Date(ms).toISOString();

/** Whether a request is for the key alone. */
export const isExclusive = ({ limit, mode }: AcquireRequest): boolean =>
  mode === 'exclusive' || (limit === undefined && mode === undefined);

/** An exclusive holder counts as one. */
export const weightOf = ({ request: { weight = 1 } }: Pick<Grant, 'request'>): number => weight;

/** Null for an exclusive request. */
export const limitOf = (request: AcquireRequest): number | null =>
  isExclusive(request) ? null : (request.limit ?? MOST_PERMITS);

export const waiterView = ({ request, ticket, since }: Waiter): Schemas['Waiter'] => ({
  kind: 'caller',
  ticket,
  holder: request.holder,
  execution: null,
  parkedAt: instant(since),
  deadline: instant(since + (request.waitSeconds ?? 0) * 1000),
  dueAt: null,
});
