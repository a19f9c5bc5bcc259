import * as z from 'zod/mini';
import { CONCERNS, KINDS } from '../../shared/nameservice/items.ts';
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
import type { Repaired } from '../../shared/nameservice/repair-names.ts';
import type { Published } from '../../shared/nameservice/results.ts';
import type { Json, JsonObject } from '../../shared/nameservice/values.ts';
import { always, component, count, flag, instant, json, jsonObject, list, nullable, oneOf, text } from '../schema.ts';

export const pointer = component<Pointer>()(
  'Pointer',
  'What an alias points to: the head of its commits, or of its index.',
  z.strictObject({
    address: nullable(text('Null while nothing has been published.')),
    t: count('The watermark: a whole number that publishing only ever raises.'),
  }),
);

export const status = component<Status>()(
  'Status',
  'What a ledger or graph source is doing.',
  z.strictObject({
    state: text('For example `ready`.'),
    v: count('The version, which rises with every change.'),
    extra: jsonObject<JsonObject>('Whatever the writer added.'),
  }),
);

const configPayload = component<ConfigPayload>()(
  'LedgerConfigPayload',
  'What a ledger is configured with.',
  z.strictObject({
    defaultContextAddress: z.optional(text('Where the default context is.')),
    extra: z.optional(jsonObject<JsonObject>('Whatever the writer added.')),
  }),
);

export const ledgerConfig = component<LedgerConfig>()(
  'LedgerConfig',
  'The config of a ledger.',
  z.strictObject({
    v: count('The version, which rises with every change.'),
    payload: z.nullable(configPayload),
  }),
);

const graphSourceConfig = component<GraphSourceRecord['config']>()(
  'GraphSourceConfig',
  'The config of a graph source.',
  z.strictObject({
    v: count('The version, which rises with every publication.'),
    value: json<Json>('The config itself.'),
  }),
);

const commonFields = () => ({
  alias: text('`name:branch`.'),
  name: text('The part of the alias before the colon.'),
  branch: text('The part of the alias behind the colon.'),
  retracted: flag('Whether it is retired. It is still visible.'),
  index: pointer,
  status,
  updatedAt: instant('When any of its items was last written.'),
  missing: z.exactOptional(
    list(z.enum(CONCERNS), 'Items that should be there and are not. The next write to such a concern restores it.'),
  ),
  oversized: z.exactOptional(
    always(
      true,
      'Another client made the record larger than an answer can be: long texts are cut, the rest is left out.',
    ),
  ),
});

const ledger = component<Extract<NameserviceRecord, { kind: 'ledger' }>>()(
  'Ledger',
  'The record of a ledger.',
  z.strictObject({ ...commonFields(), kind: always('ledger'), commit: pointer, config: ledgerConfig }),
);

const graphSource = component<GraphSourceRecord>()(
  'GraphSource',
  'The record of a graph source.',
  z.strictObject({
    ...commonFields(),
    kind: always('graph_source'),
    sourceType: text('What kind of graph source it is, for example `db:Bm25Index`.'),
    dependencies: list(z.string(), 'The aliases that it is made from.'),
    config: graphSourceConfig,
  }),
);

export const record = component<NameserviceRecord>()(
  'NameserviceRecord',
  'Everything that stands under an alias.',
  z.discriminatedUnion('kind', [ledger, graphSource]),
);

const retracted = component<{ retracted: true }>()(
  'Retracted',
  'The ledger or graph source is retired.',
  z.strictObject({ retracted: always(true) }),
);

export const published = component<Published<Current>>()(
  'Published',
  'What a publish came to.',
  z.strictObject({
    alias: text('`name:branch`.'),
    outcome: oneOf(['updated', 'stale'], '`stale`: something newer stands there, and nothing was written.'),
    created: flag('Whether this call created the alias.'),
    repeated: flag('Whether an earlier try of this call had landed.'),
    current: z.union([ledger, graphSource, pointer, status, ledgerConfig, retracted]),
  }),
);

const unretracted = component<{ retracted: false }>()(
  'Unretracted',
  'The ledger or graph source is in use again.',
  z.strictObject({ retracted: always(false) }),
);

export const repaired = component<Repaired>()(
  'Repaired',
  'What a repair came to.',
  z.strictObject({
    alias: text('`name:branch`.'),
    op: oneOf(['resetRef', 'resetStatus', 'resetConfig', 'unretract', 'purge'], 'The operation.'),
    repeated: flag('Whether an earlier try of this call had landed.'),
    current: z.nullable(z.union([pointer, status, ledgerConfig, unretracted])),
  }),
);

/** The record that the caller of a purge must have seen. */
export const seenRecord = component<PurgeConflict>()(
  'SeenRecord',
  'What stands under an alias, as far as a purge expects it.',
  z.strictObject({
    kind: oneOf(KINDS, 'The kind of the alias.'),
    retracted: flag('Whether it is retired: only then it can be purged.'),
    commit: z.optional(pointer),
    index: pointer,
    status: z.strictObject({ state: text('For example `ready`.'), v: count('Its version.') }),
    config: z.strictObject({ v: count('Its version.') }),
  }),
);

/** The record that is there where a retraction, or a repair of one, may have been undone. */
export const retraction = component<{ retracted: boolean }>()(
  'Retraction',
  'Whether a ledger or graph source is retired.',
  z.strictObject({ retracted: flag('Whether it is.') }),
);

export const recordPage = component<RecordPage>()(
  'RecordPage',
  'A page of records. It may be empty and still have a cursor.',
  z.strictObject({
    records: list(record, 'By kind, and then by alias.'),
    nextCursor: nullable(text('Passed as `cursor`, it gets the next page. Null on the last page.')),
  }),
);
