import type { HoldfastError } from '../errors.ts';
import { otherEnd } from '../line/executions/bound-grant.ts';
import type { GrantRequest } from './grant.ts';
import type { Leased } from './record.ts';
import { isBound } from './rules.ts';

type Terms = Pick<GrantRequest, 'bound' | 'execution'>;

/** Whether a lease goes on for the grace of the execution that asks again for a bound one, because it was redriven. */
export const isRedriven = (record: Leased, { bound, execution }: Terms): boolean =>
  bound === true && record.execution === undefined && record.endedExecution === execution && execution !== undefined;

/** The error for a request that has a lease which ends otherwise than this call asks for (docs/protocols/bound.md#the-same-request-again). */
export const otherTerms = (record: Leased, asked: Terms): HoldfastError | undefined =>
  isRedriven(record, asked) ? undefined : otherEnd(asked, isBound(record) ? record.execution : undefined);
