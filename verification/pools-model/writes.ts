import type { Config, Item, Op } from '../queue-model/types.ts';

// Every conditional write of docs/protocols/pools.md. `config.bugs` switches one rule off.

/** So many released requests are remembered. */
export const RING = 8;
const SLOTS = Array.from({ length: RING }, (_, slot) => `r${slot}`);
/** So many expired holders go in one write. */
export const MOST_ENDED = 2;
/** No permit lasts longer. */
const LONGEST_TTL = 40;
/** Weighs more than any limit allows beside it. */
export const EXCLUSIVE_WEIGHT = 1_000_000;

export interface Asked {
  key: string;
  /** Stands for holder, request id and principal. */
  name: string;
  holder: string;
  ttl: number;
  limit: number;
  weight: number;
  /** What may be in use already. */
  room: number;
}

export interface Holder {
  name: string;
  fence: number;
  /** lease id, version, holder, expiry, last beat, ttl, weight */
  i: string;
  v: string;
  h: string;
  e: number;
  b: number;
  t: number;
  w: number;
}

export const holdersOf = (record: Item): Holder[] =>
  Object.entries(record)
    .filter(([attribute]) => attribute.startsWith('h:'))
    .map(([attribute, entry]) => ({ name: attribute.slice(2), fence: record[`f:${attribute.slice(2)}`], ...entry }));
export const weightOf = (holders: readonly Holder[]): number => holders.reduce((sum, { w }) => sum + w, 0);
export const entryOf = (record: Item, name: string): Item | undefined => record[`h:${name}`];

/** How the request's grant ended, where the record remembers it. */
export function ending(record: Item, name: string): 'released' | 'broken' | undefined {
  const slot = SLOTS.findIndex((one) => record[one] === name);
  if (slot < 0) return undefined;
  return record[`b${slot}`] === undefined ? 'released' : 'broken';
}

const ttlAt = (now: number, { bugs, retention }: Config, ttl = 0): number =>
  bugs?.ttlOfWriter ? now + ttl : now + LONGEST_TTL + retention;
const conjoined = (parts: readonly string[]): string => parts.map((part) => `(${part})`).join(' AND ');
const update = (key: string, op: Omit<Op, 'op' | 'key'>): Op => ({ op: 'update', key, ...op });

export interface Grant extends Asked {
  leaseId: string;
  version: string;
}

/** pools.md#acquire, and #take-over where `ended` is not empty. */
export function grant(asked: Grant, ended: readonly Holder[], now: number, config: Config): Op {
  const { key, name, leaseId, version, holder, ttl, weight, room, limit } = asked;
  const bugs = config.bugs ?? {};
  const freed = weightOf(ended);
  const names: Record<string, string> = { '#h': `h:${name}`, '#f': `f:${name}` };
  const values: Item = { ':one': 1, ':zero': 0, ':weight': weight - freed, ':ttl': ttlAt(now, config, ttl) };
  values[':entry'] = { i: leaseId, v: version, h: holder, e: now + ttl, b: now, t: ttl, w: weight };
  values[':first'] = bugs.fenceRestarts ? 0 : now;
  const conditions: string[] = [];
  if (bugs.limitEquality) {
    conditions.push('attribute_not_exists(used) OR used <> :limit');
    values[':limit'] = limit;
  } else if (!bugs.countIgnored) {
    conditions.push('attribute_not_exists(used) OR used <= :room');
    values[':room'] = room + freed;
  }
  const isOwnEnded = ended.some((one) => one.name === name);
  if (!isOwnEnded && !bugs.repeatForgotten) conditions.push('attribute_not_exists(#h)');
  if (!bugs.ringForgotten) {
    conditions.push(`NOT (:name IN (${SLOTS.join(', ')}))`);
    values[':name'] = name;
  }
  const gone = removal(ended, name);
  if (!bugs.evictUnguarded) {
    conditions.push(...gone.conditions);
    Object.assign(values, gone.values);
  }
  const fence = 'if_not_exists(fence, :first) + :one';
  return update(key, {
    update:
      `SET #h = :entry, #f = ${fence}, fence = ${fence}, used = if_not_exists(used, :zero) + :weight, ttl_at = :ttl` +
      gone.remove,
    condition: conditions.length > 0 ? conjoined(conditions) : undefined,
    names: { ...names, ...gone.names },
    values,
  });
}

/** @param except whose entry is written anew */
function removal(ended: readonly Holder[], except?: string) {
  const names: Record<string, string> = {};
  const values: Item = {};
  const removed: string[] = [];
  for (const [n, { name, v }] of ended.entries()) {
    names[`#h${n}`] = `h:${name}`;
    values[`:v${n}`] = v;
    if (name === except) continue;
    names[`#f${n}`] = `f:${name}`;
    removed.push(`#h${n}`, `#f${n}`);
  }
  const conditions = Object.keys(values).map((_, n) => `#h${n}.v = :v${n}`);
  return { names, values, conditions, remove: removed.length > 0 ? ` REMOVE ${removed.join(', ')}` : '' };
}

/** pools.md#take-over, where more have expired than one write can end. */
export function end(key: string, ended: readonly Holder[], now: number, config: Config): Op {
  const { names, values, conditions, remove } = removal(ended);
  return update(key, {
    update: `SET used = used - :freed, ttl_at = :ttl${remove}`,
    condition: conjoined(conditions),
    names,
    values: { ...values, ':freed': weightOf(ended), ':ttl': ttlAt(now, config) },
  });
}

/** What a caller is given to prove its permit by. */
export interface Proof {
  key: string;
  name: string;
  leaseId: string;
  slot: number;
}

/** pools.md#release, and #break */
export function giveBack(
  { key, name, leaseId, slot }: Proof,
  broken: number | undefined,
  now: number,
  config: Config,
): Op {
  const mark = broken === undefined ? '' : ', #b = :fence';
  const unmark = broken === undefined ? ', #b' : '';
  const anyones = config.bugs?.releaseUnguarded;
  return update(key, {
    update: `SET used = used - #h.w, #r = :name, ttl_at = :ttl${mark} REMOVE #h, #f${unmark}`,
    condition: anyones ? 'attribute_exists(#h)' : '#h.i = :id',
    names: { '#h': `h:${name}`, '#f': `f:${name}`, '#r': `r${slot}`, '#b': `b${slot}` },
    values: {
      ':name': name,
      ':ttl': ttlAt(now, config),
      ...(!anyones && { ':id': leaseId }),
      ...(broken !== undefined && { ':fence': broken }),
    },
  });
}

/** pools.md#heartbeat */
export function heartbeat({ key, name, leaseId }: Proof, version: string, now: number, config: Config): Op {
  const later = config.bugs?.beatUnordered ? '' : ' AND #h.b < :now';
  return update(key, {
    update: 'SET #h.v = :version, #h.b = :now, #h.e = :now + #h.t, ttl_at = :ttl',
    condition: `#h.i = :id${later}`,
    names: { '#h': `h:${name}` },
    values: { ':version': version, ':now': now, ':ttl': ttlAt(now, config), ':id': leaseId },
  });
}
