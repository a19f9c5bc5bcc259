import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import type { AskedByTask, LockOfTask } from '../../line/park.ts';
import { isOwnOf } from '../../line/request.ts';
import { grantUnchanged, isHeldByAnother } from '../conditions.ts';
import { notifyGranted } from '../deliver.ts';
import { handOff } from '../hand-off.ts';
import { arrivedAt, mark, passToTask } from '../marks.ts';
import { readRecord } from '../read-record.ts';
import type { Leased, LeaseRecord } from '../record.ts';
import { endReason, endsAt, isLeased, isOver, takeoverAt } from '../rules.ts';
import { leaseLost } from '../views.ts';
import type { Written } from '../write.ts';
import { repairAtTheEnd } from './watch.ts';

const written = ({ won, standing: record }: Written) => ({ won, record });

/** A lease, as a task that parks sees it. */
export function leaseOfTask(dependencies: LeaseDependencies, asked: AskedByTask, call: Call): LockOfTask<LeaseRecord> {
  const { key } = asked;
  const { clockSkewMs } = dependencies;
  return {
    asked,
    mark: async (ticket, over) => {
      const condition = over ? grantUnchanged(over) : isHeldByAnother(asked);
      return written(await mark(dependencies, { key, condition, ticket }, call));
    },
    own: (record) =>
      isOwnOf(record, asked)
        ? {
            ticket: record.ticket,
            isUnclaimed: record.claimTtlMs !== undefined,
            expiresAt: endsAt(record),
            stands: isLeased(record),
            lost: isOver(record) ? endReason(record) : undefined,
          }
        : undefined,
    freeAt: (record) => (isLeased(record) ? takeoverAt(record, clockSkewMs) : Number.NEGATIVE_INFINITY),
    arrived: (record) => arrivedAt(dependencies, record, call),
    read: () => readRecord(dependencies, key, call),
    handOff: async (record) => {
      const ending = isLeased(record) ? 'expired' : 'free';
      const unnotified = new Set<string>();
      const { moved, end, standing } = await handOff(dependencies, { record, ending, unnotified }, call);
      return { granted: moved, unnotified, end, record: standing };
    },
    passTo: async (record, ticket) =>
      written(await passToTask(dependencies, { record: record as Leased, ticket }, call)),
    notify: (record, message) =>
      notifyGranted(dependencies, { ...message, record: record as Leased, isOurs: true }, call),
    giveUp: async (record) => {
      await handOff(dependencies, { record, ending: 'undelivered' }, call);
    },
    // The first in line sends the message for all. A later grant in front of a task has its own.
    watch: async (record) => {
      const isFirst = Number(record.waiters?.N) === 1;
      if (isFirst || record.claimTtlMs !== undefined) await repairAtTheEnd(dependencies, record, { call });
    },
    lost: (why, record) => leaseLost(key, why, record),
  };
}
