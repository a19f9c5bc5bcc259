import { NOW, repairLater, write } from '../engine/common.ts';
import { deleteOverdue, deleteRow, isCall } from '../engine/rows.ts';
import type { Config, Item, Op, Steps } from '../engine/types.ts';
import { isLease, wantsPermit } from '../line/kinds.ts';
import { weightInUse } from './common.ts';
import * as w from './writes.ts';

/** One write grants this many permits. */
const BATCH = 2;

/** A permit that is to end. The task of an `expired` one may never have been notified. The task of an `undelivered` one was gone. */
interface Going extends w.Holder {
  how: 'expired' | 'undelivered';
}

export interface Advanced {
  granted: string[];
  /** `gone`: the key is a lease. */
  end: 'empty' | 'waits' | 'gone';
  standing: Item;
}

interface Line {
  /** The rows that the next write grants permits. */
  heads: Item[];
  others: boolean;
  isFull: boolean;
  taskWaits: boolean;
}

/** The rows of a line by one query, the oldest first, and what the record was before it. */
interface Reading {
  rows: Item[];
  readAt: number;
  mark: string | undefined;
  fence: number | undefined;
  /** How many permits this call itself has ended that were granted since. */
  ended: number;
}

function* read(key: string, { mark, fence }: Item): Steps<Reading> {
  return { rows: yield { op: 'query', key }, readAt: yield NOW, mark, fence, ended: 0 };
}

const isLater = (reading: Reading, holder: w.Holder): boolean =>
  reading.fence === undefined || holder.fence > reading.fence;

/** Whether its rows still wait, but for those whose permits the record shows. */
function isTrueOf(reading: Reading, record: Item, now: number, config: Config): boolean {
  if (now > reading.readAt) return false;
  if (config.bugs?.rowsTrusted) return true;
  if (record.fence === undefined || reading.fence === undefined) return record.fence === reading.fence;
  const later = w.holdersOf(record).filter((holder) => isLater(reading, holder));
  return later.length + reading.ended === record.fence - reading.fence;
}

/** Whether nobody has come since. */
const isWholeFor = (reading: Reading, { mark }: Item, { bugs }: Config): boolean =>
  mark === reading.mark || bugs?.staleLook === true;

/** A write of this call has ended permits. */
function wrote(reading: Reading, ended: readonly w.Holder[], { bugs }: Config): void {
  if (!bugs?.endedUncounted) reading.ended += ended.filter((holder) => isLater(reading, holder)).length;
}

/** pools.md#hand-off */
export function* advance(key: string, record: Item, config: Config): Steps<Advanced> {
  const granted: string[] = [];
  if (isLease(record)) return { granted, end: 'gone', standing: record };
  let standing = record;
  let going: Going[] = [];
  let reading = yield* read(key, record);
  for (;;) {
    if (!isTrueOf(reading, standing, yield NOW, config)) reading = yield* read(key, standing);
    going = withExpired(standing, going, (yield NOW) - (config.bugs?.noSkew ? 0 : config.skew));
    const line = yield* look(key, { record: standing, going, granted, reading }, config);
    if (!isWholeFor(reading, standing, config)) {
      line.others = true;
      if (line.heads.length === 0) {
        reading = yield* read(key, standing);
        continue;
      }
    }
    const needed = line.others || line.heads.length > 0 ? going : going.filter(({ how }) => how !== 'expired');
    const clears = line.heads.length === 0 && !line.others;
    if (line.heads.length === 0 && needed.length === 0 && (!clears || standing.mark === undefined))
      return { granted, end: clears ? 'empty' : 'waits', standing };
    const now: number = yield NOW;
    const permits = line.heads.map((row) => permitOf(row, config));
    const op =
      permits.length > 0
        ? w.grant(permits, { ended: needed, line: { seen: standing, others: line.others }, now }, config)
        : w.end(key, { ended: needed, unmark: clears ? standing : undefined }, config);
    const written = yield* write(op);
    standing = written.standing;
    if (isLease(standing)) return { granted, end: 'gone', standing };
    // A try of the SDK's own may have landed before the one that lost.
    const isOurs = permits.some(({ name, leaseId }) => w.entryOf(standing, name)?.i === leaseId);
    const won = written.won || (isOurs && !config.bugs?.ownUnseen);
    going = won ? [] : going.filter(({ name, v }) => w.entryOf(standing, name)?.v === v);
    if (!won) continue;
    if (clears) return { granted, end: 'empty', standing };
    wrote(reading, needed, config);
    granted.push(...line.heads.map(({ ticket }) => ticket));
    if (line.taskWaits && line.heads.some(isCall)) yield repairLater(key, config);
    going = yield* tellAll(key, line.heads, standing, config);
    if (going.length > 0) continue;
    if (!line.others) return { granted, end: 'empty', standing };
    // A call that has ended anything looks again: another may have joined before that, and found no room.
    if (line.isFull && (needed.length === 0 || config.bugs?.noLookAfterEnd)) return { granted, end: 'waits', standing };
  }
}

