import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/conditions.ts';
import { conditionalWrite } from '../../aws/dynamodb.ts';
import { isStillHeld, isUnmarked } from '../conditions.ts';
import { type LeaseDependencies, leaseTable } from '../dependencies.ts';
import { endLease } from '../end.ts';
import { type LeaseRecord, parseRecord, text } from '../record.ts';
import { isLeased } from '../rules.ts';
import { executionState } from './delivery.ts';
import { handOff } from './hand-off.ts';
import { readRecord } from './record.ts';

const isOfExecution = 'execution = :execution';

/**
 * `freed`; `kept`: its target has not started yet, or so it seems; `passed`: its target still runs and the lease is that
 * one's now; `other`: the lease is not of this execution, or no longer.
 */
export type Fate = { fate: 'freed'; granted: number } | { fate: 'kept' | 'passed' | 'other' };

/**
 * Ends what an ended execution holds, and hands it on. Where it let another execution work under the lease (`target`), the lease
 * passes to that one while it runs, and ends when that one does.
 * @param settled a while after the end: what the execution had under way has arrived, so a target that does not exist never will
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function releaseHeldBy(
  dependencies: LeaseDependencies,
  key: string,
  execution: string,
  settled: boolean,
  call: Call,
): Promise<Fate> {
  for (;;) {
    const record = await readRecord(dependencies, key, call);
    if (!isLeased(record) || record.execution !== execution) return { fate: 'other' };
    const { target } = record;
    const state = target === undefined ? 'ended' : await executionState(dependencies, target, call);
    if (state === 'missing' && !settled) return { fate: 'kept' };
    if (state === 'running' && target !== undefined) {
      if (!(await pass(dependencies, record, target, call))) continue;
      // It may have ended before it had the lease, and its own event found nothing.
      const ended = (await executionState(dependencies, target, call)) === 'ended';
      return ended ? releaseHeldBy(dependencies, key, target, settled, call) : { fate: 'passed' };
    }
    const granted = await end(dependencies, record, call);
    if (granted !== undefined) return { fate: 'freed', granted };
  }
}

/** @returns how many were given the lease; undefined where it has changed meanwhile */
async function end(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<number | undefined> {
  const { version = '', execution = '' } = record;
  const condition = all(isStillHeld, isOfExecution, isUnmarked);
  const values = { ':seen': text(version), ':execution': text(execution) };
  const outcome = await endLease(dependencies, { key: record.key, condition, values }, call);
  if (outcome.won) return 0;
  const standing = outcome.old ? parseRecord(outcome.old) : undefined;
  if (standing?.version !== version) return undefined;
  const { moved, end } = await handOff(dependencies, standing, 'released', call);
  return end === 'overtaken' && moved.length === 0 ? undefined : moved.length;
}

/**
 * The lease is the target's from now on, and its end is found as that of any execution. The version is a new one, so that nobody
 * hands it on who has read it as the dead one's.
 */
async function pass(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  target: string,
  call: Call,
): Promise<boolean> {
  const { version = '', execution = '' } = record;
  const next = dependencies.ids.uuid();
  const command = new UpdateItemCommand({
    TableName: dependencies.table,
    Key: { key: text(record.key) },
    UpdateExpression: 'SET execution = :target, lease_version = :next REMOVE target',
    ConditionExpression: all(isStillHeld, isOfExecution),
    ExpressionAttributeValues: {
      ':seen': text(version),
      ':execution': text(execution),
      ':target': text(target),
      ':next': text(next),
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dependencies.dynamodb, command, leaseTable(dependencies.table, 'write'), call);
  if (outcome.won) return true;
  return outcome.old?.lease_version?.S === next; // an earlier try of the SDK's
}

/** @returns how many were given the lease, whose holder's task takes no word any more; none while its execution may run */
export async function releaseHeldByDead(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  call: Call,
): Promise<number> {
  const { key, execution } = record;
  if (execution === undefined || (await executionState(dependencies, execution, call)) === 'running') return 0;
  const freed = await releaseHeldBy(dependencies, key, execution, false, call);
  return freed.fate === 'freed' ? freed.granted : 0;
}
