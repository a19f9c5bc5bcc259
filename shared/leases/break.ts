import type { Call } from '../aws/call.ts';
import { all } from '../aws/conditions.ts';
import { outcomeUnknown } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { hasFence, isHeld } from './conditions.ts';
import { type LeaseDependencies, leaseTable } from './dependencies.ts';
import { endLease } from './end.ts';
import type { BreakInput } from './inputs.ts';
import { integer, type LeaseRecord, parseRecord } from './record.ts';
import { isLeased } from './rules.ts';
import { leaseView } from './views.ts';

export interface Broken {
  key: string;
  broken: true;
  fence: number;
  /** Who held it. */
  holder: string | null;
}

/**
 * Ends the lease that an operator saw, named by its fence, with one conditional UpdateItem. What its holder still
 * writes is stopped by the fence alone. A repeat answers the same.
 * @throws HoldfastError Conflict (leased under another fence), NotFound (not leased), Throttled, Unavailable, OutcomeUnknown
 */
export function breaker(dependencies: LeaseDependencies) {
  return async ({ key, fence }: BreakInput, call: Call): Promise<Broken> => {
    const end = { key, condition: all(hasFence, isHeld), values: { ':fence': integer(fence) }, markBroken: true };
    const outcome = await endLease(dependencies, end, call);
    const item = outcome.won ? outcome.item : outcome.old;
    const record = item && parseRecord(item);
    if (record && isBroken(record, fence)) return { key, broken: true, fence, holder: record.holder ?? null };
    // A try that got no answer may have broken it before somebody else took the key, or a foreign client removed the record.
    if (!outcome.won && outcome.unanswered && record?.fence !== fence)
      throw outcomeUnknown(leaseTable(dependencies.table, 'write'), undefined, { key });
    if (!record || !isLeased(record)) throw new HoldfastError('NotFound', 'the key is not leased', { key });
    const actual = leaseView(key, record, dependencies.clock.now());
    throw new HoldfastError('Conflict', 'the lease has another fence than the one to break', { key, actual });
  };
}

function isBroken(record: LeaseRecord, fence: number): boolean {
  return record.fence === fence && record.brokenAt !== undefined && !isLeased(record);
}
