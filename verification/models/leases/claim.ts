import { lost, NOW } from '../engine/common.ts';
import { deleteRow, leaveRow } from '../engine/rows.ts';
import type { Config, Item, Request, Steps } from '../engine/types.ts';
import { storedPrevious, writeVersion } from './common.ts';
import { release } from './release.ts';
import type { Previous } from './writes.ts';
import * as w from './writes.ts';

const MOST_TRIES = 5;

export interface Granted {
  granted: Item;
  repeated: boolean;
  /** `waited` ends here. */
  triedAt: number;
  previous: Previous | undefined;
  claimed: boolean;
}

interface Seen {
  record: Item;
  /** Whether this very call has written it as a whole one. */
  isMine?: boolean;
}

/**
 * queue.md#claim: the grant on record is this request's, and becomes a whole one.
 * @param ticket the row of this very call
 * @returns undefined where the grant is another's by now
 */
export function* claim(
  request: Request,
  { record: seen, isMine = false }: Seen,
  ticket: string | undefined,
  config: Config,
): Steps<Granted | undefined> {
  if (config.bugs?.rowBeforeClaim && seen.ticket !== undefined) yield deleteRow(request.key, seen.ticket);
  if (ticket !== undefined && ticket !== seen.ticket) {
    const own: Item | undefined = yield { op: 'getRow', key: request.key, ticket };
    if (own?.cancelled_at !== undefined && !config.bugs?.cancelUnseen) throw lost('cancelled');
  }
  const claimed = yield* claimWhole(request, { record: seen, isMine }, config);
  if (!claimed) return undefined;
  const { record, repeated } = claimed;
  // The row that the grant came by, and this call's own. A withdrawal that wrote to it is seen here; a later one sees the claim.
  for (const row of new Set([record.ticket, ticket])) {
    if (row === undefined || config.bugs?.rowBeforeClaim) continue;
    const { old } = yield config.bugs?.cancelledByOldItem ? deleteRow(request.key, row) : leaveRow(request.key, row);
    if (old?.cancelled_at === undefined || config.bugs?.cancelUnseen) continue;
    // The grant of another place of the request may have been answered already.
    if (row === record.ticket) yield* release(request.key, record.lease_id, config);
    throw lost('cancelled');
  }
  const triedAt: number = yield NOW;
  if (w.endsAt(record, config) <= triedAt && !config.bugs?.claimTrusted) return undefined;
  const granted = config.bugs?.claimCountsFromAnswer ? { ...record, expires_at: triedAt + record.ttl_ms } : record;
  return { granted, repeated, triedAt, previous: storedPrevious(record), claimed: !repeated };
}

function* claimWhole(
  request: Request,
  seen: Seen,
  config: Config,
): Steps<{ record: Item; repeated: boolean } | undefined> {
  let { record, isMine = false } = seen;
  for (let tries = 0; ; tries++) {
    const now: number = yield NOW;
    const left = w.endsAt(record, config) - now;
    if (isMine) {
      if (config.bugs?.claimTrusted || left * 2 > record.ttl_ms) return { record, repeated: false };
    } else if (record.claim_ttl_ms === undefined) return left > 0 ? { record, repeated: true } : undefined; // another call of this request has claimed it
    if (tries === MOST_TRIES) return undefined;
    const version = config.uuid();
    const op = isMine ? w.renew(record, { version, now }, config) : w.claim(record, version, now, config);
    const { won, standing } = yield* writeVersion(op, version);
    if (!w.isOwnOf(standing, request) || !w.isLeased(standing)) return undefined;
    record = standing;
    isMine = won;
  }
}
