import type { Call } from '../../aws/call.ts';
import { outcomeUnknown, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { Broken } from '../break.ts';
import type { PoolDependencies } from './dependencies.ts';
import { readPool } from './read.ts';
import { giveBack, giveToLine } from './release.ts';

interface BreakInput {
  key: string;
  fence: number;
}

/**
 * Ends the permit that an operator saw, named by its fence: one read, and one conditional UpdateItem (docs/protocols/pools.md#break).
 * Only the fence stops what the holder still writes. A repeat gives the same answer, unless eight other permits have ended since.
 * @throws HoldfastError NotFound (no permit has the fence), Throttled, Unavailable, OutcomeUnknown
 */
export function permitBreaker(dependencies: PoolDependencies) {
  return async ({ key, fence }: BreakInput, call: Call): Promise<Broken> => {
    let record = await readPool(dependencies, key, call);
    let unanswered = false;
    for (;;) {
      if (record.ring.some(({ broken }) => broken === fence)) {
        if (unanswered) await giveToLine(dependencies, { record }, call);
        return { key, broken: true, fence, holder: null };
      }
      const entry = record.entries.find((one) => one.fence === fence);
      if (!entry && unanswered) throw outcomeUnknown(writing(`table ${dependencies.poolsTable}`), undefined, { key });
      if (!entry) throw new HoldfastError('NotFound', 'no permit of the key has the fence', { key });
      const { name, id, holder } = entry;
      const written = await giveBack(dependencies, { key, proof: { name, id }, brokenFence: fence }, call);
      if (written.won) {
        await giveToLine(dependencies, { record: written.standing, ticket: entry.ticket }, call);
        return { key, broken: true, fence, holder };
      }
      unanswered ||= written.unanswered;
      record = written.standing;
    }
  };
}
