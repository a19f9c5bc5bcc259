import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { LockOfTask } from '../line/park.ts';
import { repairAfter, repairLater } from '../line/repair/later.ts';
import { lineOf } from '../line/waiters.ts';
import { hasNoEntry, isNotRemembered, isStill } from './conditions.ts';
import { passToTask, tellGrant } from './deliver.ts';
import type { PoolDependencies } from './dependencies.ts';
import { advance } from './hand-off.ts';
import { correctLineOut, raiseMark } from './marks.ts';
import { readPool } from './read.ts';
import { ending, entryOf, type PoolEntry, type PoolRecord } from './record.ts';
import { otherTerms, type PermitRequest } from './request.ts';
import { roomAt } from './room.ts';
import { permitLost } from './views.ts';

/** The permits of a pool, as a task that parks sees them. */
export function permitOfTask(
  dependencies: PoolDependencies,
  request: PermitRequest,
  call: Call,
): LockOfTask<PoolRecord> {
  const { key, name, holder, requestId, principal, ttlMs, data, execution, target, graceMs = 0 } = request;
  const { limit, weight } = request;
  const line = lineOf(key);
  const ownIn = (record: PoolRecord) => entryOf(record, name) as PoolEntry;
  return {
    asked: {
      ...{ key: line, holder, requestId, principal, namespace: call.namespace, data, execution, target },
      ...{ graceSeconds: graceMs / 1000, ttlSeconds: ttlMs / 1000, permit: { limit, weight } },
    },
    read: () => readPool(dependencies, key, call),
    own: (record) => ending(record, name) ?? entryOf(record, name),
    granted: ({ entries }) => new Set(entries.map(({ ticket }) => ticket)),
    freeAt: (record) => roomAt(record, request, dependencies.clockSkewMs),
    handOff: async (record) => {
      const unnotified = new Set<string>();
      const { granted, end, standing } = await advance(dependencies, { record, unnotified }, call);
      return { served: granted, unnotified, end, record: standing };
    },
    lost: (reason) => permitLost(key, reason),
    correct: (arrivals, inLine) => correctLineOut(dependencies, { key, arrivals, inLine }, call),
    otherTerms: (record) => otherTerms(request, ownIn(record)),
    markTask: async (ticket, over) => {
      const condition = over ? isStill(ownIn(over)) : all(hasNoEntry(name, 0), isNotRemembered(name));
      const { won, standing: record } = await raiseMark(dependencies, { key, condition, ticket }, call);
      const isRuined = !won && !entryOf(record, name) && ending(record, name) === undefined;
      return { won, record, isRuined, arrivals: Number(record.waiters?.N), lineOut: record.lineOut };
    },
    passTo: async (record, ticket) => {
      const passed = await passToTask(dependencies, { key, entry: ownIn(record), ticket }, call);
      return { won: passed.won && passed.entry !== undefined, record: passed.standing };
    },
    notify: (record, { task: ticket, repeated }) =>
      tellGrant(dependencies, { ticket, record, entry: ownIn(record), repeated, isOurs: true }, call),
    undelivered: async (record) => {
      await advance(dependencies, { record, going: [{ entry: ownIn(record), how: 'undelivered' }] }, call);
    },
    watch: async (record, ticket) => {
      // A caller that was granted its permit may be dead.
      if (record.entries.some(({ claimTtlMs }) => claimTtlMs !== undefined))
        return repairLater(dependencies, line, call);
      if (record.nextTicket !== ticket) return; // the first in line sends the message for all
      const endsAt = roomAt(record, request, 0);
      if (Number.isFinite(endsAt)) await repairAfter(dependencies, { key: line, endsAt }, call);
    },
  };
}
