import type { Call } from '../aws/call.ts';
import type { Alias } from './alias.ts';
import { readRows } from './alias-rows.ts';
import type { NameserviceDependencies } from './dependencies.ts';
import type { ReadNamesInput } from './inputs.ts';
import { listRecords, type RecordPage } from './list.ts';
import { type NameserviceRecord, shownRecord } from './record.ts';
import { aliasNotFound } from './results.ts';

/**
 * Reads one alias, strongly consistent, or a page of all records.
 * @throws HoldfastError NotFound, InvalidRequest (cursor), Throttled, Unavailable
 */
export function readAliasOrList(dependencies: NameserviceDependencies) {
  return ({ alias, ...query }: ReadNamesInput, call: Call): Promise<NameserviceRecord | RecordPage> =>
    alias === undefined ? listRecords(dependencies, query, call) : readAlias(dependencies, alias, call);
}

async function readAlias(dependencies: NameserviceDependencies, alias: Alias, call: Call): Promise<NameserviceRecord> {
  const record = shownRecord(await readRows(dependencies, alias, call), dependencies.pointerStyle);
  if (!record) throw aliasNotFound(alias, 'record');
  return record;
}
