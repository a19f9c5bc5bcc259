import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, any, conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { isOwnOf, MAX_DUPLICATE_CONFLICTS } from '../line/acquisition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Granted as GrantedTo } from '../line/lock.ts';
import { isBelow, isClaimed, isExpired, isFreeFor, isNotEndingFor, isUnmarked } from './conditions.ts';
import { type Grant, type GrantRequest, grantItem, newGrant } from './grant.ts';
import type { HandedOff } from './hand-off.ts';
import { endedBefore } from './previous.ts';
import { type Leased, type LeaseRecord, parseRecord, unusable } from './record.ts';
import { endReason, isLeased, isOver, isRepeatable, takeoverAt } from './rules.ts';
import { leaseLost } from './views.ts';

/** A grant. */
type Granted = GrantedTo<LeaseRecord> & { won: true };

/** A grant, or the record that keeps the request from one. */
type Outcome = Granted | { won: false; record: LeaseRecord };

/** A try fails by its fence only if the record's is at or ahead of the clock here, and fails again only if a new grant came first. */
const MAX_TRIES = 5;

/**
 * Acquires without waiting (docs/protocols/leases.md#acquire). One write, or two if the key's fence is at or ahead of the clock here: in the
 * same millisecond, or after the clock stepped back.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function tryOnce(dependencies: LeaseDependencies, request: GrantRequest, call: Call): Promise<Outcome> {
  let before: LeaseRecord = { key: request.key };
  let lineSeenEmpty = false;
  let meetings = 1;
  for (let tries = 1; ; tries++) {
    const grant = newGrant(dependencies, request, before);
    const triedAt = grant.acquiredAt;
    const outcome = await put(dependencies, grant, call);
    if (outcome.won) {
      const previous = outcome.item && endedBefore(parseRecord(outcome.item), 'expired', triedAt);
      return { won: true, record: parseRecord(grantItem(grant)), repeated: false, previous };
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
    if (!couldBeHad || tries === MAX_TRIES) return { won: false, record };
    if (record.malformed !== undefined) throw unusable(record);
    if (record.waiters !== undefined || (isLeased(record) && record.claimTtlMs !== undefined)) {
      const { end, record: after } = await handOffIfNext(dependencies, record, call);
      // A duplicate call may have a grant by now. Then the next write meets its grant.
      const isOwn = isRepeatable(after, request, triedAt);
      if ((end !== 'empty' || lineSeenEmpty) && !isOwn) return { won: false, record: after };
      lineSeenEmpty = true;
    }
    before = record;
  }
}

function put({ dynamodb, table, clockSkewMs }: LeaseDependencies, grant: Grant, call: Call) {
  const cut = grant.acquiredAt - clockSkewMs;
  const canBeHad = any(isFreeFor(grant), all(isExpired(cut), isClaimed, isNotEndingFor(grant)));
  const command = new PutItemCommand({
    TableName: table,
    Item: grantItem(grant),
    ...conditionFields(all(isUnmarked, canBeHad, isBelow(grant.fence))),
    ReturnValues: 'ALL_OLD',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}

/** Answers a request whose grant stands. @returns undefined if the grant has changed */
async function repeat(
  dependencies: LeaseDependencies,
  { request, record }: { request: GrantRequest; record: Leased },
  call: Call,
): Promise<Pick<Granted, 'record' | 'previous'> | undefined> {
  if (record.ticket === undefined && record.claimTtlMs === undefined) return { record, previous: undefined };
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
