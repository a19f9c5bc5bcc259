import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { measureHandOff } from '../../line/hand-off-time.ts';
import { isOwnOf } from '../../line/request.ts';
import { type Asker, isCancelled, leaveLine } from '../../line/waiting-calls.ts';
import { isStillHeld } from '../conditions.ts';
import type { GrantRequest } from '../grant.ts';
import type { Leased, LeaseRecord } from '../record.ts';
import { releaser } from '../release.ts';
import { endsAt, isEnding, isLeased } from '../rules.ts';
import { leaseLost } from '../views.ts';
import { updateLease, type Written } from '../write.ts';
import { answer, renew } from './marks.ts';
import { paceAfter } from './pace.ts';

/** A claim whose answer comes late is renewed. Each renewal may be as late as the one before. */
const MAX_TRIES = 5;

export interface Claimed {
  standing: Leased;
  /** Another call of the request has claimed it. */
  repeated: boolean;
}

interface Claiming {
  asker: Asker & Pick<GrantRequest, 'ttlSeconds'>;
  /** The request's own grant, as it was last seen. */
  seen: Leased;
  /** The place of this very call, where it has one. */
  ticket?: string;
  /** Whether this very call has just written the grant, as a whole lease. */
  isOurs?: boolean;
}

/**
 * Makes the grant that a hand-off has left for this request a whole lease (docs/protocols/queue.md#claim). Then deletes its ticket. If the
 * request was withdrawn meanwhile, gives the lease back.
 * @returns undefined if another caller has the lease by now
 * @throws HoldfastError LeaseLost (`cancelled`), Throttled, Unavailable, OutcomeUnknown
 */
export async function claim(
  dependencies: LeaseDependencies,
  { asker, seen, ticket, isOurs }: Claiming,
  call: Call,
): Promise<Claimed | undefined> {
  const { key } = asker;
  const isOfAnotherPlace = ticket !== undefined && ticket !== seen.ticket;
  if (isOfAnotherPlace && (await isCancelled(dependencies, { key, ticket }, call)))
    throw leaseLost(key, 'cancelled', undefined);
  const claimed = await claimWhole(dependencies, { asker, seen, isOurs }, call);
  if (!claimed) return undefined;
  let { standing } = claimed;
  const rows = new Set([standing.ticket, ticket].filter((row) => row !== undefined));
  for (const row of rows) {
    // A withdrawal flags the row first, and reads the record second. So either this call sees the flag, or the withdrawal sees the claim.
    const { cancelled } = await leaveLine(dependencies, { key, ticket: row }, call);
    // The grant came by another place, so perhaps another call of the request has returned it.
    if (cancelled && row !== standing.ticket) throw leaseLost(key, 'cancelled', undefined);
    if (cancelled) await giveUp(dependencies, standing, call);
  }
  // Otherwise the call would wait on behind its own grant.
  if (!claimed.repeated && endsAt(standing) <= dependencies.clock.now()) {
    const renewed = await renew(dependencies, standing, call);
    if (!renewed.won || !isLeased(renewed.standing)) return undefined;
    standing = renewed.standing;
  }
  const now = dependencies.clock.now();
  if (endsAt(standing) <= now) return undefined;
  if (!claimed.repeated) measureHandOff(standing, now, call);
  return { ...claimed, standing };
}

/** @throws HoldfastError LeaseLost (`cancelled`) */
export async function giveUp(
  dependencies: LeaseDependencies,
  { key, leaseId = '' }: Leased,
  call: Call,
): Promise<never> {
  await releaser(dependencies)({ key, leaseId }, call);
  throw leaseLost(key, 'cancelled', undefined);
}

async function claimWhole(
  dependencies: LeaseDependencies,
  { asker, seen, isOurs: wasOurs = false }: Pick<Claiming, 'asker' | 'seen'> & { isOurs: boolean | undefined },
  call: Call,
): Promise<Claimed | undefined> {
  const { clock } = dependencies;
  let standing = seen;
  let isOurs = wasOurs;
  for (let tries = 0; ; tries++) {
    if (isOurs && isWorthIt(standing, clock.now())) return { standing, repeated: false };
    const isWhole = !isOurs && standing.claimTtlMs === undefined;
    if (tries === MAX_TRIES || (isWhole && endsAt(standing) <= clock.now())) return undefined;
    const written: Written = isOurs
      ? await renew(dependencies, standing, call)
      : isWhole
        ? await answer(dependencies, standing, call)
        : await claimOnce(dependencies, { record: standing, ttlSeconds: asker.ttlSeconds }, call);
    if (!isStillOwn(written.standing, asker)) return undefined;
    standing = written.standing;
    if (isWhole && written.won) return { standing, repeated: true };
    isOurs = written.won;
  }
}

const isStillOwn = (record: LeaseRecord, asker: Asker): record is Leased =>
  isLeased(record) && isOwnOf(record, asker) && !isEnding(record);

/** The answer of the write may have come late. */
const isWorthIt = (record: Leased, now: number): boolean => (endsAt(record) - now) * 2 > (record.ttlMs ?? 0);

/** @param ttlSeconds what the call asks for. The ttl on record may be that of another caller: a transfer by version 0.1.0 leaves it there. */
function claimOnce(
  dependencies: LeaseDependencies,
  { record, ttlSeconds }: { record: Leased; ttlSeconds: number },
  call: Call,
): Promise<Written> {
  const { key } = record;
  const now = dependencies.clock.now();
  const version = dependencies.ids.uuid();
  const pace = paceAfter(record);
  const expression =
    'SET lease_version = :version, acquired_at = :now, answered_at = :now, heartbeat_at = :now, expires_at = :expires, ' +
    `lease_expiry = :seconds, ttl_ms = :ttlMs, ttl_seconds = :ttlSeconds${pace === undefined ? '' : ', pace_ms = :pace'} ` +
    'REMOVE claim_ttl_ms';
  const values = {
    ':version': text(version),
    ':now': integer(now),
    ':expires': integer(now + ttlSeconds * 1000),
    ':seconds': integer(Math.ceil(now / 1000) + ttlSeconds),
    ':ttlMs': integer(ttlSeconds * 1000),
    ':ttlSeconds': integer(ttlSeconds),
    ...(pace !== undefined && { ':pace': integer(pace) }),
  };
  return updateLease(dependencies, { key, expression, condition: isStillHeld(record), values, version }, call);
}
