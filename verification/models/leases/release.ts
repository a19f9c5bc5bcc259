import { lost, NOW, write } from '../engine/common.ts';
import type { Config, Item, Steps } from '../engine/types.ts';
import { type View, viewOf, writeVersion } from './common.ts';
import { grantTo, handOff, peek } from './hand-off.ts';
import * as w from './writes.ts';

/** leases.md#release */
export function* release(key: string, leaseId: string, config: Config): Steps<{ released: boolean }> {
  if (yield* releaseInLine(key, leaseId, config)) return { released: true };
  for (;;) {
    const written = yield* write(w.release(key, leaseId, yield NOW, config));
    if (written.won) return { released: true };
    const record = written.standing;
    if (record.lease_id !== leaseId) return { released: false };
    if (record.waiters === undefined || !w.isLeased(record)) return { released: true };
    const { moved, end } = yield* handOff(key, record, 'released', config);
    if (moved.length > 0 || end !== 'overtaken') return { released: true };
  }
}

/** queue.md#quick-release @returns whether the lease was handed on */
function* releaseInLine(key: string, leaseId: string, config: Config): Steps<boolean> {
  const own = w.ticketOfLeaseId(leaseId);
  const line = own === undefined ? undefined : yield* peek(key, own, config);
  if (!line?.oldest) return false;
  const grant = grantTo(line.oldest, { from: {}, others: line.others }, yield NOW, config);
  const op = w.quickTransfer(grant, { leaseId, next: line.next?.ticket }, config);
  const { won, standing } = yield* writeVersion(op, grant.version);
  if (won) yield* handOff(key, standing, 'released', config, { transferred: line });
  return won;
}

export function* heartbeat(key: string, leaseId: string, config: Config): Steps<View> {
  const out = yield w.heartbeat(key, leaseId, config.uuid(), yield NOW);
  const record: Item = (out.won ? out.item : out.old) ?? {};
  if (w.isLeased(record) && record.lease_id === leaseId) return viewOf(record, yield NOW, config);
  throw lost('unknown');
}
