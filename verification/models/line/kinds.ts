import { all, both } from '../engine/rows.ts';
import type { Condition, Config, Item, Op } from '../engine/types.ts';
import { risingFence, unchanged } from '../leases/writes.ts';

// The two kinds of a record, and the writes that change the kind (docs/protocols/kinds.md). `config.bugs` switches one rule off.

/** TTL and the Rust crate leave a pool alone for this long after each write. */
export const FAR = 80;

export const isPool = (record: Item): boolean => record.lease_version === 'pool';
/** Of a row: it waits for a permit, and not for a lease. */
export const wantsPermit = (row: Item): boolean => row.weight !== undefined;

const isUnmarked = (isNeeded: boolean): Condition => ({
  condition: isNeeded ? 'attribute_not_exists(waiters)' : '',
  values: {},
});

/** A permit that comes with the change. */
interface First {
  name: string;
  entry: Item;
}

/** kinds.md#change: makes a pool of a key that no caller has. The whole item, so that no attribute of the lease stays. */
export function form(
  record: Item,
  { now, first, isMarked }: { now: number; first?: First; isMarked?: boolean },
  config: Config,
): Op {
  const fence = config.bugs?.fenceRestarts && record.fence === undefined ? 1 : risingFence(record, now);
  const formed = config.bugs?.formedByClock ? now : fence;
  const item: Item = { key: record.key, lease_version: 'pool', formed, fence, used: first?.entry.w ?? 0 };
  if (first) Object.assign(item, { [`h:${first.name}`]: first.entry, [`f:${first.name}`]: fence });
  if (isMarked) Object.assign(item, { waiters: 1, seq: 1 });
  const asSeen = config.bugs?.formUnseen ? { condition: '', values: {} } : unchanged(record, config);
  const guard = both(asSeen, isUnmarked(!config.bugs?.formMarked));
  return { op: 'put', key: record.key, item: { ...item, lease_expiry: now + FAR }, ...guard };
}

/** kinds.md#change: makes a free lease of an empty pool. */
export function dissolve(record: Item, now: number, config: Config): Op {
  const { key, fence, formed } = record;
  const bugs = config.bugs ?? {};
  const used = bugs.dissolveUsed || bugs.dissolveNeither ? undefined : 'used = :zero';
  const seen = bugs.dissolveFence || bugs.dissolveNeither ? undefined : 'fence = :fence';
  const same = bugs.dissolveUnformed ? 'lease_version = :pool' : 'lease_version = :pool AND formed = :formed';
  return {
    op: 'put',
    key,
    item: { key, fence, lease_expiry: now + config.retention },
    condition: all(same, bugs.dissolveMarked ? undefined : 'attribute_not_exists(waiters)', used, seen),
    values: { ':pool': 'pool', ':formed': formed, ':zero': 0, ':fence': fence },
  };
}
