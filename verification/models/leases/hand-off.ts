import { NOW, repairLater, type Written, write } from '../engine/common.ts';
import { deleteOverdue, deleteRow, isCall } from '../engine/rows.ts';
import { type Config, type Item, type Op, Refused, type Steps } from '../engine/types.ts';
import { isPool, wantsPermit } from '../line/kinds.ts';
import { storedPrevious, type View, viewOf, writeVersion } from './common.ts';
import * as w from './writes.ts';

export type Ending = 'released' | 'broken' | 'expired' | 'free' | 'undelivered';

interface HandedOff {
  moved: string[];
  end: 'granted' | 'empty' | 'overtaken';
  standing: Item;
}

interface Line {
  oldest: Item | undefined;
  next: Item | undefined;
  /** Whether anybody else waits, or may. */
  others: boolean;
  /** Whether a task is among those who wait. */
  task: boolean;
}

/** queue.md#hand-off, steps 1 and 2: who is next, and whether others wait. Rows that are over go on the way. */
function* look(key: string, record: Item, ending: Ending, config: Config): Steps<Line> {
  const rows: Item[] = yield { op: 'query', key };
  let blocks = false;
  const line: Item[] = [];
  for (const row of rows) {
    const now: number = yield NOW;
    const isOfGrant = row.ticket === record.ticket;
    if (wantsPermit(row)) continue;
    if (!isCall(row)) {
      if (ending !== 'expired' && isOfGrant) yield deleteRow(key, row.ticket);
      else if (isOfEnded(row, record, ending) && !config.bugs?.endedTaskGranted) yield* failTask(key, row, 'LeaseLost');
      else if (row.deadline > now) line.push(row);
      else if (!(yield* failTask(key, row, 'LeaseHeld')) && config.bugs?.overdueKeepsMark) blocks = true;
    } else if (row.cancelled_at !== undefined && !config.bugs?.cancelledDeleted) {
      if (row.keep_until <= now) yield deleteOverdue(row, config); // until then its call is to see it
    } else if (isOfGrant && !config.bugs?.unclaimedKeepsPlace) yield deleteRow(key, row.ticket);
    else if (isOfEnded(row, record, ending)) yield deleteRow(key, row.ticket);
    else if (row.keep_until <= now) yield deleteOverdue(row, config);
    else if (row.deadline > now || config.bugs?.absentGranted) line.push(row);
    else if (config.bugs?.absentDeleted) yield deleteOverdue(row, config);
  }
  const first = firstOf(line, yield NOW, config);
  return { ...first, others: blocks || first.others };
}

/** Nobody looks for a task: in front of one, a caller that may be leaving by a clock that is ahead is passed over. */
function firstOf(line: Item[], now: number, config: Config): Line {
  const task = line.some((row) => !isCall(row));
  const isStaying = (row: Item) => !isCall(row) || row.deadline > now + config.skew || config.bugs?.absentGranted;
  const [oldest, next] = task && !config.bugs?.leavingGranted ? line.filter(isStaying) : line;
  return { oldest, next, others: next !== undefined, task: task && oldest !== undefined && isCall(oldest) };
}

/** queue.md#quick-release: the same for the holder, that has proved nothing yet. @returns undefined where the record must be known */
export function* peek(key: string, own: string, config: Config): Steps<Line | undefined> {
  const rows: Item[] = ((yield { op: 'query', key }) as Item[]).filter((row) => !wantsPermit(row));
  const now: number = yield NOW;
  const isDecided = (row: Item) =>
    (row.ticket !== own || config.bugs?.quickOverOwnRow) && (isCall(row) || row.deadline > now);
  if (!rows.every(isDecided)) return undefined;
  const waits = (row: Item) => !isCall(row) || (row.cancelled_at === undefined && row.deadline > now);
  return firstOf(rows.filter(config.bugs?.absentGranted ? () => true : waits), now, config);
}

/** Another row of the very request whose grant ends here, or has ended: it is not granted a second time, unless the grant is forgotten. */
const isOfEnded = (row: Item, record: Item, ending: Ending): boolean =>
  ending !== 'expired' &&
  ending !== 'undelivered' &&
  record.request_id !== undefined &&
  w.isOwnOf(record, { requestId: row.request_id, holder: row.holder, principal: row.principal });

/** Such a task is granted nothing any more, so it needs no mark. Without an answer its row stays for the schedule. */
export function* failTask(key: string, row: Item, error: string): Steps<boolean> {
  const delivery = yield { op: 'tell', token: row.token, ticket: row.ticket, error, key };
  if (delivery === 'unanswered') return false;
  yield deleteRow(key, row.ticket);
  return true;
}

export function grantTo(
  row: Item,
  { from, others, own }: { from: Item; others: boolean; own?: string | undefined },
  now: number,
  config: Config,
): w.Grant {
  return {
    key: row.key,
    version: config.uuid(),
    leaseId: others && !config.bugs?.noQuick ? `${config.uuid()}+${row.ticket}` : config.uuid(),
    ttl: row.ttl,
    holder: row.holder,
    principal: row.principal,
    requestId: row.request_id,
    fence: w.risingFence(from, now),
    execution: row.execution,
    ticket: row.ticket,
    acquiredAt: now,
    unclaimed: isCall(row) && row.ticket !== own && !config.bugs?.noWindow,
  };
}

interface Passing {
  /** The line to whose first the record was transferred already. */
  transferred?: Line;
  /** The row of the call that hands the key on: it is there, so that it takes the key whole. */
  own?: string;
}

