import type { Config, Item, Op } from '../engine/types.ts';
import { FAR, form } from '../line/kinds.ts';

// Every conditional write of docs/protocols/pools.md. `config.bugs` switches one rule off.

/** The record remembers this many released requests. */
const RING = 8;
const SLOTS = Array.from({ length: RING }, (_, slot) => `r${slot}`);
/** One write ends this many expired holders. */
export const MOST_ENDED = 2;
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
  /** lease id, version, holder, expiry, last beat, ttl, weight; of a grant from the line its ticket, and until its claim the ttl asked for */
  i: string;
  v: string;
  h: string;
  e: number;
  b: number;
  t: number;
  w: number;
  /** When it was granted. */
  a: number;
  k?: string;
  c?: number;
  /** When an operator marked it as ending. */
  s?: number;
}

export const holdersOf = (record: Item): Holder[] =>
  Object.entries(record)
    .filter(([attribute]) => attribute.startsWith('h:'))
    .map(([attribute, entry]) => ({ name: attribute.slice(2), fence: record[`f:${attribute.slice(2)}`], ...entry }));
export const holderOf = (record: Item, name: string): Holder | undefined =>
  holdersOf(record).find((one) => one.name === name);
export const weightOf = (holders: readonly Holder[]): number => holders.reduce((sum, { w }) => sum + w, 0);
export const entryOf = (record: Item, name: string): Item | undefined => record[`h:${name}`];

/** How the request's grant ended, where the record remembers it, or why it is ending. */
export function ending(record: Item, name: string): 'released' | 'broken' | undefined {
  if (entryOf(record, name)?.s !== undefined) return 'broken';
  const slot = SLOTS.findIndex((one) => record[one] === name);
  if (slot < 0) return undefined;
  return typeof record[`b${slot}`] === 'number' ? 'broken' : 'released';
}

/** Whether the record remembers that an operator broke the permit with the fence. */
export const isBroken = (record: Item, fence: number): boolean => SLOTS.some((_, slot) => record[`b${slot}`] === fence);

const ttlAt = (now: number, { bugs }: Config, ttl = 0): number => (bugs?.ttlOfWriter ? now + ttl : now + FAR);
const conjoined = (parts: readonly string[]): string => parts.map((part) => `(${part})`).join(' AND ');
const update = (key: string, op: Omit<Op, 'op' | 'key'>): Op => ({ op: 'update', key, ...op });

export interface Grant extends Asked {
  leaseId: string;
  version: string;
  /** Of a grant from the line. */
  ticket?: string;
  claimTtl?: number | undefined;
}

/** What becomes of the mark. Absent where the request was in no line. */
interface LineLeft {
  /** The mark before the line was read. */
  seen: number | undefined;
  others: boolean;
}

interface Granting {
  ended: readonly Holder[];
  line?: LineLeft | undefined;
  now: number;
  /** Of the pool that was seen. Undefined for a try before any look. */
  formed: number | undefined;
}

/** The try was composed in the time of this pool, and of no earlier one of the key. */
function formedBefore({ formed, line, now }: Granting, { bugs, skew }: Config): Pick<Marking, 'conditions' | 'values'> {
  if (bugs?.kindUnnamed) return { conditions: [], values: {} };
  const isKindEnough = formed === undefined ? bugs?.lateTry : line ? bugs?.lineUnformed : bugs?.lookUnformed;
  const kind = { conditions: ['lease_version = :pool'], values: { ':pool': 'pool' } };
  if (isKindEnough) return kind;
  return formed === undefined
    ? { conditions: ['formed < :cut'], values: { ':cut': now - (bugs?.noSkew || bugs?.cutNow ? 0 : skew) } }
    : { conditions: ['formed = :formed'], values: { ':formed': formed } };
}

