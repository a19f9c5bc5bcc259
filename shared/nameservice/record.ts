import type { Json } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { answerable } from '../listings/pages.ts';
import { CONCERNS, type Concern, INITIAL_STATUS, RECORD_KINDS, type RecordKind } from './items.ts';
import { type Pointer, type PointerStyle, pointerOf } from './pointers.ts';
import { exactNumber, type JsonObject, numberOf, objectOf, stringsOf } from './values.ts';

export interface Status {
  state: string;
  v: number;
  extra: JsonObject;
}

export interface ConfigPayload {
  defaultContextAddress?: string | undefined;
  extra?: JsonObject | undefined;
}

export interface LedgerConfig {
  v: number;
  /** Null if the config is empty. */
  payload: ConfigPayload | null;
}

interface GraphSourceConfig {
  v: number;
  value: Json;
}

interface CommonRecord {
  /** `name:branch`. */
  alias: string;
  name: string;
  branch: string;
  /** Whether the record is retired. It stays readable. */
  retracted: boolean;
  index: Pointer;
  status: Status;
  /** The time of the last write to one of the items. */
  updatedAt: string;
  /** The concerns whose items are missing. The next write to such a concern restores its item. */
  missing?: Concern[];
  /** Set if another client made the record too large for an answer. Then only identity and counters are shown. */
  oversized?: true;
}

interface LedgerRecord extends CommonRecord {
  kind: 'ledger';
  commit: Pointer;
  config: LedgerConfig;
}

export interface GraphSourceRecord extends CommonRecord {
  kind: 'graph_source';
  sourceType: string;
  dependencies: string[];
  config: GraphSourceConfig;
}

export type NameserviceRecord = LedgerRecord | GraphSourceRecord;

/** The items of one alias by concern, without items that only other clients use. */
export type ItemsByConcern = Partial<Record<Concern, Item>>;

export function itemsByConcern(items: Item[]): ItemsByConcern {
  const known = items.filter(({ sk }) => CONCERNS.includes(sk?.S as Concern));
  return Object.fromEntries(known.map((item) => [item.sk?.S, item]));
}

/**
 * The kind of a record. Undefined if `meta` is absent or without a kind: then the alias does not exist, even if other
 * items do.
 */
export function kindOf(meta: Item | undefined): RecordKind | undefined {
  return RECORD_KINDS.find((kind) => kind === meta?.kind?.S);
}

/** The part of a record that fits into every answer. */
export function abridged(record: NameserviceRecord): NameserviceRecord {
  const short = (text: string) => text.slice(0, 1024);
  const pointer = ({ address, t }: Pointer) => ({ address: address && short(address), t });
  const common = {
    name: short(record.name),
    branch: short(record.branch),
    index: pointer(record.index),
    status: { ...record.status, state: short(record.status.state), extra: {} },
    oversized: true,
  } as const;
  const { v } = record.config;
  if (record.kind === 'ledger')
    return { ...record, ...common, commit: pointer(record.commit), config: { v, payload: null } };
  return { ...record, ...common, sourceType: short(record.sourceType), dependencies: [], config: { v, value: null } };
}

/** @returns undefined if the items are not a record */
export function recordOf(rows: ItemsByConcern, style: PointerStyle): NameserviceRecord | undefined {
  const { meta } = rows;
  const kind = kindOf(meta);
  if (!meta || !kind) return undefined;
  const alias = meta.pk?.S ?? '';
  const missing = CONCERNS.filter((concern) => !rows[concern] && !(kind === 'graph_source' && concern === 'head'));
  const identity = {
    name: meta.name?.S ?? alias,
    branch: meta.branch?.S ?? '',
    retracted: meta.retracted?.BOOL ?? false,
  };
  const state = {
    index: pointerOf(rows.index, 'index', style),
    status: statusOf(rows.status),
    updatedAt: updatedAt(rows),
    ...(missing.length > 0 && { missing }),
  };
  if (kind === 'ledger') {
    const commit = pointerOf(rows.head, 'commit', style);
    return { alias, kind, ...identity, commit, ...state, config: ledgerConfigOf(rows.config) };
  }
  return {
    alias,
    kind,
    ...identity,
    ...state,
    sourceType: meta.source_type?.S ?? '',
    dependencies: stringsOf(meta.dependencies),
    config: { v: numberOf(rows.config?.config_v) ?? 0, value: parsedConfig(rows.config?.config_json?.S ?? '{}') },
  };
}

/** The record of the items, abridged if it would not fit into an answer. */
export function shownRecord(rows: ItemsByConcern, style: PointerStyle): NameserviceRecord | undefined {
  const record = recordOf(rows, style);
  return record && answerable(record, abridged);
}

export function statusOf(item: Item | undefined): Status {
  return {
    state: item?.status?.S ?? INITIAL_STATUS.state,
    v: numberOf(item?.status_v) ?? INITIAL_STATUS.v,
    extra: objectOf(item?.status_meta),
  };
}

export function ledgerConfigOf(item: Item | undefined): LedgerConfig {
  const payload = {
    ...(item?.default_context_address?.S !== undefined && { defaultContextAddress: item.default_context_address.S }),
    extra: objectOf(item?.config_meta),
  };
  return { v: numberOf(item?.config_v) ?? 0, payload: normalPayload(payload) };
}

/** The payload as readers see it. An empty payload is stored like null, so it reads as null. */
export function normalPayload(payload: ConfigPayload | null): ConfigPayload | null {
  const { defaultContextAddress, extra = {} } = payload ?? {};
  const normal = {
    ...(defaultContextAddress !== undefined && { defaultContextAddress }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
  return Object.keys(normal).length > 0 ? normal : null;
}

function updatedAt(rows: ItemsByConcern): string {
  const times = Object.values(rows).flatMap(({ updated_at_ms }) => numberOf(updated_at_ms) ?? []);
  const latest = Math.max(0, ...times);
  // A Date cannot hold a larger number, which only another client can have written.
  return new Date(Math.min(latest, 8.64e15)).toISOString();
}

/**
 * The deepest config that is shown as JSON. This service stores less deep ones, and much deeper ones would overflow the
 * stack.
 */
const MAX_CONFIG_DEPTH = 100;

/**
 * The config of a graph source. A config of another client is shown as text if it is not JSON, or is nested too deep.
 */
function parsedConfig(config: string): Json {
  try {
    const value = JSON.parse(config, (_, member, context?: { source?: string }) =>
      typeof member === 'number' && context?.source !== undefined ? exactNumber(context.source) : member,
    );
    return isDeeperThan(value, MAX_CONFIG_DEPTH) ? config : value;
  } catch {
    return config;
  }
}

function isDeeperThan(value: Json, depth: number): boolean {
  let level: unknown[] = [value];
  for (let left = depth; level.length > 0 && left >= 0; left--)
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  return level.length > 0;
}
