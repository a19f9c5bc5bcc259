import type { Item } from '../aws/dynamodb.ts';
import type { HoldfastError } from '../errors.ts';
import { otherEnd } from '../line/executions/bound-grant.ts';
import type { PermitRequest } from './permit-request.ts';
import { isBound, type PoolEntry } from './record.ts';

/** The part of an update that sets parts of an entry. */
export function setting(parts: Item): { set: string[]; values: Item } {
  const names = Object.keys(parts);
  return {
    set: names.map((part) => `#h.${part} = :${part}`),
    values: Object.fromEntries(names.map((part) => [`:${part}`, parts[part]])) as Item,
  };
}

type Terms = Pick<PermitRequest, 'bound' | 'execution'>;

/** Whether a permit goes on for the grace of the execution that asks again for a bound one, because it was redriven. */
export const isRedriven = (entry: PoolEntry, { bound, execution }: Terms): boolean =>
  bound === true && entry.execution === undefined && entry.endedExecution === execution && execution !== undefined;

/** The error for a request that has a permit which ends otherwise than this call asks for. */
export const otherTerms = (entry: PoolEntry, asked: Terms): HoldfastError | undefined =>
  isRedriven(entry, asked) ? undefined : otherEnd(asked, isBound(entry) ? entry.execution : undefined);