/** pools.md#acquire, #take-over where `ended` is not empty, and #advance with what is left of the line. */
export function grant(permits: readonly Grant[], granting: Granting, config: Config): Op {
  const { ended, line, now } = granting;
  const bugs = config.bugs ?? {};
  const freed = weightOf(ended);
  const weight = permits.reduce((sum, one) => sum + one.weight, 0);
  const longest = Math.max(...permits.map(({ ttl }) => ttl));
  const names: Record<string, string> = {};
  const values: Item = { ':zero': 0, ':weight': weight - freed, ':ttl': ttlAt(now, config, longest) };
  values[':first'] = bugs.fenceRestarts ? 0 : now;
  const fence = 'if_not_exists(fence, :first)';
  const sets: string[] = [];
  const kind = formedBefore(granting, config);
  const conditions: string[] = [...kind.conditions];
  for (const [n, { name, leaseId, version, holder, ttl, weight: w, ticket, claimTtl }] of permits.entries()) {
    Object.assign(names, { [`#g${n}`]: `h:${name}`, [`#n${n}`]: `f:${name}` });
    const entry: Item = { i: leaseId, v: version, h: holder, e: now + ttl, b: now, t: ttl, w, a: now };
    if (ticket !== undefined) entry.k = ticket;
    if (claimTtl !== undefined) entry.c = claimTtl;
    Object.assign(values, { [`:g${n}`]: entry, [`:n${n}`]: n + 1 });
    sets.push(`#g${n} = :g${n}`, `#n${n} = ${fence} + :n${n}`);
    const isOwnEnded = ended.some((one) => one.name === name);
    if (!isOwnEnded && !bugs.repeatForgotten) conditions.push(`attribute_not_exists(#g${n})`);
    if (bugs.ringForgotten) continue;
    conditions.push(`NOT (:m${n} IN (${SLOTS.join(', ')}))`);
    values[`:m${n}`] = name;
  }
  sets.push(
    `fence = ${fence} + :n${permits.length - 1}`,
    'used = if_not_exists(used, :zero) + :weight',
    'lease_expiry = :ttl',
  );
  if (bugs.limitEquality) {
    conditions.push('attribute_not_exists(used) OR used <> :limit');
    values[':limit'] = permits[0]?.limit;
  } else if (!bugs.countIgnored) {
    conditions.push('attribute_not_exists(used) OR used <= :room');
    values[':room'] = tightest(permits) + freed;
  }
  const gone = removal(ended, permits);
  if (!bugs.evictUnguarded) {
    conditions.push(...gone.conditions);
    Object.assign(values, gone.values);
  }
  const mark = markAfter(line, config);
  return update(permits[0]?.key ?? '', {
    update: `SET ${[...sets, ...mark.set].join(', ')}${removing([...gone.removed, ...mark.remove])}`,
    condition:
      [...conditions, ...mark.conditions].length > 0 ? conjoined([...conditions, ...mark.conditions]) : undefined,
    names: { ...names, ...gone.names },
    values: { ...values, ...kind.values, ...mark.values },
  });
}

/** kinds.md#change, with the first permit of a key that has no record */
export function formWith({ key, name, leaseId, version, holder, ttl, weight }: Grant, now: number, config: Config): Op {
  const entry: Item = { i: leaseId, v: version, h: holder, e: now + ttl, b: now, t: ttl, w: weight, a: now };
  return form({ key }, { now, first: { name, entry } }, config);
}

/** Each comes in after those before it. */
function tightest(permits: readonly Grant[]): number {
  let [before, least] = [0, Number.POSITIVE_INFINITY];
  for (const { room, weight } of permits) {
    least = Math.min(least, room - before);
    before += weight;
  }
  return least;
}

/** The mark before the line was read, which is empty, and the pool that it was on. */
interface LineSeen {
  seen: number | undefined;
  formed: number;
}

interface Marking {
  set: string[];
  remove: string[];
  conditions: string[];
  values: Item;
}

/** No value of the mark comes twice. */
function raised({ bugs }: Config): Marking {
  const next = `if_not_exists(${bugs?.markRestarts ? 'waiters' : 'seq'}, :zero) + :one`;
  return { set: [`waiters = ${next}`, `seq = ${next}`], remove: [], conditions: [], values: { ':zero': 0, ':one': 1 } };
}

