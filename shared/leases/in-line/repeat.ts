import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import type { Ended } from '../../line/ended.ts';
import { leaveLine } from '../../line/waiting-calls.ts';
import type { GrantRequest } from '../grant.ts';
import { answer } from '../marks.ts';
import type { Leased } from '../record.ts';
import { isLeased } from '../rules.ts';
import { claim } from './claim.ts';

interface Repeated {
  standing: Leased;
  previous: Ended | undefined;
}

/**
 * Answers a request with the grant that it has from the queue (docs/protocols/leases.md#acquire). Claims the grant if no call has.
 * @returns undefined if the grant has changed meanwhile
 * @throws HoldfastError LeaseLost (`cancelled`), Throttled, Unavailable, OutcomeUnknown
 */
export async function repeatFromQueue(
  dependencies: LeaseDependencies,
  { request, standing }: { request: GrantRequest; standing: Leased },
  call: Call,
): Promise<Repeated | undefined> {
  if (standing.claimTtlMs !== undefined) {
    const claimed = await claim(dependencies, { asker: request, seen: standing }, call);
    return claimed && { standing: claimed.standing, previous: claimed.standing.previous };
  }
  const { won, standing: after } = await answer(dependencies, standing, call);
  if (!won || !isLeased(after)) return undefined;
  const { key, ticket } = standing;
  // The call that claimed it may have died before it deleted the row. A task's row stays for the call that notifies the task.
  if (ticket !== undefined) await leaveLine(dependencies, { key, ticket }, call);
  return { standing: after, previous: after.previous };
}
