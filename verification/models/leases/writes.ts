import { all, both, deleteRow } from '../engine/rows.ts';
import type { Condition, Config, Item, Op, Request } from '../engine/types.ts';

// Every conditional write of docs/protocols/leases.md and queue.md. `config.bugs` switches one rule off.

/** The record is not that of a pool. */
const IS_LEASE = 'attribute_not_exists(used) AND attribute_not_exists(mark)';
const IS_HELD = 'attribute_exists(lease_version)';
const IS_STILL_HELD = 'lease_version = :seen';
const IS_FREE = 'attribute_not_exists(lease_version)';
const IS_UNMARKED = 'attribute_not_exists(waiters)';
const IS_CLAIMED = 'attribute_not_exists(claim_ttl_ms)';
const IS_EXPIRED =
  'attribute_exists(lease_version) AND (expires_at < :cut OR (attribute_not_exists(expires_at) AND lease_expiry < :cutSeconds))';
const FENCE_RISES = 'attribute_not_exists(fence) OR fence < :fence';

export const isLeased = (record: Item): boolean => record.lease_version !== undefined;
export const endsAt = (record: Item, { second }: Config): number =>
  record.expires_at ??
  (record.lease_expiry === undefined ? Number.POSITIVE_INFINITY : (record.lease_expiry + 1) * second);
export const takeoverAt = (record: Item, config: Config): number =>
  endsAt(record, config) + (config.bugs?.noSkew ? 0 : config.skew) + (record.expires_at === undefined ? 0 : 1);
type Asker = Pick<Request, 'requestId' | 'holder'> & { principal?: string | undefined };
export const isOwn = (record: Item, asker: Asker): boolean =>
  record.request_id === asker.requestId && record.holder === asker.holder;
export const isOwnOf = (record: Item, asker: Asker): boolean =>
  isOwn(record, asker) && record.principal === asker.principal;
export const isRepeatable = (record: Item, asker: Asker, now: number, config: Config): boolean =>
  isOwnOf(record, asker) && isLeased(record) && endsAt(record, config) > now;
export const risingFence = (record: Item, now: number): number =>
  record.fence === undefined ? now : Math.max(record.fence + 1, now);
const secondsOf = (ms: number, { second }: Config) => Math.ceil(ms / second);

/** G(rec): the grant stands as it was read, or nobody has had the key since it was read free. */
export function unchanged(record: Item, config?: Config): Condition {
  const kind = config?.bugs?.leaseOfAnyKind ? undefined : IS_LEASE;
  if (isLeased(record)) return { condition: all(kind, IS_STILL_HELD), values: { ':seen': record.lease_version } };
  const free = all(kind, IS_FREE);
  if (config?.bugs?.freeWithoutFence) return { condition: free, values: {} };
  return record.fence === undefined
    ? { condition: all(free, 'attribute_not_exists(fence)'), values: {} }
    : { condition: all(free, 'fence = :free'), values: { ':free': record.fence } };
}
/** A free record has no version, so a mark that began again there is known by its `next_ticket`. */
export function queueUnchanged(record: Item, config?: Config): Condition {
  const { waiters, next_ticket: next } = record;
  if (waiters === undefined) return { condition: IS_UNMARKED, values: {} };
  const isSame = { condition: 'waiters = :waiters', values: { ':waiters': waiters } };
  if (isLeased(record) || config?.bugs?.freeMarkByCount) return isSame;
  return next === undefined
    ? both(isSame, { condition: 'attribute_not_exists(next_ticket)', values: {} })
    : both(isSame, { condition: 'next_ticket = :seenNext', values: { ':seenNext': next } });
}

export interface Previous {
  holder: string;
  fence: number;
  ended: string;
  at?: number | undefined;
}

/** What the next holder learns of the one before. A grant that nobody claimed, or that no task heard of, passes on what it was given. */
export function previousOf(record: Item, ending: string, untold: boolean, config: Config): Previous | undefined {
  const passedOn =
    record.prev_fence === undefined
      ? undefined
      : { holder: record.prev_holder, fence: record.prev_fence, ended: record.prev_ended, at: record.prev_at };
  const unheard = untold || (record.holder === undefined && record.fence !== undefined);
  if (unheard || (record.claim_ttl_ms !== undefined && !config.bugs?.previousOfUnclaimed)) return passedOn;
  if (record.holder === undefined || record.fence === undefined) return undefined;
  const { holder, fence } = record;
  if (!isLeased(record))
    return { holder, fence, ended: record.broken_at === undefined ? 'released' : 'broken', at: record.released_at };
  return { holder, fence, ended: ending, at: ending === 'expired' ? record.expires_at : undefined };
}