function markAfter(line: LineLeft | undefined, config: Config): Marking {
  const none = { set: [], remove: [], conditions: [], values: {} };
  if (!line) return config.bugs?.barging ? none : { ...none, conditions: ['attribute_not_exists(waiters)'] };
  return line.others ? raised(config) : { ...none, remove: ['waiters'], ...unchanged(line.seen, config) };
}

function unchanged(seen: number | undefined, { bugs }: Config): Pick<Marking, 'conditions' | 'values'> {
  if (bugs?.markUnguarded) return { conditions: [], values: {} };
  return seen === undefined
    ? { conditions: ['attribute_not_exists(waiters)'], values: {} }
    : { conditions: ['waiters = :waiters'], values: { ':waiters': seen } };
}

const removing = (names: readonly string[]): string => (names.length > 0 ? ` REMOVE ${names.join(', ')}` : '');

/** @param except those whose entries are written again */
function removal(ended: readonly Holder[], except: readonly { name: string }[] = []) {
  const names: Record<string, string> = {};
  const values: Item = {};
  const removed: string[] = [];
  for (const [n, { name, v }] of ended.entries()) {
    names[`#h${n}`] = `h:${name}`;
    values[`:v${n}`] = v;
    if (except.some((one) => one.name === name)) continue;
    names[`#f${n}`] = `f:${name}`;
    removed.push(`#h${n}`, `#f${n}`);
  }
  const conditions = Object.keys(values).map((_, n) => `#h${n}.v = :v${n}`);
  return { names, values, conditions, removed };
}

/**
 * pools.md#take-over, where more have expired than one write can end, and #advance where nobody comes in.
 */
export function end(
  key: string,
  { ended, unmark, now }: { ended: readonly Holder[]; unmark?: LineSeen; now: number },
  config: Config,
): Op {
  const { names, values, conditions, removed } = removal(ended);
  const mark = unmark && unchanged(unmark.seen, config);
  const all = [...(config.bugs?.endUnguarded ? ['lease_version = :pool'] : conditions), ...(mark?.conditions ?? [])];
  if (unmark && !config.bugs?.clearUnformed) {
    all.push('formed = :formed');
    values[':formed'] = unmark.formed;
  }
  return update(key, {
    update: `SET used = if_not_exists(used, :zero) - :freed, lease_expiry = :ttl${removing([...removed, ...(unmark ? ['waiters'] : [])])}`,
    condition: all.length > 0 ? conjoined(all) : undefined,
    names,
    values: {
      ...values,
      ...mark?.values,
      ':pool': 'pool',
      ':zero': 0,
      ':freed': weightOf(ended),
      ':ttl': ttlAt(now, config),
    },
  });
}

const isNewTo = (name: string) => ({
  condition: conjoined(['attribute_not_exists(#h)', `NOT (:name IN (${SLOTS.join(', ')}))`]),
  names: { '#h': `h:${name}` },
  values: { ':name': name },
});

/** pools.md#join: the ticket first, then this. A call that puts back a mark that is missing gives no name. */
export function mark(key: string, name: string | undefined, now: number, config: Config): Op {
  const { set, values } = raised(config);
  const own = name === undefined ? { condition: 'attribute_not_exists(waiters)' } : isNewTo(name);
  const kind = config.bugs?.markOfAnyKind ? [] : ['lease_version = :pool'];
  const guard = { ...own, condition: conjoined([...kind, own.condition]) };
  const given = 'values' in guard ? guard.values : {};
  return update(key, {
    update: `SET ${[...set, 'lease_expiry = :ttl'].join(', ')}`,
    ...guard,
    values: { ...values, ...given, ':pool': 'pool', ':ttl': ttlAt(now, config) },
  });
}

/** The mark of a task whose own permit is over, and still there. */
export function markBeside({ name, v }: Holder, key: string, now: number, config: Config): Op {
  const { set, values } = raised(config);
  return update(key, {
    update: `SET ${[...set, 'lease_expiry = :ttl'].join(', ')}`,
    condition: '#h.v = :seen',
    names: { '#h': `h:${name}` },
    values: { ...values, ':seen': v, ':ttl': ttlAt(now, config) },
  });
}

