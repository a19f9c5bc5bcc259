import { lost, NOW, ticketName, write } from '../engine/common.ts';
import { deleteRow } from '../engine/rows.ts';
import { type Config, type Item, Refused, type Request, type Self, type Steps } from '../engine/types.ts';
import { leaveLine } from '../keys/change.ts';
import { isPool } from '../line/kinds.ts';
import { claim, type Granted } from './claim.ts';
import { endReason, storedPrevious } from './common.ts';
import { handOff } from './hand-off.ts';
import * as w from './writes.ts';

/** A call that waits in line (queue.md#wait). */
interface Waiting {
  request: Request;
  deadline: number;
  row: Item;
  record: Item;
  /** Whether the mark knows of it. It does not where there was no record. */
  isMarked: boolean;
  /** When it last saw its row, or wrote it. */
  checkedAt: number;
  lookedAt: number;
  seenFreeAt: number | undefined;
  /** Of a whole grant that this very call wrote for itself. */
  ownVersion?: string;
  /** Its row is gone, and another call of its request may have had the key. */
  isGone?: boolean;
  /** What the last look told of the row, where it asked for it. */
  seenRow?: Item | 'gone';
}

/** @returns undefined where the record is a pool, so that the call has left the line. @throws Refused LeaseHeld, LeaseLost */
export function* waitInLine(
  request: Request,
  deadline: number,
  config: Config,
  self: Self,
): Steps<Granted | undefined> {
  const waiting = yield* join({ request, deadline, ticket: request.ticket }, config, self);
  for (;;) {
    const own = yield* ownGrant(waiting, config);
    if (own) return own;
    if (isPool(waiting.record)) {
      yield* leaveLine(waiting.row as { key: string; ticket: string }, config);
      return undefined;
    }
    const now: number = yield NOW;
    if (waiting.isGone || now >= deadline) return yield* leave(waiting, config);
    if (yield* handOnOrMark(waiting, now, config, self)) continue;
    const rejoined = yield* checkRow(waiting, config);
    if (rejoined) continue;
    yield* pauseAndLook(waiting, config);
    if (yield* rowGone(waiting, config)) continue;
  }
}

/** queue.md#join: the row first, then the mark. */
function* join(
  { request, deadline, ticket }: { request: Request; deadline: number; ticket: string | undefined },
  config: Config,
  self: Self,
): Steps<Waiting> {
  const now: number = yield NOW;
  let row: Item | undefined;
  if (ticket !== undefined) {
    const out = yield w.rejoin(ticket, request, deadline, deadline + config.keep);
    if (out.won) row = out.item;
    else if (out.old?.cancelled_at !== undefined && w.isOwnOf(out.old, request)) throw lost('cancelled');
  }
  let early: Marked | undefined;
  if (!row || config.bugs?.rejoinSecondTicket) {
    row = {
      key: request.key,
      ticket: ticketName(now, config.uuid()),
      holder: request.holder,
      request_id: request.requestId,
      ttl: request.ttl,
      parked_at: now,
      deadline,
      keep_until: deadline + config.keep,
      ...(request.principal !== undefined && { principal: request.principal }),
    };
    if (config.bugs?.markFirst) early = yield* raise(request, row, config, self);
    yield { op: 'putRow', key: request.key, item: row };
  }
  self.row = row.ticket;
  const marked = early ?? (yield* raise(request, row, config, self));
  const joinedAt: number = yield NOW;
  return { request, deadline, row, ...marked, checkedAt: joinedAt, lookedAt: joinedAt, seenFreeAt: undefined };
}

type Marked = Pick<Waiting, 'record' | 'isMarked'>;

function* raise(request: Request, row: Item, config: Config, self: Self): Steps<Marked> {
  const op = w.mark(request.key, w.ofAnother(request, config), row.ticket, config);
  const { won, standing } = yield* write(op);
  if (won) self.joined?.();
  return { record: standing, isMarked: won };
}

/** @returns the grant, where the record shows that it is this request's. @throws Refused LeaseLost where it had one that has ended */
function* ownGrant(waiting: Waiting, config: Config): Steps<Granted | undefined> {
  const { request, row, record } = waiting;
  if (!w.isOwnOf(record, request)) return undefined;
  const now: number = yield NOW;
  if (!w.isLeased(record)) {
    if (record.ticket === undefined && record.lease_id === undefined) return undefined;
    const { old } = yield deleteRow(request.key, row.ticket);
    // A call that ends in line takes no turn along.
    if (record.waiters !== undefined && !config.bugs?.lostSilently) yield* handOff(request.key, record, 'free', config);
    throw lost(old?.cancelled_at === undefined ? endReason(record) : 'cancelled');
  }
  // Also after the window, if nobody was quicker.
  const isMine = record.lease_version === waiting.ownVersion;
  if (!isMine && record.claim_ttl_ms === undefined && w.endsAt(record, config) <= now) return undefined;
  if (config.bugs?.windowAnswered && record.claim_ttl_ms !== undefined) {
    yield deleteRow(request.key, row.ticket);
    return { granted: record, repeated: false, triedAt: now, previous: storedPrevious(record), claimed: false };
  }
  const claimed = yield* claim(request, { record, isMine }, row.ticket, config);
  if (!claimed) waiting.checkedAt = Number.NEGATIVE_INFINITY; // it stood still, or was withdrawn
  return claimed;
}

