import { lost, NOW, write } from '../engine/common.ts';
import { deleteRow, leaveRow } from '../engine/rows.ts';
import type { Config, Item, Steps } from '../engine/types.ts';
import type { Lock } from './lock.ts';

const MOST_WRITES = 5;

export interface Claimed {
  record: Item;
  repeated: boolean;
  /** `waited` ends here. */
  triedAt: number;
}

export interface Seen {
  record: Item;
  /** Whether this very call has written it as a full grant. */
  isMine?: boolean;
}

/**
 * queue.md#claim: the grant on record is this request's, and becomes a full one.
 * @param ticket the row of this very call
 * @returns undefined where the grant is another's by now
 * @throws Refused LeaseLost where a row was withdrawn
 */
export function* claim(lock: Lock, seen: Seen, ticket: string | undefined, config: Config): Steps<Claimed | undefined> {
  const { key } = lock;
  const bugs = config.bugs ?? {};
  const granted = lock.own(seen.record)?.ticket;
  if (bugs.rowBeforeClaim && granted !== undefined) yield deleteRow(key, granted);
  if (ticket !== undefined && ticket !== granted && !bugs.cancelUnseen && !bugs.ownRowUnread) {
    const own: Item | undefined = yield { op: 'getRow', key, ticket };
    if (own?.cancelled_at !== undefined) throw lost('cancelled');
  }
  const claimed = yield* claimFull(lock, seen, config);
  if (!claimed) return undefined;
  // The row that the grant came by, and this call's own. A withdrawal that wrote to a row before the claim is seen here. A later one sees the claim.
  for (const row of new Set([granted, ticket])) {
    if (row === undefined || bugs.rowBeforeClaim) continue;
    const { old } = yield bugs.cancelledByOldItem ? deleteRow(key, row) : leaveRow(key, row);
    if (old?.cancelled_at === undefined || bugs.cancelUnseen) continue;
    // The grant of another row of the request may have been answered already.
    if (row === granted) yield* lock.giveUp(claimed.record);
    else if (bugs.ownRowUnread) continue;
    throw lost('cancelled');
  }
  const triedAt: number = yield NOW;
  const isOver = Number(lock.own(claimed.record)?.expiresAt) <= triedAt;
  return isOver && !bugs.claimTrusted ? undefined : { ...claimed, triedAt };
}

/** Looks at the clock again after each write: a claim that was answered late is renewed. */
function* claimFull(lock: Lock, seen: Seen, config: Config): Steps<{ record: Item; repeated: boolean } | undefined> {
  let { record, isMine = false } = seen;
  for (let writes = 0; ; writes++) {
    const grant = lock.own(record);
    if (!grant) return undefined;
    const now: number = yield NOW;
    if (isMine) {
      if (config.bugs?.claimTrusted || (grant.expiresAt - now) * 2 > grant.ttl) return { record, repeated: false };
    } else if (grant.claimTtl === undefined) {
      const repeated = yield* lock.repeat(record);
      return repeated && { record: repeated, repeated: true };
    }
    if (writes === MOST_WRITES) return undefined;
    const version = config.uuid();
    const { won, standing } = yield* write(lock.renewal(record, version, now));
    record = standing;
    isMine = won || lock.own(standing)?.version === version;
  }
}
