import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { isOwnOf } from '../line/acquisition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type Asker, flagOwnWaiters, type Withdrawer } from '../line/waiting-calls.ts';
import { withdrawWaiter } from '../line/withdraw.ts';
import { isStillHeld, isUnmarked } from './conditions.ts';
import { endLease } from './end.ts';
import { handOffToLine } from './give-to-line.ts';
import { handOff } from './hand-off.ts';
import { readRecord } from './read-record.ts';
import { type Leased, type LeaseRecord, parseRecord } from './record.ts';
import { isLeased } from './rules.ts';

/**
 * Withdraws a request of the caller's own: the calls that wait for a lease, or the lease (docs/protocols/queue.md#withdraw).
 * @returns whether there was something to withdraw
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer about a task that has not heard of its lease yet), OutcomeUnknown
 */
export async function withdrawLease(dependencies: LeaseDependencies, asker: Withdrawer, call: Call): Promise<boolean> {
  const { seen, flagged } = await flagOwnWaiters(dependencies, asker, call);
  // The flag comes first, and the record second: a claim writes first, and looks at its ticket second.
  const { end, record } = await endGrant(dependencies, { asker, seen }, call);
  // Those behind it in line may be the next now.
  if (end !== 'ended' && flagged) await handOffToLine(dependencies, record, call);
  if (end === 'inDoubt' && !flagged)
    throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key: asker.key });
  return end === 'ended' || flagged;
}

interface Withdrawing {
  asker: Asker;
  /** The tickets of the request that were there. */
  seen: ReadonlySet<string>;
}

/**
 * `ended`: a grant of the request, or the waiter that received it. `inDoubt`: a write without an answer may have ended the grant, and the lease has
 * moved on since.
 */
type GrantEnd = 'ended' | 'none' | 'inDoubt';

/** @returns also the record as it was last read */
async function endGrant(
  dependencies: LeaseDependencies,
  { asker, seen }: Withdrawing,
  call: Call,
): Promise<{ end: GrantEnd; record: LeaseRecord }> {
  const { key } = asker;
  let otherwise: GrantEnd = 'none';
  for (;;) {
    const record = await readRecord(dependencies, key, call);
    if (!isLeased(record) || !isOwnOf(record, asker)) return { end: otherwise, record };
    const { ticket } = record;
    if (ticket !== undefined && !seen.has(ticket) && (await withdrawWaiter(dependencies, { asker, ticket }, call)))
      otherwise = 'ended';
    const end = await endCurrent(dependencies, record, call);
    if (end === 'ended') return { end, record };
    if (end === 'inDoubt' && otherwise === 'none') otherwise = end;
  }
}

/** @returns `none` if the lease has changed */
async function endCurrent(dependencies: LeaseDependencies, record: Leased, call: Call): Promise<GrantEnd> {
  const { key, leaseId } = record;
  const outcome = await endLease(dependencies, { key, condition: all(isStillHeld(record), isUnmarked) }, call);
  if (outcome.won) return 'ended';
  const current = outcome.old ? parseRecord(outcome.old) : { key };
  // A try of the SDK may have landed before the one that lost.
  if (!isLeased(current) && current.leaseId === leaseId) return 'ended';
  if (current.version !== record.version) return outcome.unanswered ? 'inDoubt' : 'none';
  const handed = await handOff(dependencies, { record: current, ending: 'released' }, call);
  if (handed.end !== 'overtaken') return 'ended';
  return outcome.unanswered || handed.unanswered ? 'inDoubt' : 'none';
}
