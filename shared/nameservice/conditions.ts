import { all, either } from '../aws/conditions.ts';
import type { PointerNames } from './pointers.ts';

/**
 * The conditions that make a write a rule. `name`, `schema` and `status` are DynamoDB reserved words and appear as
 * `#name`, `#schema` and `#status` only.
 */
export const isThere = 'attribute_exists(pk)';
export const isAbsent = 'attribute_not_exists(pk)';

/** On `meta`. One without a kind is a stub that a careless client left; to all readers there is no such alias. */
export const isNoRecord = 'attribute_not_exists(kind)';
export const isOfKind = 'kind = :kind';
export const isNotRetracted = 'NOT retracted = :true';

/** Only a graph source's config has it, so that a ledger's config never lands there. */
export const isLedgerConfig = 'attribute_not_exists(config_json)';

const pointsTo = ({ written, alsoRead }: PointerNames, address: string) =>
  either(`${written} = ${address}`, `NOT attribute_type(${written}, :string) AND ${alsoRead} = ${address}`);

export const isBelow = ({ t }: PointerNames) => either(`attribute_not_exists(${t})`, `${t} < :t`);

/** The same address at the same t would change nothing, so a repeat can be told from a first call. */
export const isBelowOrElsewhere = (names: PointerNames) =>
  either(isBelow(names), all(`${names.t} = :t`, `NOT (${pointsTo(names, ':address')})`));

export const isAt = (names: PointerNames) => all(pointsTo(names, ':expectedAddress'), `${names.t} = :expectedT`);

export const isUnborn = ({ written, alsoRead, t }: PointerNames) =>
  all(
    `NOT attribute_type(${written}, :string)`,
    `NOT attribute_type(${alsoRead}, :string)`,
    either(`attribute_not_exists(${t})`, `${t} = :expectedT`),
  );

export const hasStatus = 'status_v = :expectedV AND #status = :expectedState';
export const hasConfigVersion = 'config_v = :expectedV';
export const hasNoConfigYet = either('attribute_not_exists(config_v)', 'config_v = :expectedV');
