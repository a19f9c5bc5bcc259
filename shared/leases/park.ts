import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Asked } from '../line/lock.ts';
import type { LockOfTask } from '../line/park.ts';
import { isOwnOf } from '../line/request.ts';
import { grantUnchanged, isHeldByAnother } from './conditions.ts';
import { notifyGranted } from './deliver.ts';
import { handOff } from './hand-off.ts';
import { repairAtTheEnd } from './in-line/watch.ts';
import { correctLineOut, mark, passToTask } from './marks.ts';
import { readRecord } from './read-record.ts';
import type { Leased, LeaseRecord } from './record.ts';
import { endReason, endsAt, isLeased, isOver, takeoverAt } from './rules.ts';
import { leaseLost } from './views.ts';

/** A lease, as a task that parks sees it. */
export function leaseOfTask(dependencies: LeaseDependencies, asked: Asked, call: Call): LockOfTask<LeaseRecord> {
  const { key } = asked;
  return {
    asked,
    read: () => readRecord(dependencies, key, call),
    own: (record) => {
      if (!isOwnOf(record, asked)) return undefined;
      return isOver(record) ? endReason(record) : { ...(record as Leased), expiresAt: endsAt(record) };
    },
    granted: (record) => new Set(isLeased(record) ? [record.ticket] : []),
    freeAt: (record) => (isLeased(record) ? takeoverAt(record, dependencies.clockSkewMs) : Number.NEGATIVE_INFINITY),
    handOff: async (record) => {
      const ending = isLeased(record) ? 'expired' : 'free';
      const unnotified = new Set<string>();
      const { moved, end, standing } = await handOff(dependencies, { record, ending, unnotified }, call);
      return { served: moved, unnotified, end: end === 'granted' ? 'served' : end, record: standing };
    },
    lost: (reason, record) => leaseLost(key, reason, record),
    correct: (arrivals, inLine) => correctLineOut(dependencies, { key, arrivals, inLine }, call),
    markTask: async (ticket, over) => {
      const condition = over ? grantUnchanged(over) : isHeldByAnother(asked);
      const { won, standing: record } = await mark(dependencies, { key, condition, ticket }, call);
      return { won, record, arrivals: Number(record.waiters?.N), lineOut: record.lineOut };
    },
    passTo: async (record, ticket) => {
      const { won, standing } = await passToTask(dependencies, { record: record as Leased, ticket }, call);
      return { won, record: standing };
    },
    notify: (record, { task: ticket, repeated }) =>
      notifyGranted(dependencies, { ticket, record: record as Leased, repeated, isOurs: true }, call),
    undelivered: async (record) => {
      await handOff(dependencies, { record, ending: 'undelivered' }, call);
    },
    // The first in line sends the message for all. A later grant in front of a task has its own.
    watch: async (record) => {
      const isFirst = Number(record.waiters?.N) === 1;
      if (isFirst || record.claimTtlMs !== undefined) await repairAtTheEnd(dependencies, record, { call });
    },
  };
}
