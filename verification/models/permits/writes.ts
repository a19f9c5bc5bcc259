import type { Config, Item, Op } from '../engine/types.ts';
import { FAR, IS_NO_LEASE, isStillFree, latestFence, leftovers, OURS } from '../line/kinds.ts';

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
  /** The record before the line was read. */
  seen: Item;
  others: boolean;
}

interface Granting {
  ended: readonly Holder[];
  line?: LineLeft | undefined;
  now: number;
  /** As a call outside the line has seen the record. Undefined for a try before any look. */
  seen?: Item | undefined;
  /** The lease that no caller has, and which the permit replaces. */
  over?: Item | undefined;
}

type Guard = Pick<Marking, 'conditions' | 'values'>;
const NO_GUARD: Guard = { conditions: [], values: {} };

export const isThirdParty = ({ used, lease_version }: Item): boolean =>
  used === undefined && lease_version !== undefined;

const unused = ({ bugs }: Config): string =>
  bugs?.kindUnnamed ? 'attribute_not_exists(used)' : `attribute_not_exists(used) AND ${IS_NO_LEASE}`;
const IS_UNVERSIONED = 'attribute_not_exists(lease_version)';

/** There is room, or only a mark, or a third-party client whose lease is over. */
function hasRoom(room: number, now: number, config: Config): Guard {
  const bugs = config.bugs ?? {};
  const cut = now - (bugs.noSkew ? 0 : config.skew);
  const over = bugs.thirdPartyUnseen ? '' : ` AND (${IS_UNVERSIONED} OR lease_expiry < :cutSeconds)`;
  return {
    conditions: [`used <= :room OR (${unused(config)}${over})`],
    values: { ':room': room, ':cutSeconds': Math.floor(cut / config.second) },
  };
}

/** There is room, and no grant has come since the record was seen. */
function hasRoomAsSeen(seen: Item, room: number, config: Config): Guard {
  const bugs = config.bugs ?? {};
  const { fence, used, lease_version: theirs } = seen;
  const same = fence === undefined ? 'attribute_not_exists(fence)' : 'fence = :seenFence';
  const theirsAsSeen = theirs === undefined ? IS_UNVERSIONED : 'lease_version = :theirs';
  return {
    conditions: [
      ...(bugs.fenceUnseen ? [] : [same]),
      ...(used !== undefined ? ['used <= :room'] : [unused(config), ...(bugs.thirdPartyUnseen ? [] : [theirsAsSeen])]),
    ],
    values: {
      ...(used !== undefined ? { ':room': room } : { ':theirs': theirs }),
      ':seenFence': fence,
    },
  };
}

function roomFor(room: number, { line, over, now }: Granting, config: Config): Guard {
  if (line) return hasRoomAsSeen(line.seen, room, config);
  if (!over) return hasRoom(room, now, config);
  const { condition, values } = isStillFree(over, config);
  return { conditions: condition ? [condition] : [], values };
}

/** The fence of a key that has been a lease in the meantime is higher. The line names the fence that it saw. */
function isFenceBelow({ line, over, seen, now }: Granting, config: Config): Guard {
  if (line || config.bugs?.lateTry) return NO_GUARD;
  const most = latestFence((over ?? seen)?.fence, now, config);
  return { conditions: ['attribute_not_exists(fence) OR fence < :most'], values: { ':most': most } };
}

/** pools.md#acquire, #take-over where `ended` is not empty, and #hand-off with what is left of the line. */
export function grant(permits: readonly Grant[], granting: Granting, config: Config): Op {
  const { ended, line, over, now } = granting;
  const bugs = config.bugs ?? {};
  const freed = weightOf(ended);
  const weight = permits.reduce((sum, one) => sum + one.weight, 0);
  const longest = Math.max(...permits.map(({ ttl }) => ttl));
  const names: Record<string, string> = {};
  const values: Item = { ':zero': 0, ':weight': weight - freed, ':ttl': ttlAt(now, config, longest), ':ours': OURS };
  values[':first'] = bugs.fenceRestarts ? 0 : now - 1;
  const fence = 'if_not_exists(fence, :first)';
  const sets: string[] = [];
  const below = isFenceBelow(granting, config);
  const conditions: string[] = [...below.conditions];
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
    'lease_version = :ours',
    'lease_expiry = :ttl',
  );
  let room = NO_GUARD;
  if (bugs.limitEquality) {
    conditions.push('attribute_not_exists(used) OR used <> :limit');
    values[':limit'] = permits[0]?.limit;
  } else if (!bugs.countIgnored) room = roomFor(tightest(permits) + freed, granting, config);
  const gone = removal(ended, permits);
  if (!bugs.evictUnguarded) {
    conditions.push(...gone.conditions);
    Object.assign(values, gone.values);
  }
  const mark = markAfter(line, config);
  const guard = [...conditions, ...room.conditions, ...mark.conditions];
  return update(permits[0]?.key ?? '', {
    update: `SET ${[...sets, ...mark.set].join(', ')}${removing([...gone.removed, ...mark.remove, ...leftovers(over ?? {})])}`,
    condition: guard.length > 0 ? conjoined(guard) : undefined,
    names: { ...names, ...gone.names },
    values: { ...values, ...below.values, ...room.values, ...mark.values },
  });
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

