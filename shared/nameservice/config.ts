import { integer, text } from '../aws/attributes.ts';
import { all } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { hasConfigVersion, isLedgerConfig } from './conditions.ts';
import type { ConfigInput } from './inputs.ts';
import { type LedgerConfig, ledgerConfigOf, normalPayload } from './record.ts';
import { asRead, mapAttribute } from './values.ts';
import type { VersionedChange } from './versioned.ts';

/** The change that sets the config of a ledger if the version is as expected. A payload of null empties the config. */
export function configChange({
  expected,
  next,
}: Pick<ConfigInput, 'expected' | 'next'>): VersionedChange<LedgerConfig> {
  const payload = normalPayload(next.payload && { ...next.payload, extra: asRead(next.payload.extra) });
  const { defaultContextAddress, extra } = payload ?? {};
  const columns = {
    default_context_address: defaultContextAddress === undefined ? undefined : text(defaultContextAddress),
    config_meta: extra && mapAttribute(extra),
  };
  const set = ['config_v = :v'];
  const remove: string[] = [];
  const values: Item = { ':v': integer(next.v) };
  for (const [column, value] of Object.entries(columns))
    if (value) {
      set.push(`${column} = :${column}`);
      values[`:${column}`] = value;
    } else remove.push(column);
  const update = {
    concern: 'config' as const,
    condition: all(isLedgerConfig, hasConfigVersion(expected.v)),
    set: set.join(', '),
    remove,
    values,
    kinds: ['ledger' as const],
  };
  return { what: 'config', wanted: { v: next.v, payload }, update, read: ledgerConfigIn };
}

/** The config of a ledger. Null for the config of a graph source, which `isLedgerConfig` (conditions.ts) refuses. */
const ledgerConfigIn = (item: Item | undefined): LedgerConfig | null =>
  item?.config_json === undefined ? ledgerConfigOf(item) : null;
