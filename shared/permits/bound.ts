import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { HoldfastError } from '../errors.ts';
import type { HeartbeatInput, LeaseGrant } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { otherEnd } from '../line/executions/bound-grant.ts';
import { BOUND_SECONDS } from '../line/times.ts';
import type { Proof } from './identity.ts';
import type { PermitRequest } from './permit-request.ts';
import { readPool } from './read.ts';
import { entryOf, isBound, type PoolEntry } from './record.ts';
import { lostReason, permitGrant, permitLost } from './views.ts';

/** The part of an update that sets parts of an entry. */
export function setting(parts: Item): { set: string[]; values: Item } {
  const names = Object.keys(parts);
  return {
    set: names.map((part) => `#h.${part} = :${part}`),
    values: Object.fromEntries(names.map((part) => [`:${part}`, parts[part]])) as Item,
  };
}

interface Again {
  set: Item;
  remove: string[];
}

type Terms = Pick<PermitRequest, 'bound' | 'execution' | 'target' | 'graceMs'>;

/** Whether a permit goes on for the grace of the execution that asks again for a bound one, because it was redriven. */
export const isRedriven = (entry: PoolEntry, { bound, execution }: Pick<Terms, 'bound' | 'execution'>): boolean =>
  bound === true && entry.execution === undefined && entry.endedExecution === execution && execution !== undefined;

/** The error for a request that has a permit which ends otherwise than this call asks for, as for a lease (leases/bound.ts). */
export const otherTerms = (entry: PoolEntry, asked: Pick<Terms, 'bound' | 'execution'>): HoldfastError | undefined =>
  isRedriven(entry, asked) ? undefined : otherEnd(asked, isBound(entry) ? entry.execution : undefined);

/** What a write sets that answers the request of a permit again, as for a lease (leases/bound.ts). */
export function boundAgain(entry: PoolEntry, asked: Terms, now: number): Again {
  const { execution, target, graceMs } = asked;
  if (isBound(entry)) return { set: { z: integer(now) }, remove: [] };
  if (execution === undefined || !isRedriven(entry, asked)) return { set: {}, remove: [] };
  const ttlMs = BOUND_SECONDS * 1000;
  return {
    set: {
      ...{ x: text(execution), z: integer(now), b: integer(now), t: integer(ttlMs), e: integer(now + ttlMs) },
      ...(target !== undefined && { y: text(target) }),
      ...(graceMs && { n: integer(graceMs) }),
    },
    remove: ['#h.g', ...(graceMs ? [] : ['#h.n'])],
  };
}

/**
 * The answer to the heartbeat of a bound permit, which extends nothing.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable
 */
export async function stillHeld(
  dependencies: LeaseDependencies,
  { key, proof: { name, id } }: Pick<HeartbeatInput, 'key'> & { proof: Proof },
  call: Call,
): Promise<LeaseGrant> {
  const record = await readPool(dependencies, key, call);
  const entry = entryOf(record, name);
  if (entry?.id === id && !entry.isEnding) return permitGrant(key, entry, dependencies.clock.now());
  throw permitLost(key, lostReason(record, name));
}