/** queue.md#wait */
function* leave(waiting: Waiting, config: Config): Steps<Granted> {
  const { request, row } = waiting;
  const last: Item | undefined = yield { op: 'getRow', key: request.key, ticket: row.ticket };
  if (!config.bugs?.noLastLook) {
    waiting.record = yield { op: 'get', key: request.key };
    if (w.isOwnOf(waiting.record, request) && w.isLeased(waiting.record)) {
      const claimed = yield* claim(request, { record: waiting.record }, row.ticket, config);
      if (claimed) return claimed;
    }
  }
  if (last?.cancelled_at !== undefined) {
    yield deleteRow(request.key, row.ticket);
    throw lost('cancelled');
  }
  const { record } = waiting;
  // A call that leaves while nobody has the lease takes nobody's turn along.
  if (!w.isLeased(record) && record.waiters !== undefined && !config.bugs?.leavesSilently)
    yield* handOff(request.key, record, 'free', config);
  throw new Refused('LeaseHeld', { ticket: last && row.ticket });
}

/** @returns whether the record must be judged anew at once */
function* handOnOrMark(waiting: Waiting, now: number, config: Config, self: Self): Steps<boolean> {
  const { request, row, record } = waiting;
  const isOver = !w.isLeased(record) || w.takeoverAt(record, config) <= now;
  const isOwnUnclaimed = w.isOwn(record, request) && w.isLeased(record) && record.claim_ttl_ms !== undefined;
  if (!isOver) {
    waiting.seenFreeAt = undefined;
    if (!waiting.isMarked && !w.isOwn(record, request)) {
      Object.assign(waiting, yield* raise(request, row, config, self));
      return true;
    }
    if (record.waiters !== undefined || w.isOwn(record, request) || config.bugs?.unmarkedUnseen) return false;
    if (!config.bugs?.rowNotRead) {
      waiting.checkedAt = now;
      const seen: Item | undefined = yield { op: 'getRow', key: request.key, ticket: row.ticket };
      if (yield* afterRow(waiting, seen, config)) return true;
    }
    const { won, standing } = yield* write(w.markAgain(record, row.ticket, config));
    waiting.record = standing;
    return !won;
  }
  if (isOwnUnclaimed) return false;
  // The next in line at once; the others a while later, so that they do not race.
  waiting.seenFreeAt ??= now;
  const isNext = record.next_ticket === undefined || record.next_ticket === row.ticket;
  const mayNow = config.bugs?.nextTrusted
    ? record.next_ticket === row.ticket
    : now - waiting.seenFreeAt >= (isNext ? 0 : config.patience);
  if (!mayNow) return false;
  const seen = record.key === undefined ? { key: request.key } : record;
  const ending = w.isLeased(record) ? 'expired' : 'free';
  const handed = yield* handOff(request.key, seen, ending, config, { own: row.ticket });
  waiting.seenFreeAt = undefined;
  waiting.record = handed.standing;
  if (handed.moved.includes(row.ticket)) waiting.ownVersion = handed.standing.lease_version;
  if (handed.end === 'empty') waiting.checkedAt = Number.NEGATIVE_INFINITY; // its own row is gone, or was withdrawn
  return handed.end !== 'empty' && w.isOwn(handed.standing, request);
}

/** After a standstill longer than the window, and where something was odd, the row comes first. @returns as `handOnOrMark` */
function* checkRow(waiting: Waiting, config: Config): Steps<boolean> {
  const { request, row } = waiting;
  const now: number = yield NOW;
  if (waiting.checkedAt !== Number.NEGATIVE_INFINITY && now - waiting.lookedAt <= config.window) return false;
  waiting.checkedAt = now;
  const seen: Item | undefined = yield { op: 'getRow', key: request.key, ticket: row.ticket };
  return yield* afterRow(waiting, seen, config);
}

/** The row was handed on or given up, or withdrawn, or is still there. @returns whether the record must be judged anew */
function* afterRow(waiting: Waiting, seen: Item | undefined, config: Config): Steps<boolean> {
  const { request, row } = waiting;
  const isCancelled = seen?.cancelled_at !== undefined;
  if (seen && !isCancelled) return false;
  const record: Item = yield { op: 'get', key: request.key };
  const now: number = yield NOW;
  const isStanding = !w.isLeased(record) || record.claim_ttl_ms !== undefined || w.endsAt(record, config) > now;
  if (isStanding && w.isOwnOf(record, request)) {
    waiting.record = record;
    return true;
  }
  if (isCancelled) {
    yield deleteRow(request.key, row.ticket);
    throw lost('cancelled');
  }
  // With a new place it might have the key a second time.
  waiting.isGone = true;
  return true;
}

function* pauseAndLook(waiting: Waiting, config: Config): Steps<void> {
  const { request, row, record, deadline } = waiting;
  const now: number = yield NOW;
  const pause = record.next_ticket === row.ticket ? config.lookNext : config.lookFar;
  yield { op: 'sleep', ms: Math.max(1, Math.min(pause, deadline - now)) };
  // The next one hands a key that is over on by what it saw last: the write names that version.
  const isKnown = record.next_ticket === row.ticket && w.isLeased(record) && !w.isOwn(record, request);
  if (isKnown && w.takeoverAt(record, config) <= (yield NOW)) return;
  waiting.lookedAt = now;
  if (now + pause - waiting.checkedAt < config.rowEvery) {
    const seen: Item = yield { op: 'look', key: request.key };
    waiting.record = { key: request.key, ...seen };
    return;
  }
  waiting.checkedAt = now + pause;
  const both: { record: Item; row?: Item } = yield { op: 'lookBoth', key: request.key, ticket: row.ticket };
  waiting.record = { key: request.key, ...both.record };
  waiting.seenRow = both.row ?? 'gone';
}

/** What the last look told of the row. */
function* rowGone(waiting: Waiting, config: Config): Steps<boolean> {
  const { seenRow } = waiting;
  if (seenRow === undefined) return false;
  delete waiting.seenRow;
  return yield* afterRow(waiting, seenRow === 'gone' ? undefined : seenRow, config);
}
