import { lost, NOW, ticketName, type Written, write } from '../engine/common.ts';
import { deleteOverdue, deleteRow, isCall } from '../engine/rows.ts';
import { type Config, type Item, Refused, type Self, type Steps } from '../engine/types.ts';
import { changeKind, leaveLine } from '../keys/change.ts';
import * as line from '../line/claim.ts';
import { isLease, wantsPermit } from '../line/kinds.ts';
import type { Lock } from '../line/lock.ts';
import { type Answer, answerOf, toEnd } from './common.ts';
import { endUnnotified, giveUp } from './ends.ts';
import { advance, endTask, tellGrant } from './line.ts';
import * as w from './writes.ts';

const rowOf = (asked: w.Asked, now: number, deadline: number, config: Config): Item => ({
  ...asked,
  ticket: ticketName(now, config.uuid()),
  request_id: asked.name,
  parked_at: now,
  deadline,
});

/** A call that waits in line (pools.md#wait). */
interface Waiting {
  asked: w.Asked;
  ticket: string;
  until: number;
  record: Item;
  checkedAt: number;
  seenRoomAt: number | undefined;
  isGone: boolean;
}

/** @returns undefined where the record is a lease, so that the call has left the line. @throws Refused LeaseHeld with the ticket, LeaseLost */
export function* waitInLine(
  asked: w.Asked,
  { arrivedAt, until, before }: { arrivedAt: number; until: number; before: string | undefined },
  config: Config,
  self: Self,
): Steps<Answer | undefined> {
  const waiting = yield* join({ asked, until, before }, config, self);
  for (;;) {
    const own = yield* ownGrant(waiting, config);
    if (own) return { ...own, waited: own.waited - arrivedAt };
    if (isLease(waiting.record)) {
      yield* leaveLine({ key: asked.key, ticket: waiting.ticket }, config);
      return undefined;
    }
    const now: number = yield NOW;
    if (now < until && !waiting.isGone) {
      if (!(yield* markOrAdvance(waiting, now, config))) yield* pauseAndLook(waiting, config);
      continue;
    }
    const last = yield* leave(waiting, config);
    return { ...last, waited: last.waited - arrivedAt };
  }
}

interface Joining {
  asked: w.Asked;
  until: number;
  before: string | undefined;
}

/** pools.md#join: the ticket first, then the mark. */
function* join({ asked, until, before }: Joining, config: Config, self: Self): Steps<Waiting> {
  const { key, name } = asked;
  const now: number = yield NOW;
  let ticket = before;
  if (ticket !== undefined) {
    const times = { ':deadline': until, ':keep': until + config.keep, ':name': name };
    const set = 'SET deadline = :deadline, keep_until = :keep';
    const condition = 'name = :name AND attribute_not_exists(cancelled_at)';
    const { won, old } = yield { op: 'updateRow', key, ticket, update: set, condition, values: times };
    if (!won && old?.cancelled_at !== undefined) throw lost('cancelled');
    if (!won) ticket = undefined;
  }
  const raise = function* () {
    return yield* write(w.mark(key, name, yield NOW, config));
  };
  let early: Written | undefined;
  if (ticket === undefined) {
    const item: Item = { ...rowOf(asked, now, until, config), keep_until: until + config.keep };
    ticket = item.ticket as string;
    if (config.bugs?.markFirst) early = yield* raise();
    yield { op: 'putRow', key, item };
  }
  self.row = ticket;
  const { won, standing }: Written = early ?? (yield* raise());
  if (won) self.joined?.();
  const waiting = {
    asked,
    ticket,
    until,
    record: standing,
    checkedAt: yield NOW,
    seenRoomAt: undefined,
    isGone: false,
  };
  // A permit may have ended before the mark was there.
  if (won && !config.bugs?.noLookAfterMark && toEnd(standing, asked, yield NOW, config))
    waiting.record = (yield* advance(key, standing, config)).standing;
  return waiting;
}

/** A call that ends in line passes on what is free. */
function* handOn(asked: w.Asked, record: Item, config: Config): Steps<void> {
  const isFree = !isLease(record) && record.mark !== undefined && toEnd(record, asked, yield NOW, config) !== undefined;
  if (isFree && !config.bugs?.lostSilently) yield* advance(asked.key, record, config);
}

/** @throws Refused LeaseLost where its permit has ended, or it was withdrawn */
function* ownGrant({ asked, ticket, record }: Waiting, config: Config): Steps<Answer | undefined> {
  const own = w.holderOf(record, asked.name);
  if (own && own.s === undefined) return yield* claim(asked, record, ticket, config);
  const how = w.ending(record, asked.name);
  if (!how) return undefined;
  const { old } = yield deleteRow(asked.key, ticket);
  yield* handOn(asked, record, config);
  throw lost(old?.cancelled_at === undefined ? how : 'cancelled');
}