export function* handOff(
  key: string,
  record: Item,
  ending: Ending,
  config: Config,
  { transferred, own }: Passing = {},
): Steps<HandedOff> {
  const moved: string[] = [];
  if (isPool(record)) return { moved, end: 'overtaken', standing: record };
  let from = record;
  let how = ending;
  if (ending === 'broken' && record.ticket !== undefined) yield* settleBroken(key, record);
  for (let line = transferred; ; line = undefined) {
    if (!line) {
      line = yield* look(key, from, how, config);
      if (config.bugs?.staleLook) {
        const at: Item = yield { op: 'get', key };
        if (at.lease_version === from.lease_version) from = { ...from, waiters: at.waiters };
      }
      const written = yield* passOn(key, { from, how, line, own }, config);
      if (!written.won) {
        if (isPool(written.standing) || written.standing.lease_version !== from.lease_version)
          return { moved, end: 'overtaken', standing: written.standing };
        from = written.standing;
        continue;
      }
      from = written.standing;
    }
    const { oldest } = line;
    if (!oldest) return { moved, end: 'empty', standing: from };
    moved.push(oldest.ticket);
    if (isCall(oldest)) {
      if (line.task && oldest.ticket !== own && !config.bugs?.noMessage) yield repairLater(key, config);
      return { moved, end: 'granted', standing: from };
    }
    const notified = yield* notifyNew(key, oldest, from, config);
    from = notified.standing;
    if (notified.outcome !== 'gone') return { moved, end: 'granted', standing: from };
    how = 'undelivered';
  }
}

function* passOn(
  key: string,
  { from, how, line: { oldest, next, others }, own }: { from: Item; how: Ending; line: Line; own: string | undefined },
  config: Config,
): Steps<Written> {
  const now: number = yield NOW;
  if (!oldest) return yield* endUnclaimed(from, how, config);
  const grant = grantTo(oldest, { from, others, own }, now, config);
  const previous = w.previousOf(from, how, how === 'undelivered', config);
  const op = w.transfer(grant, { from, previous, others, next: next?.ticket }, config);
  return yield* writeVersion({ ...op, key }, grant.version);
}

function* settleBroken(key: string, record: Item): Steps<void> {
  const row: Item | undefined = yield { op: 'getRow', key, ticket: record.ticket };
  if (!row) return;
  if (!isCall(row)) {
    const delivery = yield { op: 'tell', token: row.token, error: 'LeaseLost', key };
    if (delivery === 'unanswered') throw new Refused('Unavailable');
  }
  yield deleteRow(key, record.ticket);
}

/** Nobody is in line: the grant ends, and the mark goes. */
function* endUnclaimed(from: Item, how: Ending, config: Config): Steps<Written> {
  const unclaimed = w.isLeased(from) && from.claim_ttl_ms !== undefined;
  const ends = w.isLeased(from) && (how !== 'expired' || unclaimed);
  if (!ends) {
    if (from.waiters === undefined) return { won: true, standing: from, unanswered: false };
    const version = config.uuid();
    return yield* writeVersion(w.clearMark(from, version, config), version);
  }
  const grant = w.unchanged(from, config);
  const queue = w.queueUnchanged(from, config);
  const guard = config.bugs?.markUnguarded
    ? grant
    : { condition: `(${grant.condition}) AND (${queue.condition})`, values: { ...grant.values, ...queue.values } };
  const forget = how === 'undelivered' || (unclaimed && how === 'expired');
  const end = { ...guard, clearMark: true, forget, broken: how === 'broken' };
  const written = yield* write(w.end(from.key, end, yield NOW, config));
  if (written.won) return written;
  const { standing } = written;
  return { ...written, won: standing.lease_id === from.lease_id && !w.isLeased(standing) };
}

type Notified = { outcome: 'delivered' | 'gone' | 'unanswered'; standing: Item };

/** tasks.md#notify, of a task that this call has granted the key. */
function* notifyNew(key: string, row: Item, record: Item, config: Config): Steps<Notified> {
  let standing = record;
  const now: number = yield NOW;
  if (w.endsAt(standing, config) <= now) return { outcome: 'unanswered', standing };
  if (now - standing.acquired_at > config.fresh) {
    const renewed = yield* renewWhole(standing, config);
    if (!renewed) return { outcome: 'unanswered', standing };
    standing = renewed;
  }
  const waited = Math.max(0, standing.acquired_at - row.parked_at);
  const outcome = yield tellGrant(key, row, { record: standing, now: yield NOW, waited }, config);
  if (outcome !== 'unanswered') yield deleteRow(key, row.ticket);
  return { outcome, standing };
}

interface Told {
  record: Item;
  now: number;
  waited: number;
  repeated?: boolean;
}
export function tellGrant(key: string, row: Item, { record, now, waited, repeated = false }: Told, config: Config): Op {
  const view: View = viewOf(record, now, config);
  const grant = { ...view, waited, repeated, previous: storedPrevious(record), claimed: false };
  return { op: 'tell', token: row.token, key, grant, whole: record.ttl_ms };
}

/** The record names the row of the task that is to be notified. Looks at the clock again after the write: a renewal that took long itself is renewed again, or its grant is not sent. */
export function* renewWhole(record: Item, config: Config): Steps<Item | undefined> {
  let standing = record;
  for (let tries = 0; tries < 3; tries++) {
    const now: number = yield NOW;
    const version = config.uuid();
    const isWhole = now + standing.ttl_ms <= standing.expires_at;
    const op = isWhole ? w.rotate(standing, version) : w.renew(standing, { version, now }, config);
    const written = yield* writeVersion(op, version);
    if (!written.won) return undefined;
    standing = written.standing;
    if (config.bugs?.renewalTrusted) return standing;
    if (w.endsAt(standing, config) - (yield NOW) >= standing.ttl_ms - config.fresh) return standing;
  }
  return undefined;
}
