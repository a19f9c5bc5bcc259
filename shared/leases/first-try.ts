import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, any, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { isOwnOf, MAX_DUPLICATE_CONFLICTS } from '../line/acquisition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Granted as GrantedTo } from '../line/lock.ts';
import {
  countsUntil,
  isBelow,
  isClaimed,
  isExpired,
  isFreeFor,
  isLease,
  isNotEndingFor,
  isUnmarked,
  wasNotReleasedAfter,
} from './conditions.ts';
import { type Grant, type GrantRequest, grantItem, newGrant } from './grant.ts';
import type { HandedOff } from './hand-off.ts';
import { endedBefore } from './previous.ts';
import { type Leased, type LeaseRecord, parseRecord, unusable } from './record.ts';
import { endReason, isLate, isLeased, isOver, isRepeatable, takeoverAt } from './rules.ts';
import { leaseLost } from './views.ts';

/** A grant. */
type Granted = GrantedTo<LeaseRecord> & { won: true };

/** A grant, or the record that keeps the request from one. */
type Outcome = Granted | { won: false; record: LeaseRecord };

/** After a try that failed by its fence or by a later release, the next try fails only if a new grant came first. */
const MAX_TRIES = 5;

/**
 * Acquires without waiting (docs/protocols/leases.md#acquire). One write, or two if the key's fence is at or ahead of the clock here: in the
 * same millisecond, or after the clock stepped back. Two as well if the lease was released later than the try began, by more than the margin.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function tryOnce(dependencies: LeaseDependencies, request: GrantRequest, call: Call): Promise<Outcome> {
  let before: LeaseRecord = { key: request.key };
  let meetings = 1;
  for (let tries = 1; ; tries++) {
    const grant = newGrant(dependencies, request, before);
    const triedAt = grant.acquiredAt;
    const outcome = await put(dependencies, { grant, before }, call);
    if (outcome.won || outcome.old?.lease_version?.S === grant.version) {
      const granted = await settle(dependencies, { grant, ...outcome }, call);
      if (granted) return granted;
      continue;
    }
    const record = parseRecord(outcome.old ?? { key: text(request.key) });
    if (isOwnOf(record, request) && isOver(record)) throw leaseLost(request.key, endReason(record), record);
    if (isRepeatable(record, request, triedAt)) {
      const repeated = await repeat(dependencies, { request, record }, call);
      if (repeated) return { ...repeated, won: true, repeated: true };
      if (meetings++ === MAX_DUPLICATE_CONFLICTS) return { won: false, record };
      tries--;
      continue;
    }
    const couldBeHad = !isLeased(record) || takeoverAt(record, dependencies.clockSkewMs) <= triedAt;
    if (!couldBeHad || tries >= MAX_TRIES) return { won: false, record };
    if (record.malformed !== undefined) throw unusable(record);
    if (record.waiters !== undefined || (isLeased(record) && record.claimTtlMs !== undefined)) {
      const { end, record: after } = await handOffIfNext(dependencies, record, call);
      // No waiter is left, as this call or another call has seen.
      const isFree = end === 'empty' || (!isLeased(after) && after.waiters === undefined);
      // A duplicate call may have a grant by now. Then the next write meets its grant.
      if (!isFree && !isRepeatable(after, request, triedAt)) return { won: false, record: after };
    }
    before = record;
  }
}

/**
 * @param before the record as an earlier try met it. It has the release that this call has seen. The put replaces the record, so it keeps the count of callers
 * that may come back
 */
function put(
  { dynamodb, table, clockSkewMs }: LeaseDependencies,
  { grant, before }: { grant: Grant; before: LeaseRecord },
  call: Call,
) {
  const cut = grant.acquiredAt - clockSkewMs;
  const { lineOut, lineUntil = 0, releasedAt = 0 } = before;
  const counted: Item =
    lineOut !== undefined && lineUntil > grant.acquiredAt
      ? { line_out: integer(lineOut), line_until: integer(lineUntil) }
      : {};
  const canBeHad = any(isFreeFor(grant), all(isExpired(cut), isClaimed, isNotEndingFor(grant)));
  const isInTime = wasNotReleasedAfter(Math.max(grant.acquiredAt + clockSkewMs, releasedAt));
  const isCounted = countsUntil(grant.acquiredAt, counted);
  const command = new PutItemCommand({
    TableName: table,
    Item: { ...grantItem(grant), ...counted },
    ...conditionFields(all(isLease, isUnmarked, isCounted, canBeHad, isBelow(grant.fence), isInTime)),
    ReturnValues: 'ALL_OLD',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}

/** The outcome of a write that landed, or met what an earlier try of the same write had left. */
interface Landed {
  grant: Grant;
  won: boolean;
  item?: Item | undefined;
  old?: Item | undefined;
}

/**
 * The grant that this call has written. If the write is late, and met no fence, raises the fence of the grant first: of a try of the SDK that got no
 * answer, nothing tells what it met.
 * @returns undefined if another call has changed the grant
 * @throws HoldfastError OutcomeUnknown if the fence could not be raised, because this call may be the only one that has the request id
 */
async function settle(
  dependencies: LeaseDependencies,
  { grant, won, item, old = grantItem(grant) }: Landed,
  call: Call,
): Promise<Granted | undefined> {
  const record = parseRecord(old);
  const previous = item && endedBefore(parseRecord(item), 'expired', { now: grant.acquiredAt });
  const granted = { won: true, record, repeated: !won, previous } as const;
  if (item?.fence !== undefined || !isLate(grant, dependencies.clock.now())) return granted;
  const { raiseFence } = await import('./lock.ts');
  try {
    const raised = await raiseFence(dependencies, record as Leased, call);
    return raised.won ? { ...granted, record: raised.record } : undefined;
  } catch (error) {
    throw error instanceof HoldfastError ? outcomeUnknown(writing(`table ${dependencies.table}`), error) : error;
  }
}

/** Answers a request whose grant stands. If the grant names an execution, it records the time of this answer. @returns undefined if the grant has changed */
async function repeat(
  dependencies: LeaseDependencies,
  { request, record }: { request: GrantRequest; record: Leased },
  call: Call,
): Promise<Pick<Granted, 'record' | 'previous'> | undefined> {
  const isPlain = record.ticket === undefined && record.claimTtlMs === undefined && record.execution === undefined;
  if (isPlain) return { record, previous: undefined };
  const { leaseLock } = await import('./lock.ts');
  const { claim } = await import('../line/claim.ts');
  const at = { dependencies, lock: leaseLock(dependencies, request, call), call };
  return claim(at, { record, maxConflicts: 1 });
}

/** Gives a free lease to the callers and tasks that came before this call. */
async function handOffIfNext(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<HandedOff> {
  const { handOff } = await import('./hand-off.ts');
  return handOff(dependencies, { record, ending: isLeased(record) ? 'expired' : 'free' }, call);
}
