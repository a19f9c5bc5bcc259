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
  /** The holder whose lease ended. Null if the record does not say. */
  holder: string | null;
}

/**
 * Ends the lease that an operator saw, named by its fence, with one conditional UpdateItem (docs/protocols/leases.md#break).
 * The first in line gets it. Only the fence stops what the holder still writes. A repeat gives the same answer, unless the
 * key has been granted since.
 * @throws HoldfastError Conflict (leased under another fence), NotFound (not leased), Throttled, Unavailable, OutcomeUnknown
 */
export function breaker(dependencies: LeaseDependencies) {
  return async ({ key, fence }: BreakInput, call: Call): Promise<Broken> => {
    const condition = all(hasFence(fence), isHeld, isUnmarked);
    let inDoubt = false;
    for (;;) {
      const outcome = await endLease(dependencies, { key, condition, markBroken: true }, call);
      const item = outcome.won ? outcome.item : outcome.old;
      const record = item && parseRecord(item);
      const broken = { key, broken: true, fence, holder: record?.holder ?? null } as const;
      if (record && isBroken(record, fence)) {
        if (record.ticket !== undefined) await endTicket(dependencies, record, call);
        return broken;
      }
      // A try without an answer may have broken it before another caller took the key, or another client removed the record.
      if (!outcome.won && (outcome.unanswered || inDoubt) && record?.fence !== fence)
        throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key });
      if (!record || !isLeased(record)) throw new HoldfastError('NotFound', 'the key is not leased', { key });
      if (record.fence !== fence) {
        const actual = leaseView(key, record, dependencies.clock.now());
        throw new HoldfastError('Conflict', 'the lease has another fence than the one to break', { key, actual });
      }
      const { handOff } = await import('./queue/hand-off.ts');
      const handed = await handOff(dependencies, breaking(record), call);
      if (handed.end !== 'overtaken') return broken;
      inDoubt ||= handed.unanswered === true;
    }
  };
}

const breaking = (record: LeaseRecord) => ({ record, ending: 'broken' }) as const;

/** A holder that got the lease from the queue may be a task that was not notified yet. */
async function endTicket(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<void> {
  const { settleTicket } = await import('./queue/hand-off.ts');
  await settleTicket(dependencies, breaking(record), call);
}

function isBroken(record: LeaseRecord, fence: number): boolean {
  return record.fence === fence && record.brokenAt !== undefined && !isLeased(record);
}
