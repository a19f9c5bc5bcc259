import type { Call } from '../aws/call.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { lineOf } from '../line/waiters.ts';
import { flagOwnTickets, type Withdrawer } from '../line/waiting-calls.ts';
import { withdrawPlace } from '../line/withdraw.ts';
import type { PoolDependencies } from './dependencies.ts';
import { requestName } from './names.ts';
import { readPool } from './read.ts';
import { ending, entryOf } from './record.ts';
import { giveBack, giveToLine } from './release.ts';

/**
 * Withdraws a request of the caller's own: the calls that wait for a permit, or the permit (docs/protocols/pools.md#withdraw).
 * @returns whether there was something to withdraw
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer about a task that has not heard of its permit yet), OutcomeUnknown
 */
export async function withdrawPermit(
  dependencies: PoolDependencies,
  { key, ...asked }: Withdrawer,
  call: Call,
): Promise<boolean> {
  const asker = { ...asked, key: lineOf(key) };
  const { seen, flagged } = await flagOwnTickets(dependencies, asker, call);
  let [hasPlace, inDoubt] = [flagged, false];
  const name = requestName(asked);
  // The flag comes first, and the record second: a claim writes first, and looks at its ticket second.
  for (let record = await readPool(dependencies, key, call); ; ) {
    const entry = entryOf(record, name);
    if (!entry) {
      // A try without an answer may have ended the permit, and eight others have ended since.
      if (inDoubt && !hasPlace && ending(record, name) === undefined)
        throw outcomeUnknown(writing(`table ${dependencies.poolsTable}`), undefined, { key });
      // Those behind it in line may fit by now.
      if (flagged) await giveToLine(dependencies, { record }, call);
      return hasPlace;
    }
    const { id, ticket } = entry;
    if (ticket !== undefined && !seen.has(ticket))
      hasPlace = (await withdrawPlace(dependencies, { asker, ticket }, call)) || hasPlace;
    const { won, standing, unanswered } = await giveBack(dependencies, { key, proof: { name, id } }, call);
    // A try of the SDK's own may have landed before the one that lost.
    if (won || (unanswered && ending(standing, name) === 'released')) {
      await giveToLine(dependencies, { record: standing, ticket }, call);
      return true;
    }
    inDoubt ||= unanswered;
    record = standing;
  }
}
