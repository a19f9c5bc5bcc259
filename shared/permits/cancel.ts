import type { Call } from '../aws/call.ts';
import type { CancelInput } from '../line/calls.ts';
import { type Cancelled, cancelByTicket } from '../line/cancel.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { readPool } from './read.ts';
import type { PoolRecord } from './record.ts';
import { handOffToLine } from './release.ts';

/** Takes a task or a call out of the line of a pool (docs/protocols/queue.md#cancel). @throws as `cancelByTicket` */
export function cancelPermitWaiter(dependencies: LeaseDependencies) {
  return ({ key, ticket }: CancelInput, call: Call): Promise<Cancelled> => {
    const lock = {
      read: () => readPool(dependencies, key, call),
      grantOf: ({ entries }: PoolRecord) => entries.find((one) => one.ticket === ticket),
      handOffToLine: (record: PoolRecord) => handOffToLine(dependencies, { record }, call),
    };
    return cancelByTicket(dependencies, { key, ticket, lock }, call);
  };
}
