import type { components } from './contract.ts';
import type { HoldfastError } from './index.ts';
import type { RequestOf } from './transport.ts';

type Schemas = components['schemas'];
export type AcquireRequest = RequestOf<'acquire'>;
export type Acquired = Schemas['AcquiredGrant'];

/** The weight of an exclusive permit. No limit allows another permit at the same time. */
export const EXCLUSIVE_WEIGHT = 1_000_000;

/** The limit of a request that names a mode and no limit. */
export const MOST_PERMITS = 200;

export interface Grant {
  request: AcquireRequest;
  leaseId: string;
  version: string;
  fence: number;
  weight: number;
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

export const instant = (ms: number): string => new Date(ms).toISOString();

export const kindOf = ({ limit, mode }: AcquireRequest): 'lease' | 'pool' =>
  limit === undefined && mode === undefined ? 'lease' : 'pool';

export const waiterView = ({ request, ticket, since }: Waiter): Schemas['Waiter'] => ({
  kind: 'caller',
  ticket,
  holder: request.holder,
  execution: null,
  parkedAt: instant(since),
  deadline: instant(since + (request.waitSeconds ?? 0) * 1000),
});

export const weightOf = ({ mode, weight = 1 }: AcquireRequest): number =>
  mode === 'exclusive' ? EXCLUSIVE_WEIGHT : weight;
