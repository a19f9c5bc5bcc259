import { NOW } from '../engine/common.ts';
import { isCall } from '../engine/rows.ts';
import { type Config, type Item, Refused, type Steps } from '../engine/types.ts';
import { failTask } from '../leases/hand-off.ts';
import { repair } from '../leases/tasks.ts';
import { isPool, wantsPermit } from '../line/kinds.ts';
import { repairPool } from '../permits/queue.ts';
import { changeKind } from './change.ts';

/** The schedule, on a key of either kind. */
export function* repairKey(key: string, config: Config): Steps<void> {
  const rows: Item[] = yield { op: 'query', key };
  if (rows.length === 0) return;
  const before: Item = yield { op: 'get', key };
  yield* isPool(before) ? repairPool(key, config) : repair(key, config);
  yield* settleStrangers(key, rows, config);
}

/** kinds.md#waiters-of-the-other-kind: if no caller has the key, the kind changes for their tasks. */
function* settleStrangers(key: string, rows: readonly Item[], config: Config): Steps<void> {
  const record: Item = { key, ...((yield { op: 'get', key }) as Item) };
  const now: number = yield NOW;
  const strangers = rows.filter(
    (row) => wantsPermit(row) !== isPool(record) && (isCall(row) ? row.keep_until <= now : row.deadline > now),
  );
  const tasks = strangers.filter((row) => !isCall(row));
  for (const row of strangers.filter(isCall))
    yield {
      op: 'deleteRow',
      key,
      ticket: row.ticket,
      condition: 'deadline = :seen',
      values: { ':seen': row.deadline },
    };
  if (tasks.length === 0) return;
  try {
    if (config.bugs?.strangersRefused) throw new Refused('WrongKind');
    yield* changeKind(key, record, config);
    yield* isPool(record) ? repair(key, config) : repairPool(key, config);
  } catch (error) {
    if (!(error instanceof Refused) || error.code !== 'WrongKind') throw error;
    for (const row of tasks) yield* failTask(key, row, 'WrongKind');
  }
}
