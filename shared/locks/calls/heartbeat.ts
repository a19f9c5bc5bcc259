import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { expiresBefore, hasLeaseId, isLastHeartbeatBefore, isNotEnding } from '../record/conditions.ts';
import { EXCLUSIVE_PATH, isOnceRecord, ONCE_LEASE_ID_PREFIX, proofOf } from '../record/identity.ts';
import { grantView } from '../record/outcomes.ts';
import { entryOf } from '../record/record.ts';
import { leaseLost, lostReason } from '../record/refusals.ts';
import { capTtlOr, secondsAttribute, ttlAfter, updateKey } from '../record/requests.ts';
import type { HeartbeatInput } from './inputs.ts';
import type { LeaseGrant } from './types.ts';

type RunCall<Input, Answer> = (input: Input, call: Call) => Promise<Answer>;

/**
 * Runs a call on the record of `once` if the lease id belongs to a run. The code of `once` is loaded at the first such
 * id.
 */
export function byLeaseId<Input extends { key: string; leaseId: string }, Answer extends { key: string }>(
  run: RunCall<Input, Answer>,
): RunCall<Input, Answer> {
  return async (input, call) => {
    if (!input.leaseId.startsWith(ONCE_LEASE_ID_PREFIX)) return run(input, call);
    const { onRow } = await import('../../once/row-key.ts');
    return onRow(run)(input, call);
  };
}

/**
 * Extends a lease, a permit or a run of `once`, by its lease id.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export const heartbeat = (
  dependencies: LeaseDependencies,
): ((input: HeartbeatInput, call: Call) => Promise<LeaseGrant>) => byLeaseId(extendGrant(dependencies));

/**
 * Extends a grant by its ttl, or by a new `ttlSeconds`, with one conditional UpdateItem
 * (docs/protocols/locks.md#heartbeat). A heartbeat never shortens a grant. It revives an expired grant whose room
 * no caller has needed, and does not extend a grant that is ending.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export function extendGrant(dependencies: LeaseDependencies) {
  const { clock, ids } = dependencies;
  return async ({ key, leaseId, ttlSeconds }: HeartbeatInput, call: Call): Promise<LeaseGrant> => {
    const proof = proofOf(leaseId);
    if (!proof) throw leaseLost(key, 'unknown');
    const { path, id } = proof;
    const now = clock.now();
    const { condition, set, values } =
      ttlSeconds === undefined ? keepTtl(path, now) : setTtl({ key, path }, now, ttlSeconds);
    const { record } = await updateKey(
      dependencies,
      {
        key,
        set: ['#h.v = :version', '#h.b = :now', ...set],
        condition: all(hasLeaseId(proof), isNotEnding(path), condition),
        values: { ':version': text(ids.uuid()), ':now': integer(now), ...values },
        ...(path !== EXCLUSIVE_PATH && { ttl: ttlAfter(now) }),
      },
      call,
    );
    const entry = entryOf(record, proof.name);
    if (entry?.id === id && entry.path === path && !entry.isEnding) return grantView(key, entry, clock.now());
    throw leaseLost(key, lostReason(record, proof), record);
  };
}

interface Extension {
  condition: Condition;
  set: string[];
  values?: Item;
}

/**
 * Extends by the ttl of the entry: `e` is its expiry, `t` its ttl in milliseconds and `u` in seconds
 * (docs/protocols/records.md#entries). DynamoDB adds the ttl, so no read comes first.
 */
function keepTtl(path: string, now: number): Extension {
  const extension = { condition: isLastHeartbeatBefore(path, now), set: ['#h.e = :now + #h.t'] };
  if (path !== EXCLUSIVE_PATH) return extension;
  const set = [...extension.set, `lease_expiry = ${capTtlOr(':seconds')} + #h.u`];
  return { ...extension, set, values: { ':seconds': secondsAttribute(now) } };
}

/** Extends by another ttl, which becomes the ttl of the grant. */
function setTtl({ key, path }: { key: string; path: string }, now: number, ttlSeconds: number): Extension {
  const [expiresAt, ttlMs] = [now + ttlSeconds * 1000, ttlSeconds * 1000];
  const set = ['#h.e = :expires', '#h.t = :ttlMs'];
  const values = { ':expires': integer(expiresAt), ':ttlMs': integer(ttlMs) };
  const extension = { condition: expiresBefore(path, expiresAt), set, values };
  if (path !== EXCLUSIVE_PATH) return extension;
  const withSeconds = { ...values, ':seconds': secondsAttribute(expiresAt) };
  if (isOnceRecord(key))
    return { ...extension, set: [...set, `lease_expiry = ${capTtlOr(':seconds')} + #h.u`], values: withSeconds };
  return {
    ...extension,
    set: [...set, '#h.u = :ttlSeconds', `lease_expiry = ${capTtlOr(':seconds')}`],
    values: { ...withSeconds, ':ttlSeconds': integer(ttlSeconds) },
  };
}
