import * as z from 'zod/mini';
import type { Json } from '../../shared/aws/attributes.ts';
import { CONCERNS, RECORD_KINDS } from '../../shared/nameservice/items.ts';
import type { RecordPage } from '../../shared/nameservice/list.ts';
import type { Pointer } from '../../shared/nameservice/pointers.ts';
import type { Current } from '../../shared/nameservice/publish.ts';
import type { PurgeConflict } from '../../shared/nameservice/purge.ts';
import type {
  ConfigPayload,
  GraphSourceRecord,
  LedgerConfig,
  NameserviceRecord,
  Status,
} from '../../shared/nameservice/record.ts';
import type { RepairedAlias } from '../../shared/nameservice/repair-alias.ts';
import type { Published } from '../../shared/nameservice/results.ts';
import type { JsonObject } from '../../shared/nameservice/values.ts';
import { MEANING } from '../meanings.ts';
import {
  always,
  component,
  count,
  described,
  flag,
  instant,
  json,
  jsonObject,
  list,
  nullable,
  oneOf,
  text,
} from '../schema.ts';

export const pointer = component<Pointer>()(
  'Pointer',
  'The head of the commits or of the index of an alias.',
  z.strictObject({
    address: nullable(text('Where the commit or the index is stored. Null before the first publish.')),
    t: count('The watermark: a whole number that only a repair lowers.'),
  }),
);

export const status = component<Status>()(
  'Status',
  'The status of a ledger or a graph source.',
  z.strictObject({
    state: text('The state, such as `ready`.'),
    v: count('The version, which rises with each change.'),
    extra: jsonObject<JsonObject>('Whatever the writer added.'),
  }),
);

const configPayload = component<ConfigPayload>()(
  'LedgerConfigPayload',
  'The content of the config of a ledger.',
  z.strictObject({
    defaultContextAddress: z.optional(text('Where the default context of the ledger is stored.')),
    extra: z.optional(jsonObject<JsonObject>('Whatever the writer added.')),
  }),
);

export const ledgerConfig = component<LedgerConfig>()(
  'LedgerConfig',
  'The config of a ledger.',
  z.strictObject({
    v: count('The version, which rises with each change.'),
    payload: nullable(configPayload),
  }),
);

const graphSourceConfig = component<GraphSourceRecord['config']>()(
  'GraphSourceConfig',
  'The config of a graph source.',
  z.strictObject({
    v: count('The version, which rises with each publish.'),
    value: json<Json>('The config.'),
  }),
);

const commonFields = () => ({
  alias: text(MEANING.alias),
  name: text('The part of the alias before the colon.'),
  branch: text('The part of the alias after the colon.'),
  retracted: flag('True if the alias is retracted. A retracted alias stays visible.'),
  index: pointer,
  status,
  updatedAt: instant('When an item of the record was last written.'),
  missing: z.exactOptional(
    list(z.enum(CONCERNS), 'Items of the record that are missing. The next write to such an item restores it.'),
  ),
  oversized: z.exactOptional(
    always(
      true,
      'Present if a third-party client made the record too large for an answer: long texts are cut, and `extra`, `dependencies` and the config are left out.',
    ),
  ),
});

const ledger = component<Extract<NameserviceRecord, { kind: 'ledger' }>>()(
  'Ledger',
  'The record of a ledger.',
  z.strictObject({
    ...commonFields(),
    kind: always('ledger', 'The kind of the alias.'),
    commit: pointer,
    config: ledgerConfig,
  }),
);

const graphSource = component<GraphSourceRecord>()(
  'GraphSource',
  'The record of a graph source.',
  z.strictObject({
    ...commonFields(),
    kind: always('graph_source', 'The kind of the alias.'),
    sourceType: text('The type of the graph source, such as `db:Bm25Index`.'),
    dependencies: list(z.string(), 'The aliases from which the graph source is made.'),
    config: graphSourceConfig,
  }),
);

export const record = component<NameserviceRecord>()(
  'NameserviceRecord',
  'The record of an alias.',
  z.discriminatedUnion('kind', [ledger, graphSource]),
);

const retracted = component<{ retracted: true }>()(
  'Retracted',
  'The ledger or the graph source is retracted.',
  z.strictObject({ retracted: always(true, 'The alias is retracted.') }),
);

export const published = component<Published<Current>>()(
  'Published',
  'The outcome of a publish.',
  z.strictObject({
    alias: text(MEANING.alias),
    outcome: oneOf(['updated', 'stale'], '`stale`: the alias has a newer value, and nothing was written.'),
    created: flag('True if this call created the alias.'),
    repeated: flag('True if an earlier try of this call took effect.'),
    current: described(z.union([ledger, graphSource, pointer, status, ledgerConfig, retracted]), {
      description:
        'What the operation changes, as it is now: the record of a new alias, or else the ref, the status, the config or the retraction.',
    }),
  }),
);

const unretracted = component<{ retracted: false }>()(
  'Unretracted',
  'The ledger or the graph source is not retracted.',
  z.strictObject({ retracted: always(false, 'The alias is not retracted.') }),
);

export const repaired = component<RepairedAlias>()(
  'Repaired',
  'The outcome of a repair.',
  z.strictObject({
    alias: text(MEANING.alias),
    op: oneOf(['resetRef', 'resetStatus', 'resetConfig', 'unretract', 'purge'], 'The operation.'),
    repeated: flag('True if an earlier try of this call took effect.'),
    current: described(z.nullable(z.union([pointer, status, ledgerConfig, unretracted])), {
      description: 'What the operation changes, as it is now. Null after a purge.',
    }),
  }),
);

export const seenRecord = component<PurgeConflict>()(
  'SeenRecord',
  'The part of a record that a purge compares.',
  z.strictObject({
    kind: oneOf(RECORD_KINDS, 'The kind of the alias.'),
    retracted: flag('True if the alias is retracted. Only a retracted alias can be purged.'),
    commit: z.optional(pointer),
    index: pointer,
    status: described(z.strictObject({ state: text('The state, such as `ready`.'), v: count('The version.') }), {
      description: 'The status.',
    }),
    config: described(z.strictObject({ v: count('The version.') }), { description: 'The config.' }),
  }),
);

export const retraction = component<{ retracted: boolean }>()(
  'Retraction',
  'Whether a ledger or a graph source is retracted.',
  z.strictObject({ retracted: flag('True if the alias is retracted.') }),
);

export const recordPage = component<RecordPage>()(
  'RecordPage',
  'A page of records. A page may be empty and still have a cursor.',
  z.strictObject({
    records: list(record, 'The records, by kind and then by alias.'),
    nextCursor: nullable(text(MEANING.nextCursor)),
  }),
);