export interface Grant {
  key: string;
  version: string;
  leaseId: string;
  ttl: number;
  holder: string;
  requestId: string;
  fence: number;
  acquiredAt: number;
  principal?: string | undefined;
  execution?: string | undefined;
  ticket?: string | undefined;
  /** To a caller that waits: whole only once it has claimed it. */
  unclaimed?: boolean;
}

function grantItem(grant: Grant, config: Config): Item {
  const life = grant.unclaimed ? config.window : grant.ttl;
  return {
    key: grant.key,
    lease_version: grant.version,
    lease_id: grant.leaseId,
    lease_expiry: secondsOf(grant.acquiredAt + life, config),
    expires_at: grant.acquiredAt + life,
    heartbeat_at: grant.acquiredAt,
    ttl_ms: life,
    holder: grant.holder,
    request_id: grant.requestId,
    fence: grant.fence,
    acquired_at: grant.acquiredAt,
    ...(grant.unclaimed && { claim_ttl_ms: grant.ttl }),
    ...(grant.principal !== undefined && { principal: grant.principal }),
    ...(grant.execution !== undefined && { execution: grant.execution }),
    ...(grant.ticket !== undefined && { ticket: grant.ticket }),
  };
}

/** leases.md#acquire */
export function acquire(grant: Grant, config: Config): Op {
  const cut = grant.acquiredAt - (config.bugs?.noSkew ? 0 : config.skew);
  const expired = config.bugs?.unclaimedOverwritten ? IS_EXPIRED : all(IS_EXPIRED, IS_CLAIMED);
  return {
    op: 'put',
    key: grant.key,
    item: grantItem(grant, config),
    condition: all(
      config.bugs?.leaseOfAnyKind ? undefined : IS_LEASE,
      config.bugs?.barging ? undefined : IS_UNMARKED,
      `(${all(IS_FREE, 'NOT (request_id = :request AND holder = :holder)')}) OR (${expired})`,
      FENCE_RISES,
    ),
    values: {
      ':request': grant.requestId,
      ':holder': grant.holder,
      ':cut': cut,
      ':cutSeconds': Math.floor(cut / config.second),
      ':fence': grant.fence,
    },
  };
}

/** leases.md#heartbeat, for the standing ttl */
export const heartbeat = (key: string, leaseId: string, version: string, now: number): Op => ({
  op: 'update',
  key,
  update: 'SET lease_version = :version, heartbeat_at = :now, expires_at = :now + ttl_ms, lease_expiry = :now + ttl_ms',
  condition: all('lease_id = :leaseId', IS_HELD, 'heartbeat_at < :now'),
  values: { ':leaseId': leaseId, ':version': version, ':now': now },
});

interface End extends Condition {
  clearMark?: boolean;
  forget?: boolean;
  broken?: boolean;
}

/** leases.md#release. `forget`: nobody knew of the grant. `claim_ttl_ms` stays: nobody held it. */
export function end(
  key: string,
  { condition, values, clearMark, forget, broken }: End,
  now: number,
  config: Config,
): Op {
  const removes = ['lease_version', 'expires_at', 'heartbeat_at', 'execution'];
  if (clearMark) removes.push('waiters', 'next_ticket');
  if (forget && !config.bugs?.untoldRemembered) removes.push('request_id', 'holder', 'principal', 'ticket');
  return {
    op: 'update',
    key,
    update: `SET released_at = :now, lease_expiry = :retention${broken ? ', broken_at = :now' : ''} REMOVE ${removes.join(', ')}`,
    condition,
    values: { ...values, ':now': now, ':retention': secondsOf(now, config) + config.retention },
  };
}

export const release = (key: string, leaseId: string, now: number, config: Config): Op =>
  end(
    key,
    {
      condition: all('lease_id = :leaseId', IS_HELD, config.bugs?.releaseIgnoresMark ? undefined : IS_UNMARKED),
      values: { ':leaseId': leaseId },
    },
    now,
    config,
  );

/** leases.md#break, of a lease that nobody waits for */
export const breakLease = (key: string, fence: number, now: number, config: Config): Op =>
  end(
    key,
    {
      condition: all(config.bugs?.breakOfAnyKind ? undefined : IS_LEASE, 'fence = :fence', IS_HELD, IS_UNMARKED),
      values: { ':fence': fence },
      broken: true,
    },
    now,
    config,
  );

