import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type ExecutionEnded, joinedBy } from '../line/executions/ended-execution.ts';
import { type Judge, judgeOf } from '../line/executions/judgement.ts';
import { keysOf } from '../line/executions/keys-of-execution.ts';
import { endInPool } from '../permits/execution-ended.ts';
import { shuffled } from '../surroundings/ids.ts';
import type { ExecutionEndedInput } from './inputs.ts';

/**
 * Takes an execution that has ended out of all lines, and frees its leases and permits (docs/protocols/executions.md). It is called
 * twice: at the end, and `again` a while later, when every call that the execution had under way has ended too. A redriven execution keeps what it has received
 * since. A failure of one key or query does not stop the others, because any caller can write records that name an execution. The order of the keys is random,
 * so that a try that runs out of time does not miss the same keys each time.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a query or a key, after all the others were tried
 */
export function endExecution(dependencies: LeaseDependencies) {
  return async ({ execution, again, status, stopDate }: ExecutionEndedInput, call: Call): Promise<ExecutionEnded> => {
    const failures: unknown[] = [];
    const keys = await keysOf(dependencies, { execution, failed: (error) => failures.push(error) }, call);
    const ended: ExecutionEnded = { execution, tickets: 0, freed: 0, graced: 0, kept: 0 };
    const reported = { execution, settled: again, status, stoppedAt: stopDate };
    const waiters = [...keys.values()].flatMap((tickets) => tickets.map(joinedBy));
    let asked: Promise<Judge> | undefined;
    const judgeTickets = () => {
      asked ??= judgeOf(dependencies, { ...reported, grants: waiters }, call);
      return asked;
    };
    const leaving = { ...reported, askedAt: dependencies.clock.now(), judgeTickets, ended };
    for (const [key, tickets] of shuffled([...keys], dependencies.ids))
      await endInPool(dependencies, { ...leaving, key, tickets }, call).catch((error) => failures.push(error));
    if (failures.length > 0) throw failures[0];
    return ended;
  };
}
