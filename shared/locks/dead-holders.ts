import type { Call } from '../aws/call.ts';
import type { LeaseRecord } from '../leases/record.ts';
import { isLeased } from '../leases/rules.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { endDeadHolders, type Questions } from '../line/executions/questions.ts';
import type { Found } from '../line/executions/state.ts';
import { getWaiter } from '../line/waiters.ts';
import { releaseHeldByEnded } from './execution-ended.ts';

/** Asks about the execution that holds a lease. The lease is wanted while it has its mark. @throws as `endDeadHolders` */
export async function endDeadHolder(
  dependencies: LeaseDependencies,
  { record, questions }: { record: LeaseRecord; questions: Questions },
  call: Call,
): Promise<number> {
  if (!isLeased(record) || record.waiters === undefined) return 0;
  const { key, ticket } = record;
  const end = async (found: Found) => {
    const row = ticket === undefined ? undefined : await getWaiter(dependencies, { key, ticket }, call);
    return releaseHeldByEnded(dependencies, { ...found, key, ticket: row?.ticket }, call);
  };
  return endDeadHolders(dependencies, { grants: [record], questions, end }, call);
}
