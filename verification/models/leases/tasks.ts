import { NOW, repairLater, ticketName, write } from '../engine/common.ts';
import { deleteOverdue, deleteRow, isCall } from '../engine/rows.ts';
import type { Config, Item, Request, Self, Steps } from '../engine/types.ts';
import { changeKind, leaveLine } from '../keys/change.ts';
import { isPool, wantsPermit } from '../line/kinds.ts';
import { type Ending, failTask, handOff, renewWhole, tellGrant } from './hand-off.ts';
import * as w from './writes.ts';

/** tasks.md#park */
export function* park(
  request: Request,
  { token, parkMs }: { token: string; parkMs: number },
  config: Config,
  self: Self = {},
): Steps<void> {
  const { key } = request;
  const now: number = yield NOW;
  const row: Item = {
    key,
    ticket: ticketName(now, config.uuid()),
    token,
    holder: request.holder,
    request_id: request.requestId,
    ttl: request.ttl,
    parked_at: now,
    deadline: now + parkMs,
    ...(request.execution !== undefined && { execution: request.execution }),
  };
  const raise = () => write(w.mark(key, w.heldByAnother(request, config), row.ticket, config));
  let early = config.bugs?.markFirst ? yield* raise() : undefined;
  yield { op: 'putRow', key, item: row };
  self.row = row.ticket;
  for (;;) {
    const marked = early ?? (yield* raise());
    early = undefined;
    if (marked.won) self.joined?.();
    let record = marked.standing;
    if (!marked.won && isPool(record)) {
      yield* leaveLine({ key, ticket: row.ticket }, config);
      yield* changeKind(key, record, config);
      return yield* park(request, { token, parkMs }, config, self);
    }
    let how: Ending = 'expired';
    if (marked.won) {
      if (w.takeoverAt(record, config) > (yield NOW)) return yield* askForRepair(record, config);
    } else if (!w.isOwn(record, request)) how = 'free';
    else if (!w.isLeased(record)) {
      const delivery = yield { op: 'tell', token, error: 'LeaseLost', key };
      if (delivery !== 'unanswered') yield deleteRow(key, row.ticket);
      return;
    } else if (record.ticket === row.ticket) return;
    else if (w.isRepeatable(record, request, yield NOW, config)) {
      if (yield* repeatToTask(row, record, config)) return;
      continue;
    } else {
      const again = yield* write(w.mark(key, w.unchanged(record), row.ticket, config));
      if (!again.won) continue;
      record = again.standing;
      if (w.takeoverAt(record, config) > (yield NOW)) return;
    }
    const { moved, end } = yield* handOff(key, record, how, config);
    if (!(end === 'overtaken' && moved.length === 0)) return;
  }
}

/** The holder is a caller that has not claimed yet, and may be dead. */
function* askForRepair(record: Item, config: Config): Steps<void> {
  if (record.claim_ttl_ms !== undefined && !config.bugs?.noMessage) yield repairLater(record.key, config);
}

/** @returns whether the task is settled */
function* repeatToTask(row: Item, record: Item, config: Config): Steps<boolean> {
  const renewed = yield* renewWhole(record, config);
  if (!renewed) {
    const at: Item = yield { op: 'get', key: row.key };
    return at.lease_id === record.lease_id;
  }
  const told = { record: renewed, now: yield NOW, waited: 0, repeated: true };
  const delivery = yield tellGrant(row.key, row, told, config);
  if (delivery !== 'unanswered') yield deleteRow(row.key, row.ticket);
  return true;
}

/** tasks.md#repair, of one key */
export function* repair(key: string, config: Config): Steps<void> {
  const rows: Item[] = yield { op: 'query', key };
  if (rows.length === 0) return;
  let record: Item = { key, ...((yield { op: 'get', key }) as Item) };
  if (isPool(record)) return;
  let waiting = 0;
  for (const row of rows) {
    const now: number = yield NOW;
    if (wantsPermit(row) && row.deadline > now) continue; // keys/repair.ts settles it
    const isOfGrant = row.ticket === record.ticket;
    if (isShared(row, record, config)) continue;
    if (isCall(row)) {
      if (row.keep_until <= now && !isOfGrant) yield deleteOverdue(row, config);
      else if (row.deadline > now && row.cancelled_at === undefined) waiting++;
    } else if (row.deadline > now || (isOfGrant && config.bugs?.overdueKeepsMark)) waiting++;
    else if (!isOfGrant) yield* failTask(key, row, 'LeaseHeld');
  }
  const now: number = yield NOW;
  if (!w.isLeased(record) || w.takeoverAt(record, config) <= now) {
    yield* handOff(key, record, w.isLeased(record) ? 'expired' : 'free', config);
    return;
  }
  if (record.waiters === undefined && waiting > 0) {
    const marked = yield* write(w.markAgain(record, undefined, config));
    if (marked.won) record = marked.standing;
  }
  if (record.ticket !== undefined && record.acquired_at + config.notifiedAfter <= (yield NOW))
    yield* settleGrant(record, config);
  for (const row of rows.filter((one) => isShared(one, record, config))) yield* settleShared(row, config);
}

/** Whether its request has the lease by another row, or by a plain call: the task needs no mark, and no turn. */
const isShared = (row: Item, record: Item, config: Config): boolean =>
  !isCall(row) &&
  w.isLeased(record) &&
  row.ticket !== record.ticket &&
  w.isOwnOf(record, { requestId: row.request_id, holder: row.holder, principal: row.principal }) &&
  !config.bugs?.secondRowUntold;

/** A retried task was in line before the task of an earlier try was granted the lease, and may wait for a message. */
function* settleShared({ key, ticket }: Item, config: Config): Steps<void> {
  const row: Item | undefined = yield { op: 'getRow', key, ticket };
  if (!row) return;
  const record: Item = { key, ...((yield { op: 'get', key }) as Item) };
  const isFull = record.claim_ttl_ms === undefined && record.acquired_at + config.notifiedAfter <= (yield NOW);
  if (isFull && isShared(row, record, config)) yield* repeatToTask(row, record, config);
}

/** The row of the grant is still there: its task may not have been notified, or its call died after its claim. */
function* settleGrant(record: Item, config: Config): Steps<void> {
  const { key, ticket } = record;
  const row: Item | undefined = yield { op: 'getRow', key, ticket };
  if (!row) return;
  if (isCall(row)) {
    if (record.claim_ttl_ms === undefined) yield deleteRow(key, ticket);
    return;
  }
  if (row.deadline + config.notifiedPast <= (yield NOW)) return;
  const renewed = yield* renewWhole(record, config);
  if (!renewed) return;
  const waited = Math.max(0, renewed.acquired_at - row.parked_at);
  const delivery = yield tellGrant(key, row, { record: renewed, now: yield NOW, waited }, config);
  if (delivery !== 'unanswered') yield deleteRow(key, ticket);
}