/** Those whose time is over make room for the line. */
function withExpired(record: Item, going: readonly Going[], cut: number): Going[] {
  const expired = w.holdersOf(record).filter(({ name, e }) => e < cut && !going.some((one) => one.name === name));
  return [...going, ...expired.slice(0, w.MOST_ENDED).map((one): Going => ({ ...one, how: 'expired' }))];
}

/** A caller is granted the window alone, until it claims its permit. */
function permitOf({ key, name, holder, ttl, limit, weight, room, ticket, token }: Item, config: Config): w.Grant {
  const asked = { key, name, holder, limit, weight, room, ticket, leaseId: config.uuid(), version: config.uuid() };
  const isWhole = token !== undefined || config.bugs?.noWindow;
  return isWhole ? { ...asked, ttl } : { ...asked, ttl: config.window, claimTtl: ttl };
}

interface Look {
  record: Item;
  going: readonly Going[];
  /** Tickets that this call has granted permits. */
  granted: readonly string[];
  reading: Reading;
}

function* look(key: string, { reading, ...seen }: Look, config: Config): Steps<Line> {
  const line: Line = { heads: [], others: false, isFull: false, taskWaits: false };
  let used = weightInUse(seen.record, yield NOW, config) - w.weightOf(seen.going);
  for (const row of reading.rows.filter(wantsPermit)) {
    const place = isCall(row) ? yield* judgeCall(row, seen, config) : yield* judgeTask(key, row, seen, config);
    if (place === 'undecided') line.others = true;
    if (place === 'gone') reading.rows = reading.rows.filter((one) => one !== row);
    if (place !== 'waits') continue;
    if (line.heads.some(({ name }) => name === row.name)) {
      line.taskWaits ||= !isCall(row);
      line.others ||= config.bugs?.secondBlocks === true;
      continue;
    }
    line.isFull = used > row.room;
    if (line.isFull && config.bugs?.headPassed) {
      line.others = true;
      continue;
    }
    if (line.isFull || line.heads.length === BATCH)
      return { ...line, others: true, taskWaits: line.taskWaits || !isCall(row) };
    line.heads.push(row);
    used += row.weight;
  }
  return line;
}

/** `gone`: its row was deleted. */
type Place = 'waits' | 'passed' | 'gone' | 'undecided';
type Seen = Omit<Look, 'reading'>;

/** A task that is granted nothing now needs no mark: the schedule finds its row. */
function* judgeTask(key: string, row: Item, { record, going, granted }: Seen, config: Config): Steps<Place> {
  const { bugs } = config;
  if (granted.includes(row.ticket)) return 'passed';
  const entry = w.entryOf(record, row.name);
  const gone = going.find(({ name }) => name === row.name);
  if (entry && !gone && entry.k === row.ticket) return 'passed';
  if (entry && !gone && bugs?.secondBlocks) return 'undecided';
  if (gone?.how === 'undelivered' && gone.k === row.ticket) return 'passed';
  const isEnded = !gone && w.ending(record, row.name) !== undefined;
  const own = gone || isEnded ? undefined : w.holderOf(record, row.name);
  if (own) return yield* repeat(key, row, own, config);
  if (!isEnded && row.deadline > (yield NOW)) return 'waits';
  if (yield* endTask(key, row, isEnded ? 'LeaseLost' : 'LeaseHeld')) return 'gone';
  return bugs?.overdueKeepsMark ? 'undecided' : 'passed';
}

