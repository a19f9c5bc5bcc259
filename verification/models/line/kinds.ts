import { all } from '../engine/rows.ts';
import type { Condition, Config, Item, Op } from '../engine/types.ts';

// The two kinds of a record, and the writes that change the kind (docs/protocols/kinds.md). `config.bugs` switches one rule off.

/** TTL and the Rust crate leave a pool alone for this long after each write. */
export const FAR = 80;
/** So many grants may come between a look and the try after the look. */
const MOST_BESIDE = 3;

/** The `lease_version` of permits. Third-party clients take it for a held lease. */
export const OURS = 'holdfast';

/** A record with the weight of permits, or with the mark of a line for permits. */
export const isPool = (record: Item): boolean => record.used !== undefined || record.mark !== undefined;
/** The lease of a third-party client is of neither kind. */
export const isLease = (record: Item): boolean =>
  !isPool(record) && (record.lease_id !== undefined || record.waiters !== undefined);
/** Of a row: it waits for a permit, and not for a lease. */
export const wantsPermit = (row: Item): boolean => row.weight !== undefined;

/** In the condition of a permit, and of a mark for permits. */
export const IS_NO_LEASE = 'attribute_not_exists(lease_id) AND attribute_not_exists(waiters)';

/** Above each fence that the try of a permit may meet. */
export const latestFence = (seen: number | undefined, now: number, { skew }: Config): number =>
  Math.max(now + skew, seen === undefined ? 0 : seen + MOST_BESIDE);

/** kinds.md#change: no caller has had the key since the lease was seen, and no waiter has joined. */
export function isStillFree(over: Item, { bugs }: Config): Condition {
  const as = (name: string) => (over[name] === undefined ? `attribute_not_exists(${name})` : `${name} = :seen_${name}`);
  const seen = ['fence', 'lease_version'].filter((name) => name !== 'fence' || !bugs?.freeWithoutFence);
  const unmarked = bugs?.replacesMarked
    ? []
    : ['waiters', 'mark', 'used'].map((name) => `attribute_not_exists(${name})`);
  if (bugs?.replacesUnseen) return { condition: all(...unmarked), values: {} };
  return {
    condition: all(...unmarked, ...seen.map(as)),
    values: Object.fromEntries(
      seen.filter((name) => over[name] !== undefined).map((name) => [`:seen_${name}`, over[name]]),
    ),
  };
}

const KEPT = new Set(['key', 'fence', 'lease_version', 'lease_expiry']);
/** The attributes of a lease, which a permit does not have. */
export const leftovers = (over: Item): string[] => Object.keys(over).filter((name) => !KEPT.has(name));

/** kinds.md#change: leaves nothing but the fence. */
const clear = (key: string, fence: number | undefined, guard: Condition, now: number, config: Config): Op => ({
  op: 'put',
  key,
  item: { key, ...(fence !== undefined && { fence }), lease_expiry: now + config.retention },
  ...guard,
});

export const clearLease = (record: Item, now: number, config: Config): Op =>
  clear(record.key, record.fence, isStillFree(record, config), now, config);

/** The next pool does not remember which requests had permits, so late tries meet a fence that is too high. */
export function clearPool(record: Item, now: number, config: Config): Op {
  const { key, fence = 0 } = record;
  const bugs = config.bugs ?? {};
  const used = bugs.clearUsed || bugs.clearNeither ? undefined : 'used = :zero';
  const seen = bugs.clearFence || bugs.clearNeither ? undefined : 'fence = :fence';
  const condition = all(
    'attribute_exists(used)',
    bugs.clearMarked ? undefined : 'attribute_not_exists(mark)',
    used,
    seen,
  );
  const above = bugs.clearKeepsFence ? fence : latestFence(fence, now + config.skew, config);
  return clear(key, above, { condition, values: { ':zero': 0, ':fence': fence } }, now, config);
}
