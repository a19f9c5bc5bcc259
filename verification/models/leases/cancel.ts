import { NOW, write } from '../engine/common.ts';
import { deleteRow, isCall } from '../engine/rows.ts';
import type { Config, Item, Request, Steps } from '../engine/types.ts';
import { handOff } from './hand-off.ts';
import * as w from './writes.ts';

/**
 * queue.md#withdraw: a call that waits, or its grant. The rows are flagged first and the record is read second; a claim is written first,
 * and its row is looked at second. So one of the two sees the other.
 */
export function* withdraw(request: Request, config: Config): Steps<{ cancelled: boolean }> {
  const { key } = request;
  const rows: Item[] = yield { op: 'query', key };
  let cancelled = false;
  for (const row of rows.filter((one) => isCall(one) && w.isOwn(one, request))) {
    const op = config.bugs?.cancelDeletes ? deleteRow(key, row.ticket) : w.cancelRow(row.ticket, request, yield NOW);
    const { won } = yield op;
    if (won) cancelled = true;
  }
  if (config.bugs?.noReadAfterCancel) return { cancelled };
  for (;;) {
    const record: Item = yield { op: 'get', key };
    if (!w.isOwnOf(record, request) || !w.isLeased(record)) return { cancelled };
    // Of a row that came after the query: its call is to see that it was withdrawn, and not that its turn is over.
    const cameLater = record.ticket !== undefined && !rows.some((row) => row.ticket === record.ticket);
    if (cameLater && !config.bugs?.lateRowUnflagged) {
      const flag = yield w.cancelRow(record.ticket, request, yield NOW);
      if (flag.won) cancelled = true;
    }
    const { won, standing } = yield* write(w.endStanding(record, yield NOW, config));
    if (won) return { cancelled: true };
    if (standing.lease_version === record.lease_version) {
      const { moved, end } = yield* handOff(key, standing, 'released', config);
      if (moved.length > 0 || end !== 'overtaken') return { cancelled: true };
    } else if (!w.isOwn(standing, request) || !w.isLeased(standing))
      return { cancelled: cancelled || w.isOwn(standing, request) };
  }
}
