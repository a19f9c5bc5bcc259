import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { entryAt, hasLeaseId, isEntryAsSeen, isUnmarked } from '../record/conditions.ts';
import { EXCLUSIVE_PATH, type Proof, proofOf, remember, ticketOfLeaseId } from '../record/identity.ts';
import { entryOf, type KeyRecord } from '../record/record.ts';
import { lostReason } from '../record/refusals.ts';
import { endExclusive, ttlAfter, updateKey, type Written } from '../record/requests.ts';
import { byLeaseId } from './heartbeat.ts';
import type { ReleaseInput } from './inputs.ts';
import { operatorOf, type Released } from './types.ts';

/**
 * Releases a lease, a permit or a run of `once`, by its lease id.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export const release = (dependencies: LeaseDependencies): ((input: ReleaseInput, call: Call) => Promise<Released>) =>
  byLeaseId<ReleaseInput, Released>(releaseGrant(dependencies));

/**
 * Releases a grant with one conditional UpdateItem (docs/protocols/locks.md#release). A caller that does not hold the
 * grant receives an answer instead of an error, because releases stand in `finally` blocks. A repeated release answers
 * true while the record remembers the request (docs/safety.md#3-a-repeat-is-not-a-rival).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function releaseGrant(dependencies: LeaseDependencies) {
  return async ({ key, leaseId }: ReleaseInput, call: Call): Promise<Released> => {
    const proof = proofOf(leaseId);
    if (!proof) return { key, released: false, reason: 'unknown' };
    const quickOutcome =
      ticketOfLeaseId(leaseId) === undefined ? undefined : await releaseQuickly(dependencies, { key, leaseId }, call);
    if (quickOutcome === 'handedOff') return { key, released: true };
    const { won, record, unanswered, hasServedLine } = await endGrant(dependencies, { key, proof }, call);
    const reason = entryOf(record, proof.name) ? 'unknown' : lostReason(record, proof);
    const isInDoubt = unanswered || quickOutcome === 'unanswered';
    // An earlier call of this release may have exited before its hand-off.
    const mustHandOff = won ? !hasServedLine : isInDoubt && reason === 'released';
    if (mustHandOff) await handOffToLine(dependencies, { record, isReleased: won }, call);
    if (won) return { key, released: true };
    if (reason === 'released') return { key, released: true };
    // A try without an answer may have released the grant, and the record may have forgotten the request since.
    return { key, released: false, reason: reason === 'taken' && isInDoubt ? 'unknown' : reason };
  };
}

/**
 * Releases a grant that was made while others were in line, and hands the key off in the same write
 * (docs/protocols/queue.md#quick-release).
 */
async function releaseQuickly(dependencies: LeaseDependencies, input: ReleaseInput, call: Call) {
  const { quickRelease } = await import('../line/quick-release.ts');
  return quickRelease(dependencies, input, call);
}

/**
 * Hands off the room of a grant that has ended (docs/protocols/queue.md#hand-off). Every call that ends a grant must do
 * so.
 * @param how `ticket`: the ticket of the grant, if its task may not have been notified yet. `isReleased`: whether a
 * release of a shared holder has just written the record
 */
export async function handOffToLine(
  dependencies: LeaseDependencies,
  { record, ticket, isReleased }: { record: KeyRecord; ticket?: string | undefined; isReleased?: boolean },
  call: Call,
): Promise<void> {
  if (record.mark === undefined && ticket === undefined) return;
  const { handOffAfter } = await import('../line/hand-off.ts');
  await handOffAfter(dependencies, { record, isReleased }, call);
}

interface GrantToRelease {
  key: string;
  /** Identifies the grant. It has a `ticket` if the row of the waiter may still be there. */
  proof: Proof & { ticket?: string | undefined };
  brokenFence?: number;
  /** The version that the grant must still have. */
  seenVersion?: string | undefined;
}

/** `hasServedLine`: the write has served the line too. */
type ReleaseWritten = Written & { hasServedLine?: boolean };

/** How many writes may lose because another call has changed the exclusive grant or the mark. */
const MAX_RELEASE_TRIES = 20;

/**
 * Ends a grant, for its holder or for an operator. If others are in line, the write that ends an exclusive grant also
 * serves the next waiter. The end of a shared grant only frees room, which the caller of this function then hands off.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endGrant(
  dependencies: LeaseDependencies,
  releasing: GrantToRelease,
  call: Call,
): Promise<ReleaseWritten> {
  const { proof, seenVersion, brokenFence } = releasing;
  let isInDoubt = false;
  for (let tries = 1; ; tries++) {
    const written = await writeEnd(dependencies, releasing, call);
    const { won, record } = written;
    isInDoubt ||= written.unanswered;
    const entry = record.entries.find(({ path, id }) => path === EXCLUSIVE_PATH && id === proof.id);
    if (won || !entry || (seenVersion !== undefined && entry.version !== seenVersion) || tries === MAX_RELEASE_TRIES)
      return { ...written, unanswered: isInDoubt };
    if (record.mark === undefined) continue;
    const how = brokenFence === undefined ? 'released' : 'broken';
    const { handOff } = await import('../line/hand-off.ts');
    const toEnd = [{ entry, how, operator: brokenFence === undefined ? undefined : operatorOf(call) } as const];
    const { record: current, endedForGood, unanswered } = await handOff(dependencies, { record, toEnd }, call);
    isInDoubt ||= unanswered === true;
    if (endedForGood) return { won: true, record: current, unanswered: isInDoubt, hasServedLine: true };
  }
}

/** Ends a grant, and remembers its request. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
function writeEnd(
  dependencies: LeaseDependencies,
  { key, proof, brokenFence, seenVersion }: GrantToRelease,
  call: Call,
): Promise<Written> {
  const { name, path, ticket } = proof;
  const now = dependencies.clock.now();
  const isBroken = brokenFence !== undefined;
  const how = isBroken ? 'broken' : 'released';
  const ends = {
    key,
    entry: { name, fence: brokenFence },
    how,
    now,
    operator: isBroken ? operatorOf(call) : undefined,
  } as const;
  const { ttl, ...update } =
    path === EXCLUSIVE_PATH ? { ...endExclusive(dependencies, ends), ttl: undefined } : endShared(ends);
  const isThisGrant =
    seenVersion === undefined
      ? hasLeaseId(proof)
      : all(hasLeaseId(proof), isEntryAsSeen({ path, version: seenVersion }));
  return updateKey(
    dependencies,
    {
      key,
      ...update,
      set: ['used = used - #h.w', ...update.set],
      condition: path === EXCLUSIVE_PATH ? all(isThisGrant, isUnmarked) : isThisGrant,
      names: { ...entryAt(path), ...update.names },
      ...(ttl && { ttl }),
      // If an exclusive grant ends without a mark and without a row of a waiter, nothing needs the record after the
      // write.
      ...(path === EXCLUSIVE_PATH && ticket === undefined && { returns: 'NONE' as const }),
    },
    call,
  );
}

/** Notes when room was freed. DynamoDB computes each value from the record as it was before the write. */
const FREED = ['freed_before = if_not_exists(freed_at, :now)', 'freed_at = :now', 'used_before = used'];

const endShared = ({
  entry: { name, fence },
  now,
}: {
  entry: { name: string; fence: number | undefined };
  now: number;
}) => {
  const { set, values } = remember(name, fence);
  return {
    set: ['turn_ms = :now - #h.a', ...FREED, ...set],
    remove: ['#h', '#f'],
    names: { '#f': `f${name}` },
    values: { ...values, ':now': integer(now) },
    ttl: ttlAfter(now),
  };
};
