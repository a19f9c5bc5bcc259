import { integer, type Json, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { type Alias, aliasText } from './alias.ts';
import { type Pointer, type PointerStyle, pointerNames, UNBORN } from './pointers.ts';
import { booleanAttribute } from './values.ts';

/**
 * The sort keys of an alias. Each concern has an item of its own, so that writers of different concerns do not
 * conflict.
 */
export const CONCERNS = ['config', 'head', 'index', 'meta', 'status'] as const;
export type Concern = (typeof CONCERNS)[number];

export const RECORD_KINDS = ['ledger', 'graph_source'] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];

export const SCHEMA = integer(2);
export const INITIAL_STATUS = { state: 'ready', v: 1 };

export interface GraphSource {
  sourceType: string;
  /** JSON as text. */
  config: string;
  /** Aliases, each as `name:branch`. */
  dependencies: string[];
}

export const itemKey = (alias: Alias, concern: Concern): Item => ({ pk: text(aliasText(alias)), sk: text(concern) });

interface ItemStamp {
  now: number;
  style: PointerStyle;
}

/** The five items of a new ledger. A ref without a pointer is unborn. */
export function ledgerItems(alias: Alias, writing: ItemStamp, pointers: Partial<Pointers> = {}): Item[] {
  return [
    ledgerMeta(alias, writing.now),
    headItem(alias, writing, pointers.commit),
    indexItem(alias, writing, pointers.index),
    statusItem(alias, writing.now),
    ledgerConfigItem(alias, writing.now),
  ];
}

interface Pointers {
  commit: Pointer;
  index: Pointer;
}

export function graphSourceItems(alias: Alias, source: GraphSource, writing: ItemStamp): Item[] {
  const { now } = writing;
  return [
    {
      ...ledgerMeta(alias, now),
      kind: text('graph_source'),
      source_type: text(source.sourceType),
      dependencies: textList(source.dependencies),
    },
    { ...commonAttributes(alias, 'config', now), config_json: text(source.config), config_v: integer(1) },
    indexItem(alias, writing),
    statusItem(alias, now),
  ];
}

export const textList = (values: string[]) => ({ L: values.map(text) });

export function initialItem(alias: Alias, concern: Exclude<Concern, 'meta'>, writing: ItemStamp): Item {
  switch (concern) {
    case 'head':
      return headItem(alias, writing);
    case 'index':
      return indexItem(alias, writing);
    case 'status':
      return statusItem(alias, writing.now);
    case 'config':
      return ledgerConfigItem(alias, writing.now);
  }
}

function commonAttributes(alias: Alias, concern: Concern, now: number): Item {
  return { ...itemKey(alias, concern), schema: SCHEMA, updated_at_ms: integer(now) };
}

function ledgerMeta(alias: Alias, now: number): Item {
  return {
    ...commonAttributes(alias, 'meta', now),
    kind: text('ledger'),
    name: text(alias.name),
    branch: text(alias.branch),
    retracted: booleanAttribute(false),
  };
}

const headItem = (alias: Alias, { now, style }: ItemStamp, pointer = UNBORN): Item => ({
  ...commonAttributes(alias, 'head', now),
  ...pointerAttributes('commit', style, pointer),
});

const indexItem = (alias: Alias, { now, style }: ItemStamp, pointer = UNBORN): Item => ({
  ...commonAttributes(alias, 'index', now),
  ...pointerAttributes('index', style, pointer),
});

/** The attributes of a pointer. An unborn pointer does not have an address attribute. */
function pointerAttributes(ref: 'commit' | 'index', style: PointerStyle, { address, t }: Pointer): Item {
  const names = pointerNames(ref, style);
  return { ...(address !== null && { [names.written]: text(address) }), [names.t]: integer(t) };
}

const statusItem = (alias: Alias, now: number): Item => ({
  ...commonAttributes(alias, 'status', now),
  status: text(INITIAL_STATUS.state),
  status_v: integer(INITIAL_STATUS.v),
});

const ledgerConfigItem = (alias: Alias, now: number): Item => ({
  ...commonAttributes(alias, 'config', now),
  config_v: integer(0),
});

/** The config of a graph source as JSON text. A string is JSON text already. */
export const configText = (config: Json): string => (typeof config === 'string' ? config : JSON.stringify(config));
