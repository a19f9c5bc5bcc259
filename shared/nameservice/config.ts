import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { Alias } from './alias.ts';
import { hasConfigVersion, isLedgerConfig } from './conditions.ts';
import { type NameserviceDependencies, type Request, writingTable } from './dependencies.ts';
import type { ConfigInput } from './inputs.ts';
import { kindOf, type LedgerConfig, ledgerConfigOf, normalPayload, same } from './record.ts';
import { conflict, lost, type Published, published } from './results.ts';
import { readRows } from './rows.ts';
import { type Update, updateConcern } from './update.ts';
import { asRead, map } from './values.ts';

/**
 * Sets a ledger's config where the version is as expected, with one conditional UpdateItem. The version must rise; a
 * payload of null empties the config.
 * @throws HoldfastError Conflict (`actual` is the config, null where there is no such ledger), Throttled, Unavailable, OutcomeUnknown
 */
export async function pushConfig(
  dependencies: NameserviceDependencies,
  alias: Alias,
  { expected, next }: ConfigInput,
  request: Request,
  call: Call,
): Promise<Published<LedgerConfig>> {
  const wanted = configAsRead(next);
  if (next.v <= expected.v) {
    const rows = await readRows(dependencies, alias, call);
    throw conflict(alias, 'config', kindOf(rows.meta) === 'ledger' ? ledgerConfigOf(rows.config) : null);
  }
  const outcome = await updateConcern(dependencies, alias, configUpdate(expected.v, wanted), request, call);
  if (outcome.won) return published(alias, wanted);
  const actual = outcome.old && isLedgers(outcome.old) ? ledgerConfigOf(outcome.old) : null;
  if (actual && same(actual, wanted)) return published(alias, actual, { repeated: true });
  const operation = writingTable(dependencies.table, request);
  throw lost({ alias, what: 'config', actual, unanswered: outcome.unanswered }, operation);
}

/** As readers find it once it is stored. */
export const configAsRead = ({ v, payload }: ConfigInput['next']): LedgerConfig => ({
  v,
  payload: normalPayload(payload && { ...payload, extra: asRead(payload.extra) }),
});

/** As `isLedgerConfig` (conditions.ts) has it. */
export const isLedgers = (item: Item) => item.config_json === undefined;

export function configUpdate(expectedV: number, { v, payload }: LedgerConfig): Update {
  const { defaultContextAddress, extra } = payload ?? {};
  const columns = {
    default_context_address: defaultContextAddress === undefined ? undefined : text(defaultContextAddress),
    config_meta: extra && map(extra),
  };
  const set = ['config_v = :v'];
  const remove: string[] = [];
  const values: Item = { ':v': integer(v) };
  for (const [column, value] of Object.entries(columns))
    if (value) {
      set.push(`${column} = :${column}`);
      values[`:${column}`] = value;
    } else remove.push(column);
  return {
    concern: 'config',
    condition: all(isLedgerConfig, hasConfigVersion(expectedV)),
    set: set.join(', '),
    remove,
    values,
    kinds: ['ledger'],
  };
}
