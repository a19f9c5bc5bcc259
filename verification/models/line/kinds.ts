import { all, both } from '../engine/rows.ts';
import type { Condition, Config, Item, Op } from '../engine/types.ts';
import { queueUnchanged, risingFence, unchanged } from '../leases/writes.ts';

// The two kinds of a record, and the writes that change the kind (docs/protocols/kinds.md). `config.bugs` switches one rule off.

/** TTL and the Rust crate leave a pool alone for this long after each write. */
export const FAR = 80;

/** `formed` is on pools alone: the fence of the write that made the record a pool. */
export const isPool = (record: Item): boolean => record.formed !== undefined;
/** Of a row: it waits for a permit, and not for a lease. */
export const wantsPermit = (row: Item): boolean => row.weight !== undefined;

/** Nobody has had the key since it was seen without a holder. */
export function vacant(record: Item, config: Config): Condition {
  if (!isPool(record)) return config.bugs?.changeUnseen ? { condition: '', values: {} } : unchanged(record, config);
  return {
    condition: all(
      config.bugs?.overUnformed ? 'attribute_exists(formed)' : 'formed = :formed',
      config.bugs?.overUsed ? undefined : 'used = :zero',
    ),
    values: { ...(!config.bugs?.overUnformed && { ':formed': record.formed }), ...(!config.bugs?.overUsed && { ':zero': 0 }) },
  };
}

/** No caller and no task has joined since the record was seen. */
export function lineAsSeen(record: Item, config: Config): Condition {
  if (!isPool(record)) return queueUnchanged(record, config);
  return record.waiters === undefined
    ? { condition: 'attribute_not_exists(waiters)', values: {} }
    : { condition: 'waiters = :waiters', values: { ':waiters': record.waiters } };
}

/** The whole item, so that no attribute of the other kind stays. */
export const pool = (record: Item, now: number, config: Config): Item => {
  const fence = risingFence(record, now);
  const formed = config.bugs?.formedByClock ? now : fence;
  return { key: record.key, lease_version: 'pool', formed, fence, used: 0, lease_expiry: now + FAR };
};

/** A first waiter of the other kind, if nobody has the key: the kind changes without a grant, and the mark stays. */
export function changeKind(record: Item, now: number, config: Config): Op {
  const item = isPool(record)
    ? { key: record.key, fence: risingFence(record, now), lease_expiry: now + config.retention }
    : { ...pool(record, now, config), seq: 1 };
  return {
    op: 'put',
    key: record.key,
    item: { ...item, waiters: 1 },
    ...both(vacant(record, config), lineAsSeen(record, config)),
  };
}
