import type { Config, Item, Steps } from '../engine/types.ts';
import { repair } from '../leases/tasks.ts';
import { isPool } from '../line/kinds.ts';
import { repairPool } from '../permits/queue.ts';

/** The schedule, on a key of either kind. */
export function* repairKey(key: string, config: Config): Steps<void> {
  const record: Item = yield { op: 'get', key };
  yield* isPool(record) ? repairPool(key, config) : repair(key, config);
}