/** Ends a grant by its version, if nobody is in line. */
export const endStanding = (record: Item, now: number, config: Config): Op =>
  end(
    record.key,
    { condition: all(IS_STILL_HELD, IS_UNMARKED), values: { ':seen': record.lease_version } },
    now,
    config,
  );

const OPTIONAL = ['principal', 'execution', 'released_at', 'broken_at', 'claim_ttl_ms'];
const PREVIOUS = ['prev_holder', 'prev_fence', 'prev_ended', 'prev_at'];

/** The ticket that a lease id names, where others were in line when it was granted. */
export const ticketOfLeaseId = (leaseId: string): string | undefined => leaseId.split('+')[1];

interface Transfer {
  from: Item;
  previous: Previous | undefined;
  /** Whether others are in line, and the first of them. */
  others: boolean;
  next: string | undefined;
}

/** queue.md#hand-off, step 3 */
export function transfer(grant: Grant, { from, previous, others, next }: Transfer, config: Config): Op {
  const item: Item = {
    ...grantItem(grant, config),
    ...(previous && {
      prev_holder: previous.holder,
      prev_fence: previous.fence,
      prev_ended: previous.ended,
      prev_at: previous.at ?? grant.acquiredAt,
    }),
    ...(others && next !== undefined && { next_ticket: next }),
  };
  delete item.key;
  const names = Object.keys(item);
  const removes = [...OPTIONAL, ...PREVIOUS, 'next_ticket'].filter((name) => !names.includes(name));
  const kept = from.waiters === undefined ? ', waiters = if_not_exists(waiters, :one)' : '';
  const guard =
    others || config.bugs?.markUnguarded
      ? unchanged(from, config)
      : both(unchanged(from, config), queueUnchanged(from, config));
  return {
    op: 'update',
    key: grant.key,
    update:
      `SET ${names.map((name) => `#${name} = :${name}`).join(', ')}${others ? kept : ''} ` +
      `REMOVE ${removes.map((name) => `#${name}`).join(', ')}${others ? '' : ', waiters'}`,
    names: Object.fromEntries([...names, ...removes].map((name) => [`#${name}`, name])),
    condition: all(guard.condition, config.bugs?.transferFence ? undefined : FENCE_RISES),
    values: {
      ...Object.fromEntries(names.map((name) => [`:${name}`, item[name]])),
      ...(others && kept && { ':one': 1 }),
      ...guard.values,
    },
  };
}

/** queue.md#quick-release: by the holder, that knows its lease id and not the record. The mark stays. */
export function quickTransfer(
  grant: Grant,
  { leaseId, next }: { leaseId: string; next: string | undefined },
  config: Config,
): Op {
  const item: Item = { ...grantItem(grant, config), prev_ended: 'released', prev_at: grant.acquiredAt };
  if (next !== undefined) item.next_ticket = next;
  delete item.key;
  const names = Object.keys(item);
  const removes = [...OPTIONAL, 'next_ticket'].filter((name) => !names.includes(name));
  const isAnother = 'NOT (request_id = :request_id AND holder = :holder)';
  return {
    op: 'update',
    key: grant.key,
    update:
      `SET ${names.map((name) => `#${name} = :${name}`).join(', ')}, prev_holder = holder, prev_fence = fence ` +
      `REMOVE ${removes.map((name) => `#${name}`).join(', ')}`,
    names: Object.fromEntries([...names, ...removes].map((name) => [`#${name}`, name])),
    condition: all(
      config.bugs?.quickUnproven ? undefined : 'lease_id = :leaseId',
      IS_HELD,
      config.bugs?.quickToItself ? undefined : isAnother,
      config.bugs?.quickUnmarked ? undefined : 'attribute_exists(waiters)',
      config.bugs?.transferFence ? 'attribute_exists(fence)' : 'fence < :fence',
    ),
    values: {
      ...Object.fromEntries(names.map((name) => [`:${name}`, item[name]])),
      ...(!config.bugs?.quickUnproven && { ':leaseId': leaseId }),
    },
  };
}

