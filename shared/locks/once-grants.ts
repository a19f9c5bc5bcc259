import type { Call } from '../aws/call.ts';
import { ONCE_IDS } from '../permits/memory.ts';

type Run<Input, Answer> = (input: Input, call: Call) => Promise<Answer>;

/** Passes a request with a lease id of `once` to the record of that run. The code is loaded at the first such id. */
export function byLeaseId<Input extends { key: string; leaseId: string }, Answer extends { key: string }>(
  run: Run<Input, Answer>,
): Run<Input, Answer> {
  return async (input, call) => {
    if (!input.leaseId.startsWith(ONCE_IDS)) return run(input, call);
    const { onRow } = await import('../once/row-key.ts');
    return onRow(run)(input, call);
  };
}