interface Marking {
  set: string[];
  remove: string[];
  conditions: string[];
  values: Item;
}

/** The value is new with each arrival, beside their count. */
function marking({ bugs, uuid }: Config): Pick<Marking, 'set' | 'values'> {
  const count = 'if_not_exists(arrivals, :zero) + :one';
  const value = bugs?.markCounts ? count : bugs?.markStays ? 'if_not_exists(mark, :mark)' : ':mark';
  return { set: [`mark = ${value}`, `arrivals = ${count}`], values: { ':mark': uuid(), ':zero': 0, ':one': 1 } };
}

/** A mark that a third-party client or TTL has removed is put back. */
function keptMark({ mark }: Item, { uuid }: Config): Marking {
  const none = { set: [], remove: [], conditions: [], values: {} };
  return mark === undefined
    ? { ...none, set: ['mark = if_not_exists(mark, :mark)'], values: { ':mark': uuid() } }
    : none;
}

const MARK = ['mark', 'arrivals'];

function markAfter(line: LineLeft | undefined, config: Config): Marking {
  const none = { set: [], remove: [], conditions: [], values: {} };
  if (!line) return config.bugs?.barging ? none : { ...none, conditions: ['attribute_not_exists(mark)'] };
  return line.others ? keptMark(line.seen, config) : { ...none, remove: MARK, ...markUnchanged(line.seen, config) };
}

function markUnchanged({ mark }: Item, { bugs }: Config): Guard {
  if (bugs?.markUnguarded) return NO_GUARD;
  return mark === undefined
    ? { conditions: ['attribute_not_exists(mark)'], values: {} }
    : { conditions: ['mark = :seenMark'], values: { ':seenMark': mark } };
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
 * pools.md#take-over, where more have expired than one write can end, and #hand-off where nobody comes in.
 * @param unmark the record before the line was read, which is empty
 */
export function end(
  key: string,
  { ended, unmark }: { ended: readonly Holder[]; unmark?: Item | undefined },
  config: Config,
): Op {
  const { names, values, conditions, removed } = removal(ended);
  const mark = unmark && markUnchanged(unmark, config);
  const isEnding = ended.length > 0;
  const all = [
    ...(isEnding ? ['attribute_exists(used)', ...(config.bugs?.endUnguarded ? [] : conditions)] : []),
    ...(mark?.conditions ?? []),
  ];
  const set = isEnding ? 'SET used = used - :freed' : '';
  return update(key, {
    update: `${set}${removing([...removed, ...(unmark ? MARK : [])])}`,
    condition: all.length > 0 ? conjoined(all) : undefined,
    names,
    values: { ...values, ...mark?.values, ':freed': weightOf(ended) },
  });
}

const isNewTo = (name: string) => ({
  condition: conjoined(['attribute_not_exists(#h)', `NOT (:name IN (${SLOTS.join(', ')}))`]),
  names: { '#h': `h:${name}` },
  values: { ':name': name },
});

/** pools.md#join: the ticket first, then this. A call that puts back a mark that is missing gives no name. */
export function mark(key: string, name: string | undefined, now: number, config: Config): Op {
  return marked(key, name === undefined ? { condition: 'attribute_not_exists(mark)' } : isNewTo(name), now, config);
}

/** The mark of a task whose own permit is over, and still there. */
export const markBeside = ({ name, v }: Holder, key: string, now: number, config: Config): Op =>
  marked(key, { condition: '#h.v = :seen', names: { '#h': `h:${name}` }, values: { ':seen': v } }, now, config);

/** It needs no record, and leaves the expiry of a third-party client alone. */
function marked(
  key: string,
  guard: { condition: string; names?: Record<string, string>; values?: Item },
  now: number,
  config: Config,
): Op {
  const { set, values } = marking(config);
  const kind = config.bugs?.markOfAnyKind ? [] : [IS_NO_LEASE];
  return update(key, {
    update: `SET ${[...set, 'lease_expiry = if_not_exists(lease_expiry, :retention)'].join(', ')}`,
    ...guard,
    condition: conjoined([...kind, guard.condition]),
    values: { ...values, ...guard.values, ':retention': now + config.retention },
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
