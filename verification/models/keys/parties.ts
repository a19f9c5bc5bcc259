import { NOW, sleep, write } from '../engine/common.ts';
import { failTaskOfCrashed } from '../engine/parties.ts';
import type { Config, Item, Steps } from '../engine/types.ts';
import type { Scenario } from '../engine/world.ts';
import * as leases from '../leases/parties.ts';
import { breakLease } from '../leases/writes.ts';
import { isPool, OURS } from '../line/kinds.ts';
import { advance } from '../permits/line.ts';
import * as permits from '../permits/parties.ts';
import { giveBack, holdersOf } from '../permits/writes.ts';

import type { KeyWorld } from './world.ts';

interface Cast extends Partial<Omit<Scenario, 'start'>> {
  leases?: Pick<leases.Cast, 'callers' | 'tasks' | 'withdrawals' | 'foreigners'>;
  permits?: Omit<permits.Cast, keyof Scenario>;
  /** When operators break what they see, of whichever kind. */
  breaks?: readonly number[];
  /** When an unused record is deleted. */
  cleanUps?: readonly number[];
  /** The record that a history begins with. */
  record?: Item | undefined;
}

/** Names what it breaks by the fence. The write for a lease comes first, and the record that it meets says which kind it is. */
function* operator(world: KeyWorld, after: number, config: Config): Steps<void> {
  yield sleep(after);
  const record: Item = yield { op: 'look', key: 'k' };
  const [first] = holdersOf(record).sort((one, other) => one.fence - other.fence);
  const fence: number | undefined = isPool(record) ? first?.fence : record.fence;
  if (fence === undefined) return;
  if (first) world.stopped.add(first.i);
  world.isPreviousUnchecked = true;
  const { standing } = yield* write(breakLease('k', fence, yield NOW, config));
  const holder = holdersOf(standing).find((one) => one.fence === fence);
  if (!isPool(standing) || !holder) return;
  world.stopped.add(holder.i);
  const proof = { key: 'k', name: holder.name, leaseId: holder.i };
  const broken = yield* write(giveBack(proof, fence, yield NOW, config));
  if (broken.won && broken.standing.mark !== undefined) yield* advance('k', broken.standing, config);
}

/** expired.md#clean: an empty pool without a write for the retention. */
function* cleaner(after: number, config: Config): Steps<void> {
  yield sleep(after);
  const record: Item = yield { op: 'get', key: 'k' };
  const now: number = yield NOW;
  if (!isPool(record) || record.used !== 0 || record.lease_expiry > now + config.retention) return;
  const condition = 'fence = :fence AND used = :zero AND attribute_not_exists(mark)';
  const values = { ':fence': record.fence, ':zero': 0 };
  yield { op: 'delete', key: 'k', condition, values };
}

/** Both kinds of parties over one record. */
export function scenario({
  leases: plain = {},
  permits: pooled = {},
  breaks = [],
  cleanUps = [],
  record,
  ...rest
}: Cast): Scenario {
  const [lease, pool] = [leases.scenario(plain), permits.scenario(pooled)];
  return {
    ...lease,
    start(world) {
      if (record) {
        world.item = structuredClone(record);
        world.highest = record.fence ?? -1;
      }
      lease.start(world);
      pool.start(world);
      for (const after of breaks) world.spawn('operator', (config) => operator(world as KeyWorld, after, config));
      for (const after of cleanUps) world.spawn('cleaner', (config) => cleaner(after, config));
    },
    notified(world, op, task) {
      const isPermit = (world as KeyWorld).askedBy.has(task.request.requestId);
      (isPermit ? pool : lease).notified(world, op, task);
    },
    crashed: failTaskOfCrashed,
    ...rest,
  };
}

/** A pool of which every holder has exited. */
export const deadPool = (holders: number): Item => ({
  key: 'k',
  lease_version: OURS,
  ...{ fence: 900 + holders, used: holders, lease_expiry: 2000 },
  ...Object.fromEntries(
    Array.from({ length: holders }, (_, n) => [
      [`h:dead${n}`, { i: `d${n}`, v: `v${n}`, h: `dead${n}`, e: 950, b: 940, t: 10, w: 1, a: 940 }],
      [`f:dead${n}`, 901 + n],
    ]).flat(),
  ),
});
export const freeLease = (fence: number): Item => ({ key: 'k', fence, lease_expiry: 2000 });
/** A lease whose holder has exited. */
export const deadLease = (expires: number): Item => ({
  ...freeLease(990),
  ...{ lease_version: 'dead', lease_id: 'dead', request_id: 'dead', holder: 'dead' },
  ...{ expires_at: expires, heartbeat_at: expires - 9, ttl_ms: 9, acquired_at: expires - 9, lease_expiry: expires },
});