/** The request has a permit by another row, or by a plain call. */
function* repeat(key: string, row: Item, own: w.Holder, config: Config): Steps<Place> {
  if (own.c !== undefined || own.w !== row.weight || own.e <= (yield NOW)) return 'passed';
  const { outcome } = yield* tellGrant(key, row, own, { repeated: true, isOurs: false }, config);
  if (outcome === 'overtaken') return 'undecided';
  if (outcome === 'unanswered') return 'passed';
  yield deleteRow(key, row.ticket);
  return 'gone';
}

/** Without an answer its row stays, or the task might wait without end. */
export function* endTask(key: string, row: Item, error: string): Steps<boolean> {
  if ((yield { op: 'tell', token: row.token, ticket: row.ticket, error, key }) === 'unanswered') return false;
  yield deleteRow(key, row.ticket);
  return true;
}

function* judgeCall(row: Item, { record, going, granted }: Seen, config: Config): Steps<Place> {
  const now: number = yield NOW;
  if (granted.includes(row.ticket)) return 'passed';
  if (row.keep_until <= now) {
    yield deleteOverdue(row, config);
    return 'gone';
  }
  const isGone = row.cancelled_at !== undefined || row.deadline <= now;
  if (isGone && !config.bugs?.absentGranted) return 'passed';
  const gone = going.find(({ name }) => name === row.name);
  if (gone?.k === row.ticket && !config.bugs?.unclaimedKeepsPlace) {
    yield deleteRow(row.key, row.ticket);
    return 'gone';
  }
  const entry = gone ? undefined : w.entryOf(record, row.name);
  if (entry && entry.k !== row.ticket && config.bugs?.secondBlocks) return 'undecided';
  if (!gone && entry?.k !== row.ticket && w.ending(record, row.name)) {
    yield deleteRow(row.key, row.ticket);
    return 'gone';
  }
  return entry ? 'passed' : 'waits';
}

/** @returns those whose tasks were gone, and which no call has notified before */
function* tellAll(key: string, heads: readonly Item[], record: Item, config: Config): Steps<Going[]> {
  const undelivered: Going[] = [];
  for (const row of heads) {
    const own = w.holderOf(record, row.name);
    if (isCall(row) || !own || own.k !== row.ticket || own.e <= (yield NOW)) continue;
    const told = yield* tellGrant(key, row, own, { repeated: false, isOurs: true }, config);
    if (told.outcome === 'delivered' || told.outcome === 'gone') yield deleteRow(key, row.ticket);
    if (told.outcome === 'gone') undelivered.push({ ...told.holder, how: 'undelivered' });
  }
  return undelivered;
}

interface Told {
  outcome: 'delivered' | 'gone' | 'unanswered' | 'overtaken';
  holder: w.Holder;
}

/** A task receives its permit with the whole ttl. A permit that another call granted gets a new version first, so that this call cannot hand it on. */
export function* tellGrant(
  key: string,
  row: Item,
  holder: w.Holder,
  { repeated, isOurs }: { repeated: boolean; isOurs: boolean },
  config: Config,
): Steps<Told> {
  let standing = holder;
  let isKnown = isOurs;
  for (let tries = 0; ; tries++) {
    const now: number = yield NOW;
    if (isKnown && standing.e - now >= standing.t - config.fresh) break;
    if (tries === 3) return { outcome: 'overtaken', holder: standing };
    const version = config.uuid();
    const written = yield* write(w.extend(key, standing, { version, claimTtl: undefined, now }, config));
    const next = w.holderOf(written.standing, row.name);
    if (!next || next.v !== version) return { outcome: 'overtaken', holder: standing };
    standing = next;
    isKnown = true;
  }
  const now: number = yield NOW;
  const proof = { key, name: standing.name, leaseId: standing.i };
  const grant = {
    leaseId: standing.i,
    fence: standing.fence,
    remaining: Math.max(0, standing.e - now),
    repeated,
    proof,
    waited: standing.a - row.parked_at,
  };
  const outcome = yield { op: 'tell', token: row.token, key, grant, whole: standing.t } satisfies Op;
  return { outcome, holder: standing };
}
