import type { Item } from '../aws/dynamodb.ts';
import { type Operation, outcomeUnknown } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { type Alias, aliasText } from './alias.ts';
import { type RecordKind, SCHEMA } from './items.ts';

export interface Published<Current> {
  alias: string;
  /** `stale`: the record has something newer, so nothing was written. */
  outcome: 'updated' | 'stale';
  /** True if this call created the alias. */
  created: boolean;
  /** True if an earlier try of this call had landed. */
  repeated: boolean;
  current: Current;
}

export function published<Current>(
  alias: Alias,
  current: Current,
  how: Partial<Pick<Published<Current>, 'outcome' | 'created' | 'repeated'>> = {},
): Published<Current> {
  return { alias: aliasText(alias), outcome: 'updated', created: false, repeated: false, ...how, current };
}

/** @param actual what is there instead. Null if there is nothing */
export function conflict(alias: Alias, what: string, actual: unknown): HoldfastError {
  return new HoldfastError('Conflict', `the ${what} is not as expected: compare it with actual, and decide again`, {
    alias: aliasText(alias),
    actual,
  });
}

/**
 * The error of a compare-and-set that lost and did not find its own value. It is a Conflict, unless a try got no
 * answer: that try may have won, and another caller may have replaced the value since, so the outcome is unknown.
 */
export function conflictOrUnknown(
  { alias, what, actual, unanswered }: { alias: Alias; what: string; actual: unknown; unanswered: boolean },
  operation: Operation,
): HoldfastError {
  return unanswered ? unknown(conflict(alias, what, actual), operation) : conflict(alias, what, actual);
}

const unknown = (verdict: HoldfastError, operation: Operation): HoldfastError =>
  outcomeUnknown(operation, verdict, verdict.context);

/** @param found the kind of the record that has the alias instead */
export function aliasNotFound(alias: Alias, wanted: RecordKind | 'record', found?: RecordKind): HoldfastError {
  const label = { ledger: 'ledger', graph_source: 'graph source', record: 'record' } as const;
  const instead = found ? `: the alias names a ${label[found]}` : '';
  return new HoldfastError('NotFound', `there is no such ${label[wanted]}${instead}`, {
    alias: aliasText(alias),
    ...(found && { kind: found }),
  });
}

/**
 * The error of an update that did not find the record. It is NotFound, unless a try got no answer: that try may have
 * landed, and an operator may have removed the record since, so the outcome is unknown.
 */
export function notFoundOrUnknown(
  alias: Alias,
  wanted: RecordKind | 'record',
  { found, unanswered, operation }: { found?: RecordKind | undefined; unanswered: boolean; operation: Operation },
): HoldfastError {
  return unanswered ? unknown(aliasNotFound(alias, wanted, found), operation) : aliasNotFound(alias, wanted, found);
}

/** @param found undefined if the items of the alias are not a record */
export function alreadyExists(alias: Alias, found: RecordKind | undefined): HoldfastError {
  const detail = found
    ? `the alias already names a ${found === 'ledger' ? 'ledger' : 'graph source'}`
    : 'items under the alias form no known record, after an interrupted purge or by a newer client: purge the alias, or deploy a newer version';
  return new HoldfastError('AlreadyExists', detail, { alias: aliasText(alias), ...(found && { kind: found }) });
}

/**
 * Refuses a write to items of a later layout. A repeat does not help until a version of Holdfast that knows the layout
 * is deployed.
 * @param unanswered whether a try got no answer, so that it may have landed before the layout changed
 */
export function refuseLaterLayout(items: (Item | undefined)[], operation: Operation, unanswered = false): void {
  const later = items.find((item) => Number(item?.schema?.N) > Number(SCHEMA.N));
  if (!later) return;
  const detail = `a newer client wrote the item '${later.sk?.S}' of the alias with schema ${later.schema?.N}, and this version of Holdfast writes only schema ${SCHEMA.N}: deploy a newer version`;
  const verdict = new HoldfastError('Unavailable', detail, { retryAfterMs: 60_000 });
  throw unanswered ? outcomeUnknown(operation, verdict) : verdict;
}
