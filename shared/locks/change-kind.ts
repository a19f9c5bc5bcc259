import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { aliased, all, type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { handOff as handOffLease } from '../leases/hand-off.ts';
import { type LeaseRecord, parseRecord, unusable } from '../leases/record.ts';
import { canBeHad, isBound, isLeased } from '../leases/rules.ts';
import { leaseHeld } from '../leases/views.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type Kind, OtherKind } from '../line/kind.ts';
import { isUnmarked } from '../permits/conditions.ts';
import { isStillFree } from '../permits/free-lease.ts';
import { endPermits, latestFence, MOST_ENDED } from '../permits/grants.ts';
import { handOff as handOffPool } from '../permits/hand-off.ts';
import {
  isBound as isBoundPermit,
  MOST_FENCE,
  type PoolRecord,
  parsePool,
  unusable as unusablePool,
} from '../permits/record.ts';
import { takeoverAt } from '../permits/room.ts';
import { poolHeld } from '../permits/views.ts';

interface Changing {
  key: string;
  /** The record that the call met. */
  item: Item;
  to: Kind;
  /** True if the write of the caller's permit replaces the lease. Before a task or the schedule, the record is cleared. */
  withPermit?: boolean;
}

/** Calls of both kinds may change the record at the same time. */
const MOST_TRIES = 10;

/**
 * Changes the kind of a key that no caller has (docs/protocols/kinds.md#change). If the call returns, try again: it has changed the kind, has met a record that
 * another call has changed, or has ended the grant of an ended execution.
 * @returns `withPermit`: the record of a free lease, which the caller's write replaces
 * @throws HoldfastError WrongKind, Throttled, Unavailable, OutcomeUnknown
 */
export async function changeKind(
  dependencies: LeaseDependencies,
  { key, item, to, withPermit = false }: Changing,
  call: Call,
): Promise<Item | undefined> {
  try {
    if (to === 'pool') return await poolFrom(dependencies, { item, record: parseRecord(item), withPermit }, call);
    await leaseFrom(dependencies, parsePool(key, item), call);
  } catch (error) {
    // Another call has changed the kind.
    if (error instanceof OtherKind) return undefined;
    const isWrong = error instanceof HoldfastError && error.code === 'WrongKind';
    if (isWrong && (await lookBeside(dependencies, { key, item, to }, call))) return undefined;
    throw error;
  }
  return undefined;
}

/**
 * Asks about the executions of bound holders, as if holders of the call's own kind had refused it.
 * @returns whether a grant has ended, so that another try is worth it
 */
async function lookBeside(dependencies: LeaseDependencies, { key, item, to }: Changing, call: Call): Promise<boolean> {
  if (to === 'pool') {
    const record = parseRecord(item);
    return isBound(record) && (await import('../leases/holder-look.ts')).lookBeside(dependencies, record, call);
  }
  const record = parsePool(key, item);
  if (!record.entries.some(isBoundPermit)) return false;
  return (await import('../permits/holder-look.ts')).lookBeside(dependencies, record, call);
}

/** @throws OtherKind if the key is a pool */
async function poolFrom(
  dependencies: LeaseDependencies,
  { item, record, withPermit }: { item: Item; record: LeaseRecord; withPermit: boolean },
  call: Call,
): Promise<Item | undefined> {
  if (!canBeHad(record, dependencies)) throw isLease(dependencies, record);
  if (record.malformed !== undefined) throw unusable(record);
  if (record.waiters !== undefined || (isLeased(record) && record.claimTtlMs !== undefined)) {
    const ending = isLeased(record) ? 'expired' : 'free';
    const handed = await handOffLease(dependencies, { record, ending }, call);
    // The waiters of the line come first.
    if (handed.end === 'left') throw isLease(dependencies, handed.record);
    return undefined;
  }
  if (withPermit) return item;
  // If the record has changed, the caller's next try meets it as it is now.
  await clear(dependencies, { key: record.key, fence: record.fence, condition: isStillFree(item) }, call);
  return undefined;
}

interface Clearing {
  key: string;
  fence: number | undefined;
  condition: Condition;
}

/** Leaves nothing but the fence, so that the next grant, of either kind, has a higher fence than all grants before. */
async function clear(
  { dynamodb, clock, table, fenceRetentionSeconds }: LeaseDependencies,
  { key, fence, condition }: Clearing,
  call: Call,
): Promise<void> {
  const command = new PutItemCommand({
    TableName: table,
    Item: {
      key: text(key),
      lease_expiry: integer(Math.ceil(clock.now() / 1000) + fenceRetentionSeconds),
      ...(fence !== undefined && { fence: integer(fence) }),
    },
    ...conditionFields(condition),
  });
  await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}

/** @throws OtherKind if the key is a lease */
async function leaseFrom(dependencies: LeaseDependencies, seen: PoolRecord, call: Call): Promise<void> {
  const { clock, clockSkewMs } = dependencies;
  let record = seen;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    if (record.mark !== undefined) {
      const handed = await handOffPool(dependencies, { record }, call);
      record = handed.record;
      if (handed.end !== 'empty') throw isPool(dependencies, record);
    }
    const expired = record.entries.filter((entry) => takeoverAt(entry, clockSkewMs) <= clock.now());
    if (expired.length < record.entries.length) throw isPool(dependencies, record);
    if (expired.length > 0) {
      const ending = { key: record.key, ended: expired.slice(0, MOST_ENDED), now: clock.now() };
      record = (await endPermits(dependencies, ending, call)).record;
      continue;
    }
    if (record.malformed !== undefined) throw unusablePool(record);
    if (record.used !== 0) throw isPool(dependencies, record);
    if (!record.hasUsed) return; // only its mark made it a pool
    const { key, fence = 0 } = record;
    const isEmpty = aliased('#used = :zero AND #fence = :fence', { ':zero': integer(0), ':fence': integer(fence) });
    // The ring goes. A late try of a request that has ended must not get a permit, and its clock may be ahead of this one.
    const above = latestFence(dependencies, { seen: record, now: clock.now() + clockSkewMs });
    const clearing = { key, fence: Math.min(above, MOST_FENCE - 1), condition: all(isUnmarked, isEmpty) };
    await clear(dependencies, clearing, call);
    return;
  }
}

function isLease({ clock, clockSkewMs }: LeaseDependencies, record: LeaseRecord): HoldfastError {
  const { context } = leaseHeld(record, clock.now(), clockSkewMs);
  const by = context.holder === null ? '' : ` by ${context.holder}`;
  const detail = `the key is used as a lease${by}: acquire it without limit and mode, or use another key for permits`;
  return new HoldfastError('WrongKind', detail, { ...context, kind: 'lease' });
}

function isPool({ clock, clockSkewMs }: LeaseDependencies, record: PoolRecord): HoldfastError {
  // A lease needs all the room.
  const asked = { name: '', room: 0, limit: null };
  const { context } = poolHeld(record, { asked, now: clock.now(), clockSkewMs });
  const limit = record.lastLimit ?? null;
  const most = limit === null ? '' : ` of ${limit}`;
  const detail =
    `the key is used as a pool of permits, and ${record.used}${most} are in use: acquire it with limit or mode, ` +
    'or use another key for a lease';
  return new HoldfastError('WrongKind', detail, { ...context, limit, kind: 'pool' });
}