/** pools.md#claim with `claimTtl`. `ticket` names the task that is notified from now on. Without it, a whole ttl and a new version for a permit of which a task is notified again. */
export function extend(
  key: string,
  { name, v, t, e }: Holder,
  { version, claimTtl, now }: { version: string; claimTtl: number | undefined; now: number },
  config: Config,
): Op {
  const isClaim = claimTtl !== undefined;
  const ttl = claimTtl ?? t;
  const expires = Math.max(now + ttl, isClaim ? 0 : e);
  return update(key, {
    update:
      'SET #h.v = :version, #h.b = :beat, #h.e = :expires, lease_expiry = :ttl' +
      (isClaim ? ', #h.t = :own, #h.a = :now REMOVE #h.c' : ''),
    condition: '#h.v = :seen',
    names: { '#h': `h:${name}` },
    values: {
      ':version': version,
      ':beat': expires - ttl,
      ':expires': expires,
      ':ttl': ttlAt(now, config, ttl),
      ':seen': v,
      ...(isClaim && { ':own': ttl, ':now': now }),
    },
  });
}

export const rotate = (key: string, { name, v }: Holder, version: string): Op =>
  update(key, {
    update: 'SET #h.v = :version',
    condition: '#h.v = :seen',
    names: { '#h': `h:${name}` },
    values: { ':seen': v, ':version': version },
  });

/** What a caller receives to prove its permit by. */
export interface Proof {
  key: string;
  name: string;
  leaseId: string;
}

/** Each goes one slot on. */
const SHIFTED = SLOTS.slice(1).flatMap((_, slot) =>
  ['r', 'b'].map((part) => `${part}${slot + 1} = if_not_exists(${part}${slot}, :none)`),
);

/** pools.md#release, and #break */
export function giveBack({ key, name, leaseId }: Proof, broken: number | undefined, now: number, config: Config): Op {
  const anyones = config.bugs?.releaseUnguarded;
  return update(key, {
    update:
      `SET used = used - #h.w, ${SHIFTED.join(', ')}, r0 = :name, b0 = ${broken === undefined ? ':none' : ':fence'}, ` +
      'lease_expiry = :ttl REMOVE #h, #f',
    condition: anyones ? 'attribute_exists(#h)' : '#h.i = :id',
    names: { '#h': `h:${name}`, '#f': `f:${name}` },
    values: {
      ':name': name,
      ':none': '-',
      ':ttl': ttlAt(now, config),
      ...(!anyones && { ':id': leaseId }),
      ...(broken !== undefined && { ':fence': broken }),
    },
  });
}

/** pools.md#heartbeat */
export function heartbeat({ key, name, leaseId }: Proof, version: string, now: number, config: Config): Op {
  const later = config.bugs?.beatUnordered ? '' : ' AND #h.b < :now';
  const stays = config.bugs?.endingBeaten ? '' : ' AND attribute_not_exists(#h.s)';
  return update(key, {
    update: 'SET #h.v = :version, #h.b = :now, #h.e = :now + #h.t, lease_expiry = :ttl',
    condition: `#h.i = :id${later}${stays}`,
    names: { '#h': `h:${name}` },
    values: { ':version': version, ':now': now, ':ttl': ttlAt(now, config), ':id': leaseId },
  });
}

/** pools.md#break, with `wait`. The new version keeps calls from extending the permit that have read it before. */
export function markEnding({ key, name, leaseId }: Proof, version: string, now: number, config: Config): Op {
  return update(key, {
    update: `SET #h.s = :now, lease_expiry = :ttl${config.bugs?.endingKeepsVersion ? '' : ', #h.v = :version'}`,
    condition: '#h.i = :id AND attribute_not_exists(#h.s) AND attribute_not_exists(#h.c) AND #h.e >= :cut',
    names: { '#h': `h:${name}` },
    values: {
      ...{ ':id': leaseId, ':now': now, ':cut': now - config.skew, ':ttl': ttlAt(now, config) },
      ...(!config.bugs?.endingKeepsVersion && { ':version': version }),
    },
  });
}
