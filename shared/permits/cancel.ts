import type { Call } from '../aws/call.ts';
import type { CancelInput } from '../line/calls.ts';
import { type Cancelled, cancelTicket } from '../line/cancel.ts';
import { lineOf } from '../line/waiters.ts';
import type { PoolDependencies } from './dependencies.ts';
import { readPool } from './read.ts';
import type { PoolRecord } from './record.ts';
import { giveToLine } from './release.ts';

/** Takes a task or a call out of the line of a pool (docs/protocols/queue.md#cancel). @throws as `cancelTicket` */
export function permitCanceller(dependencies: PoolDependencies) {
  return ({ key, ticket }: Omit<CancelInput, 'pool'>, call: Call): Promise<Cancelled> => {
    const lock = {
      read: () => readPool(dependencies, key, call),
      grantOf: ({ entries }: PoolRecord) => entries.find((one) => one.ticket === ticket),
      giveToLine: (record: PoolRecord) => giveToLine(dependencies, { record }, call),
    };
    return cancelTicket(dependencies, { line: lineOf(key), ticket, lock }, call);
  };
}
