import type { Call } from '../aws/call.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { lineKeyOf } from '../line/waiters.ts';
import { flagOwnWaiters, type Withdrawer } from '../line/waiting-calls.ts';
import { withdrawWaiter } from '../line/withdraw.ts';
import type { PoolDependencies } from './dependencies.ts';
import { requestName } from './identity.ts';
import { readPool } from './read.ts';
import { ending, entryOf } from './record.ts';
import { endPermit, handOffToLine } from './release.ts';

/**
 * Withdraws a request of the caller's own: the calls that wait for a permit, or the permit (docs/protocols/pools.md#withdraw).
 * @returns whether there was something to withdraw
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer about a task that has not been notified of its permit),
 * OutcomeUnknown
 */
export async function withdrawPermitRequest(
  dependencies: PoolDependencies,
  { key, ...asked }: Withdrawer,
  call: Call,
): Promise<boolean> {
  const asker = { ...asked, key: lineKeyOf(key) };
  const { seen, flagged } = await flagOwnWaiters(dependencies, asker, call);
  let [hadWaiter, inDoubt] = [flagged, false];
  const name = requestName(asked);
  // The flag comes first, and the record second: a claim writes first, and looks at its ticket second.
  for (let record = await readPool(dependencies, key, call); ; ) {
    const entry = entryOf(record, name);
    if (!entry) {
      // A try without an answer may have ended the permit, and eight others have ended since.
      if (inDoubt && !hadWaiter && ending(record, name) === undefined)
        throw outcomeUnknown(writing(`table ${dependencies.poolsTable}`), undefined, { key });
      // Those behind it in line may fit by now.
      if (flagged) await handOffToLine(dependencies, { record }, call);
      return hadWaiter;
    }
    const { id, ticket } = entry;
    if (ticket !== undefined && !seen.has(ticket))
      hadWaiter = (await withdrawWaiter(dependencies, { asker, ticket }, call)) || hadWaiter;
    const { won, record: current, unanswered } = await endPermit(dependencies, { key, proof: { name, id } }, call);
    // A try of the SDK's own may have landed before the one that lost.
    if (won || (unanswered && ending(current, name) === 'released')) {
      await handOffToLine(dependencies, { record: current, ticket }, call);
      return true;
    }
    inDoubt ||= unanswered;
    record = current;
  }
}
