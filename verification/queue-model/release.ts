import { lost, NOW, type View, viewOf, write } from './common.ts';
import { handOff } from './hand-off.ts';
import type { Config, Item, Steps } from './types.ts';
import * as w from './writes.ts';

/** leases.md#release */
export function* release(key: string, leaseId: string, config: Config): Steps<{ released: boolean }> {
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

export function* heartbeat(key: string, leaseId: string, config: Config): Steps<View> {
  const out = yield w.heartbeat(key, leaseId, config.uuid(), yield NOW);
  const record: Item = (out.won ? out.item : out.old) ?? {};
  if (w.isLeased(record) && record.lease_id === leaseId) return viewOf(record, yield NOW, config);
  throw lost('unknown');
}
