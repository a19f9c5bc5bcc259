import { NOW, write } from '../engine/common.ts';
import { type Config, type Item, Refused, type Steps } from '../engine/types.ts';
import { handOff } from '../leases/hand-off.ts';
import { isLeased, takeoverAt } from '../leases/writes.ts';
import { clearLease, clearPool, isPool } from '../line/kinds.ts';
import { weightInUse } from '../permits/common.ts';
import { advance } from '../permits/line.ts';
import { end, holdersOf, isThirdParty, MOST_ENDED } from '../permits/writes.ts';

const MOST_TRIES = 5;

/** A mark makes a pool of the record of a third-party client too. */
const isThirdPartys = (record: Item, now: number, config: Config): boolean =>
  isThirdParty(record) && weightInUse(record, now, config) > 0;

/** Whether a caller may rely on a lease or a permit of the key. */
const isHeld = (record: Item, now: number, config: Config): boolean =>
  isPool(record)
    ? isThirdPartys(record, now, config) ||
      holdersOf(record).some(({ e }) => e >= now - (config.bugs?.noSkew ? 0 : config.skew))
    : isLeased(record) && takeoverAt(record, config) > now;

/** A grant that was not claimed leaves `claim_ttl_ms` on the free record. */
const hasLine = (record: Item): boolean =>
  record.waiters !== undefined || record.mark !== undefined || (isLeased(record) && record.claim_ttl_ms !== undefined);

/**
 * kinds.md#change: a call has met a record of the other kind. The waiters of that kind go first, and grants that are over end. After a return, the call tries again.
 * @returns `withPermit`: the lease that the permit of the call replaces
 * @throws Refused WrongKind
 */
export function* changeKind(
  key: string,
  met: Item,
  config: Config,
  { withPermit = false } = {},
): Steps<Item | undefined> {
  let record = met;
  for (let tries = 1; tries <= MOST_TRIES && isPool(record) === isPool(met); tries++) {
    const now: number = yield NOW;
    if (isHeld(record, now, config)) throw new Refused('WrongKind');
    if (hasLine(record) && !config.bugs?.lineUnserved) {
      const isEmpty = yield* serve(key, record, config);
      if (!isEmpty) return undefined;
      record = { key, ...((yield { op: 'get', key }) as Item) };
      continue;
    }
    const over = isPool(record) ? holdersOf(record) : [];
    if (over.length === 0) {
      if (!isPool(record) && withPermit) return record;
      yield isPool(record) ? clearPool(record, now, config) : clearLease(record, now, config);
      return undefined;
    }
    record = (yield* write(end(key, { ended: over.slice(0, MOST_ENDED) }, config))).standing;
  }
  return undefined;
}

/** @returns whether the line of this kind is empty */
function* serve(key: string, record: Item, config: Config): Steps<boolean> {
  const { end: how } = isPool(record)
    ? yield* advance(key, record, config)
    : yield* handOff(key, record, isLeased(record) ? 'expired' : 'free', config);
  return how === 'empty';
}

/** A call or a task in line meets a record of the other kind. A line has waiters for one kind, so the row goes. @throws Refused LeaseLost */
export function* leaveLine({ key, ticket }: { key: string; ticket: string }, config: Config): Steps<void> {
  const { old }: { old?: Item } = yield { op: 'deleteRow', key, ticket };
  if (old?.cancelled_at !== undefined && !config.bugs?.leavesWithdrawn)
    throw new Refused('LeaseLost', { reason: 'cancelled' });
}
