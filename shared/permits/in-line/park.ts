import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { LockOfTask } from '../../line/park.ts';
import { repairAfter, repairLater } from '../../line/repair/later.ts';
import { lineOf } from '../../line/waiters.ts';
import { hasNoEntry, isNotRemembered, isStill } from '../conditions.ts';
import { passToTask, tellGrant } from '../deliver.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { advance } from '../hand-off.ts';
import { arrivedAt, raiseMark } from '../marks.ts';
import { readPool } from '../read.ts';
import { ending, entryOf, type PoolEntry, type PoolRecord } from '../record.ts';
import type { PermitRequest } from '../request.ts';
import { roomAt } from '../room.ts';
import { permitLost } from '../views.ts';
import { leaveForOtherWeight } from './leave.ts';

/** The permits of a pool, as a task that parks sees them. */
export function permitOfTask(
  dependencies: PoolDependencies,
  request: PermitRequest,
  call: Call,
): LockOfTask<PoolRecord> {
  const { key, name, holder, requestId, principal, ttlMs, data, execution, target, graceMs = 0 } = request;
  const { limit, weight } = request;
  const line = lineOf(key);
  const ownOf = (record: PoolRecord) => entryOf(record, name) as PoolEntry;
  return {
    asked: {
      ...{ key: line, holder, requestId, principal, namespace: call.namespace, data, execution, target },
      ...{ graceSeconds: graceMs / 1000, ttlSeconds: ttlMs / 1000, permit: { limit, weight } },
    },
    mark: async (ticket, over) => {
      const condition = over ? isStill(ownOf(over)) : all(hasNoEntry(name, 0), isNotRemembered(name));
      const { won, standing: record } = await raiseMark(dependencies, { key, condition, ticket }, call);
      // Another client has written something in the place of the permit: no condition will ever hold.
      const isRuined = !won && !entryOf(record, name) && ending(record, name) === undefined;
      return { won, record, isRuined };
    },
    own: (record) => {
      const entry = entryOf(record, name);
      const lost = ending(record, name);
      if (!entry) return lost && { ticket: undefined, isUnclaimed: false, expiresAt: 0, stands: false, lost };
      const { ticket, expiresAt } = entry;
      return { ticket, isUnclaimed: entry.claimTtlMs !== undefined, expiresAt, stands: true, lost };
    },
    refuseOther: (record, ticket) => leaveForOtherWeight(dependencies, { request, own: ownOf(record), ticket }, call),
    freeAt: (record) => roomAt(record, request, dependencies.clockSkewMs),
    arrived: (record) => arrivedAt(dependencies, record, call),
    read: () => readPool(dependencies, key, call),
    handOff: async (record) => {
      const unnotified = new Set<string>();
      const { granted, end, standing } = await advance(dependencies, { record, unnotified }, call);
      return { granted, unnotified, end, record: standing };
    },
    passTo: async (record, ticket) => {
      const passed = await passToTask(dependencies, { key, entry: ownOf(record), ticket }, call);
      return { won: passed.won && passed.entry !== undefined, record: passed.standing };
    },
    notify: (record, message) =>
      tellGrant(dependencies, { ...message, record, entry: ownOf(record), isOurs: true }, call),
    giveUp: async (record) => {
      await advance(dependencies, { record, going: [{ entry: ownOf(record), how: 'undelivered' }] }, call);
    },
    watch: async (record, ticket) => {
      // A caller that was granted its permit may be dead.
      if (record.entries.some(({ claimTtlMs }) => claimTtlMs !== undefined)) {
        await repairLater(dependencies, line, call);
        return;
      }
      if (record.nextTicket !== ticket) return; // the first in line sends the message for all
      const endsAt = roomAt(record, request, 0);
      if (Number.isFinite(endsAt)) await repairAfter(dependencies, { key: line, endsAt }, call);
    },
    lost: (why) => permitLost(key, why),
  };
}
