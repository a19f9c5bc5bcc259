import { NOW } from '../engine/common.ts';
import type { Config, Item, Request, Steps } from '../engine/types.ts';
import * as line from '../line/claim.ts';
import type { Lock } from '../line/lock.ts';
import { storedPrevious } from './common.ts';
import { release } from './release.ts';
import type { Previous } from './writes.ts';
import * as w from './writes.ts';

export interface Granted {
  granted: Item;
  repeated: boolean;
  /** `waited` ends here. */
  triedAt: number;
  previous: Previous | undefined;
  claimed: boolean;
}

/** A lease, as one request sees it. */
const lockOf = (request: Request, config: Config): Lock => ({
  key: request.key,
  own(record) {
    if (!w.isOwnOf(record, request) || !w.isLeased(record)) return undefined;
    const { lease_version: version, ticket, claim_ttl_ms: claimTtl, ttl_ms: ttl } = record;
    return { version, ticket, claimTtl, ttl, expiresAt: w.endsAt(record, config) };
  },
  renewal: (record, version, now) =>
    record.claim_ttl_ms === undefined
      ? w.renew(record, { version, now }, config)
      : w.claim(record, version, now, config),
  *repeat(record) {
    return w.endsAt(record, config) > (yield NOW) ? record : undefined;
  },
  *giveUp({ lease_id }) {
    yield* release(request.key, lease_id, config);
  },
});

/** queue.md#claim. @returns undefined where the grant is another's by now */
export function* claim(
  request: Request,
  seen: line.Seen,
  ticket: string | undefined,
  config: Config,
): Steps<Granted | undefined> {
  const claimed = yield* line.claim(lockOf(request, config), seen, ticket, config);
  if (!claimed) return undefined;
  const { record, repeated, triedAt } = claimed;
  const granted = config.bugs?.claimCountsFromAnswer ? { ...record, expires_at: triedAt + record.ttl_ms } : record;
  return { granted, repeated, triedAt, previous: storedPrevious(record), claimed: !repeated };
}