/** The permits of a pool, as one request sees them. A full permit gets a new version, and no more time. */
const lockOf = (asked: w.Asked, config: Config): Lock => ({
  key: asked.key,
  own(record) {
    const own = w.holderOf(record, asked.name);
    if (!own || own.s !== undefined) return undefined;
    return { version: own.v, ticket: own.k, claimTtl: own.c, expiresAt: own.e, ttl: own.t };
  },
  renewal(record, version, now) {
    const own = w.holderOf(record, asked.name) as w.Holder;
    return w.extend(asked.key, own, { version, claimTtl: own.c, now }, config);
  },
  *repeat(record) {
    const own = w.holderOf(record, asked.name) as w.Holder;
    if (own.e <= (yield NOW)) return undefined;
    const version = config.uuid();
    const { standing } = yield* write(w.rotate(asked.key, own, version));
    return w.holderOf(standing, asked.name)?.v === version ? standing : undefined;
  },
  *giveUp(record) {
    yield* giveUp({ key: asked.key, name: asked.name, leaseId: w.entryOf(record, asked.name)?.i }, config);
  },
});

/** pools.md#claim: the request has a permit from the line. @returns undefined where the permit has changed or ended meanwhile */
export function* claim(
  asked: w.Asked,
  record: Item,
  ticket: string | undefined,
  config: Config,
): Steps<Answer | undefined> {
  const claimed = yield* line.claim(lockOf(asked, config), { record }, ticket, config);
  if (!claimed) return undefined;
  const { repeated, triedAt } = claimed;
  return { ...answerOf(claimed.record, asked, triedAt, repeated), waited: triedAt, claimed: !repeated };
}

/** @returns whether what is seen now must be judged at once */
function* markOrAdvance(waiting: Waiting, now: number, config: Config): Steps<boolean> {
  const { asked, record } = waiting;
  const { key, name } = asked;
  if (record.mark === undefined) {
    if (config.bugs?.unmarkedUnseen) return false;
    // The line was seen empty, so perhaps its own place is gone.
    yield* checkRow(waiting, config);
    if (waiting.isGone || w.entryOf(waiting.record, name)) return true;
    if (waiting.record.mark !== undefined) return false;
    waiting.record = (yield* write(w.mark(key, undefined, yield NOW, config))).standing;
    return true;
  }
  if (!toEnd(record, asked, now, config)) {
    waiting.seenRoomAt = undefined;
    return false;
  }
  waiting.seenRoomAt ??= now;
  if (now - waiting.seenRoomAt < config.patience) return false;
  waiting.seenRoomAt = undefined;
  waiting.record = (yield* advance(key, record, config)).standing;
  return w.entryOf(waiting.record, name) !== undefined;
}

function* pauseAndLook(waiting: Waiting, config: Config): Steps<void> {
  const { asked, until } = waiting;
  const now: number = yield NOW;
  yield { op: 'sleep', ms: Math.max(1, Math.min(config.lookNext, until - now)) };
  if ((yield NOW) - waiting.checkedAt >= config.rowEvery) return yield* checkRow(waiting, config);
  waiting.record = { key: asked.key, ...((yield { op: 'look', key: asked.key }) as Item) };
}

/** Its window has gone by, or it was withdrawn, or it is about to be answered by its grant. */
function* checkRow(waiting: Waiting, config: Config): Steps<void> {
  const { asked, ticket } = waiting;
  waiting.checkedAt = yield NOW;
  const row: Item | undefined = yield { op: 'getRow', key: asked.key, ticket };
  waiting.record = { key: asked.key, ...((yield { op: 'get', key: asked.key }) as Item) };
  if (row && row.cancelled_at === undefined) return;
  if (w.entryOf(waiting.record, asked.name)) return;
  if (row) {
    yield deleteRow(asked.key, ticket);
    yield* handOn(asked, waiting.record, config);
    throw lost('cancelled');
  }
  waiting.isGone = w.ending(waiting.record, asked.name) === undefined;
}

function* leave(waiting: Waiting, config: Config): Steps<Answer> {
  const { asked, ticket } = waiting;
  yield* checkRow(waiting, config);
  const { record } = waiting;
  if (!isLease(record) && record.mark !== undefined && !w.entryOf(record, asked.name) && !config.bugs?.leavesSilently)
    waiting.record = (yield* advance(asked.key, record, config)).standing;
  const own = yield* ownGrant(waiting, config);
  if (own) return own;
  throw new Refused('LeaseHeld', waiting.isGone ? {} : { ticket });
}

