import type { Call } from '../aws/call.ts';
import type { CancelInput } from '../line/calls.ts';
import { type Cancelled, cancelByTicket } from '../line/cancel.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { handOffToLine } from './give-to-line.ts';
import { readRecord } from './read-record.ts';
import type { LeaseRecord } from './record.ts';
import { isLeased } from './rules.ts';

/** Takes a task or a call out of the line of a lease (docs/protocols/queue.md#cancel). @throws as `cancelByTicket` */
export function cancelLeaseWaiter(dependencies: LeaseDependencies) {
  return ({ key, ticket }: CancelInput, call: Call): Promise<Cancelled> => {
    const lock = {
      read: () => readRecord(dependencies, key, call),
      grantOf: (record: LeaseRecord) => (isLeased(record) && record.ticket === ticket ? record : undefined),
      handOffToLine: (record: LeaseRecord) => handOffToLine(dependencies, record, call),
    };
    return cancelByTicket(dependencies, { key, ticket, lock }, call);
  };
}