/** queue.md#join and #park: the row first, then this. */
export const mark = (key: string, guard: Condition, ticket: string | undefined, config: Config): Op => ({
  op: 'update',
  key,
  update: `SET waiters = ${config.bugs?.markFlag ? ':one' : 'if_not_exists(waiters, :zero) + :one'}${
    ticket === undefined ? '' : ', next_ticket = if_not_exists(next_ticket, :ticket)'
  }`,
  condition: guard.condition,
  values: { ...guard.values, ':zero': 0, ':one': 1, ...(ticket !== undefined && { ':ticket': ticket }) },
});
const ofLease = (config: Config) => (config.bugs?.markOfAnyKind ? undefined : IS_LEASE);
export const heldByAnother = ({ requestId, holder }: Asker, config: Config): Condition => ({
  condition: all(ofLease(config), IS_HELD, 'NOT (request_id = :request AND holder = :holder)'),
  values: { ':request': requestId, ':holder': holder },
});
/** Of a call: also a record that is free again after a grant. */
export const ofAnother = ({ requestId, holder }: Asker, config: Config): Condition => ({
  condition: all(
    ofLease(config),
    `${IS_HELD} OR attribute_exists(fence)`,
    'NOT (request_id = :request AND holder = :holder)',
  ),
  values: { ':request': requestId, ':holder': holder },
});
export const markAgain = (record: Item, ticket: string | undefined, config: Config): Op =>
  mark(record.key, both(unchanged(record), { condition: IS_UNMARKED, values: {} }), ticket, config);

/** Of a held record with a new version: its counter begins at 1 again, and a stalled release may have seen it at that. */
export function clearMark(record: Item, version: string, config: Config): Op {
  const guard = config.bugs?.markUnguarded
    ? unchanged(record)
    : both(unchanged(record), queueUnchanged(record, config));
  const rotates = isLeased(record) && !config.bugs?.markRestarts;
  return {
    op: 'update',
    key: record.key,
    update: `${rotates ? 'SET lease_version = :version ' : ''}REMOVE waiters, next_ticket`,
    condition: guard.condition,
    values: { ...guard.values, ...(rotates && { ':version': version }) },
  };
}
/** @param ticket of the task that is notified of the grant from now on */
export const rotate = (record: Item, version: string): Op => ({
  op: 'update',
  key: record.key,
  update: 'SET lease_version = :version',
  condition: IS_STILL_HELD,
  values: { ':seen': record.lease_version, ':version': version },
});

export function renew(record: Item, { version, now }: { version: string; now: number }, config: Config): Op {
  const { update, ...op } = rotate(record, version);
  const expires = now + record.ttl_ms;
  return {
    ...op,
    update: `${update}, heartbeat_at = :now, expires_at = :expires, lease_expiry = :seconds`,
    values: { ...op.values, ':now': now, ':expires': expires, ':seconds': secondsOf(expires, config) },
  };
}

/** queue.md#claim: the window becomes the whole ttl. */
export const claim = (record: Item, version: string, now: number, config: Config): Op => ({
  op: 'update',
  key: record.key,
  update:
    'SET lease_version = :version, acquired_at = :now, heartbeat_at = :now, expires_at = :expires, lease_expiry = :seconds, ttl_ms = :ttl REMOVE claim_ttl_ms',
  condition: config.bugs?.claimUnconditional ? IS_HELD : IS_STILL_HELD,
  values: {
    ':version': version,
    ':now': now,
    ':expires': now + record.claim_ttl_ms,
    ':seconds': secondsOf(now + record.claim_ttl_ms, config),
    ':ttl': record.claim_ttl_ms,
    ...(!config.bugs?.claimUnconditional && { ':seen': record.lease_version }),
  },
});

// Rows of callers

const ofRequest = ({ requestId, holder, principal }: Asker): Condition => ({
  condition: all(
    'request_id = :request AND holder = :holder',
    principal === undefined ? 'attribute_not_exists(principal)' : 'principal = :principal',
  ),
  values: { ':request': requestId, ':holder': holder, ...(principal !== undefined && { ':principal': principal }) },
});
/** Asked again in time: the place is kept. */
export function rejoin(ticket: string, request: Request, deadline: number, keepUntil: number): Op {
  const own = ofRequest(request);
  return {
    op: 'updateRow',
    key: request.key,
    ticket,
    update: 'SET deadline = :deadline, keep_until = :keep',
    condition: all(own.condition, 'attribute_not_exists(cancelled_at)'),
    values: { ...own.values, ':deadline': deadline, ':keep': keepUntil },
  };
}
export function cancelRow(ticket: string, request: Request, now: number): Op {
  const own = ofRequest(request);
  return {
    op: 'updateRow',
    key: request.key,
    ticket,
    update: 'SET cancelled_at = :now',
    condition: own.condition,
    values: { ...own.values, ':now': now },
  };
}
/** The row that a caller names who asks again, and is granted the lease at once. */
export function leaveOwnRow(ticket: string, request: Request): Op {
  const own = ofRequest(request);
  return {
    ...deleteRow(request.key, ticket),
    condition: all(own.condition, 'attribute_not_exists(cancelled_at)'),
    values: own.values,
  };
}