/** pools.md#join, of a task. */
export function* park(
  asked: w.Asked,
  { token, parkMs }: { token: string; parkMs: number },
  config: Config,
  self: Self = {},
): Steps<void> {
  const { key, name } = asked;
  const now: number = yield NOW;
  const row: Item = { ...rowOf(asked, now, now + parkMs, config), token };
  const raise = function* (beside?: w.Holder) {
    const now: number = yield NOW;
    return yield* write(beside ? w.markBeside(beside, key, now, config) : w.mark(key, name, now, config));
  };
  let early: Written | undefined;
  if (config.bugs?.markFirst) early = yield* raise();
  yield { op: 'putRow', key, item: row };
  self.row = row.ticket;
  let beside: w.Holder | undefined;
  for (;;) {
    const { won, standing }: Written = early ?? (yield* raise(beside));
    early = undefined;
    const own = w.holderOf(standing, name);
    if (own?.k === row.ticket) return;
    if (!won && isLease(standing)) {
      yield* leaveLine({ key, ticket: row.ticket }, config);
      yield* changeKind(key, standing, config);
      return yield* park(asked, { token, parkMs }, config, self);
    }
    if (won) {
      self.joined?.();
      if (config.bugs?.noLookAfterMark || !toEnd(standing, asked, yield NOW, config)) return;
      if ((yield* advance(key, standing, config)).end === 'gone') continue;
      return;
    }
    if (!own || own.s !== undefined) {
      yield* endTask(key, row, 'LeaseLost');
      return;
    }
    beside = own.e > (yield NOW) ? undefined : own;
    if (beside) continue;
    const { outcome } = yield* tellGrant(key, row, own, { repeated: true, isOurs: false }, config);
    if (outcome === 'overtaken') continue;
    if (outcome !== 'unanswered') yield deleteRow(key, row.ticket);
    return;
  }
}

/** pools.md#cancel, by an operator. @returns whether it is cancelled */
export function* cancel(key: string, ticket: string, config: Config): Steps<boolean> {
  const row: Item | undefined = yield { op: 'getRow', key, ticket };
  if (!row) return false;
  const standing = function* () {
    const record: Item = { key, ...((yield { op: 'get', key }) as Item) };
    return { record, entry: w.holdersOf(record).find(({ k }) => k === ticket) };
  };
  if (isCall(row)) {
    const values = { ':now': yield NOW };
    const { won } = yield {
      ...{ op: 'updateRow', key, ticket, update: 'SET cancelled_at = :now', values },
      condition: 'attribute_exists(ticket)',
    };
    const { record, entry } = yield* standing();
    if (!won || (entry && entry.c === undefined)) return false;
    if (record.mark !== undefined) yield* advance(key, record, config);
    return true;
  }
  if ((yield* standing()).entry) return false;
  const delivery = yield { op: 'tell', token: row.token, error: 'LeaseLost', key, cancelled: true };
  if (delivery === 'unanswered') throw new Refused('Unavailable');
  yield deleteRow(key, ticket);
  const { record } = yield* standing();
  if (delivery !== 'delivered') return false;
  if (record.mark !== undefined) yield* advance(key, record, config);
  return true;
}

/** Whether its request has a permit by another row, or by a plain call: the task needs no mark, and no turn. */
function isShared(row: Item, record: Item, { bugs }: Config): boolean {
  const entry = w.entryOf(record, row.name);
  return !isCall(row) && entry !== undefined && entry.k !== row.ticket && !bugs?.secondRowUntold;
}

/** pools.md#repair, of one pool */
export function* repairPool(key: string, config: Config): Steps<void> {
  const rows: Item[] = yield { op: 'query', key };
  if (rows.length === 0) return;
  let record: Item = { key, ...((yield { op: 'get', key }) as Item) };
  const isGranted = (row: Item) => w.entryOf(record, row.name)?.k === row.ticket;
  if (isLease(record)) return;
  let waiting = 0;
  for (const row of rows) {
    const now: number = yield NOW;
    if (!wantsPermit(row) && row.deadline > now) continue; // keys/repair.ts settles it
    if (isGranted(row) || isShared(row, record, config)) continue;
    const isOver = isCall(row) ? row.keep_until <= now : row.deadline <= now;
    const hasPermit = Number(w.holderOf(record, row.name)?.e) > now;
    if (hasPermit && !(isOver && isCall(row))) continue;
    if (!isOver) waiting += isCall(row) && (row.deadline <= now || row.cancelled_at !== undefined) ? 0 : 1;
    else if (isCall(row)) yield deleteOverdue(row, config);
    else yield* endTask(key, row, 'LeaseHeld');
  }
  if (record.mark === undefined && waiting > 0)
    record = (yield* write(w.mark(key, undefined, yield NOW, config))).standing;
  record = (yield* advance(key, record, config)).standing;
  if (config.bugs?.lateUntold) return;
  for (const row of (yield { op: 'query', key }) as Item[]) {
    const own = w.holderOf(record, row.name);
    const now: number = yield NOW;
    if (!own || own.a + config.notifiedAfter > now || own.e <= now) continue;
    const repeated = isShared(row, record, config) && own.c === undefined;
    if (own.k !== row.ticket && !repeated) continue;
    if (isCall(row)) {
      if (own.c === undefined) yield deleteRow(key, row.ticket);
      continue;
    }
    if (own.s !== undefined) {
      yield* endUnnotified(key, own, config);
      continue;
    }
    const { outcome } = yield* tellGrant(key, row, own, { repeated, isOurs: false }, config);
    if (outcome === 'delivered' || outcome === 'gone') yield deleteRow(key, row.ticket);
  }
}
