import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { Released, ReleaseInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { hasLeaseId, isHeld, isUnmarked } from './conditions.ts';
import { endLease } from './end.ts';
import { parseRecord } from './record.ts';
import { isLeased, lostReason } from './rules.ts';

/**
 * Releases a lease with one conditional UpdateItem (docs/protocols/leases.md#release). If tasks or callers are in line for it, the first gets it. To
 * a caller that does not hold the lease this is an answer and never an error, because releases stand in `finally` blocks. A repeat of the caller's
 * own release answers true, unless the lease has been handed off.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function releaseLease(dependencies: LeaseDependencies) {
  return async ({ key, leaseId }: ReleaseInput, call: Call): Promise<Released> => {
    const inLine = leaseId.includes('+') ? await handOffAtOnce(dependencies, { key, leaseId }, call) : undefined;
    if (inLine === 'handedOn') return { key, released: true };
    let inDoubt = inLine === 'unanswered';
    for (;;) {
      const end = { key, condition: all(hasLeaseId(leaseId), isHeld, isUnmarked) };
      const outcome = await endLease(dependencies, end, call);
      if (outcome.won) return { key, released: true };
      const record = outcome.old && parseRecord(outcome.old, outcome.unanswered || inDoubt);
      const parked = record?.waiters !== undefined;
      if (record && parked && record.leaseId === leaseId && isLeased(record)) {
        const { handOff } = await import('./hand-off.ts');
        const handed = await handOff(dependencies, { record, ending: 'released' }, call);
        if (handed.end !== 'overtaken') return { key, released: true };
        inDoubt ||= handed.unanswered === true;
      } else {
        const seen = lostReason(record, leaseId);
        // A try without an answer may have released the lease before another caller took it. The record does not say.
        const reason = seen === 'taken' && (outcome.unanswered || inDoubt) ? 'unknown' : seen;
        return reason === 'released' ? { key, released: true } : { key, released: false, reason };
      }
    }
  };
}

/** Whether others were in line when the lease was granted. */
async function handOffAtOnce(dependencies: LeaseDependencies, input: ReleaseInput, call: Call) {
  const { releaseInLine } = await import('./quick-release.ts');
  return releaseInLine(dependencies, input, call);
}
