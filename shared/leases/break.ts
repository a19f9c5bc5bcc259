import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { hasFence, isHeld, isUnmarked } from './conditions.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { endLease } from './end.ts';
import type { BreakInput } from './inputs.ts';
import { type LeaseRecord, parseRecord } from './record.ts';
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
 * Ends the lease that an operator saw, named by its fence, with one conditional UpdateItem; where somebody is parked for
 * it, the oldest of those has it then. What its holder still writes is stopped by the fence alone. A repeat answers the same, unless
 * somebody has been granted the key since.
 * @throws HoldfastError Conflict (leased under another fence), NotFound (not leased), Throttled, Unavailable, OutcomeUnknown
 */
export function breaker(dependencies: LeaseDependencies) {
  return async ({ key, fence }: BreakInput, call: Call): Promise<Broken> => {
    const condition = all(hasFence(fence), isHeld, isUnmarked);
    for (;;) {
      const outcome = await endLease(dependencies, { key, condition, markBroken: true }, call);
      const item = outcome.won ? outcome.item : outcome.old;
      const record = item && parseRecord(item);
      const broken = { key, broken: true, fence, holder: record?.holder ?? null } as const;
      if (record && isBroken(record, fence)) {
        if (record.ticket !== undefined) await endTicket(dependencies, record, call);
        return broken;
      }
      // A try that got no answer may have broken it before somebody else took the key, or a foreign client removed the record.
      if (!outcome.won && outcome.unanswered && record?.fence !== fence)
        throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key });
      if (!record || !isLeased(record)) throw new HoldfastError('NotFound', 'the key is not leased', { key });
      if (record.fence !== fence) {
        const actual = leaseView(key, record, dependencies.clock.now());
        throw new HoldfastError('Conflict', 'the lease has another fence than the one to break', { key, actual });
      }
      const { handOff } = await import('./queue/hand-off.ts');
      const { moved, end: how } = await handOff(dependencies, record, 'broken', call);
      if (moved.length > 0 || how !== 'overtaken') return broken;
    }
  };
}

/** A holder that had the lease from the queue, and may never have been told. */
async function endTicket(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<void> {
  const { settleTicket } = await import('./queue/hand-off.ts');
  await settleTicket(dependencies, record, 'broken', call);
}

function isBroken(record: LeaseRecord, fence: number): boolean {
  return record.fence === fence && record.brokenAt !== undefined && !isLeased(record);
}
