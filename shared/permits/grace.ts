import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { repairAfter } from '../line/repair/later.ts';
import { executionAt, secondsOf, ttlOf } from './alone.ts';
import { isStill } from './conditions.ts';
import { ALONE } from './identity.ts';
import { entryOf, isBound, type PoolEntry } from './record.ts';
import { updatePool } from './write.ts';

/**
 * Lets a permit go on until then.
 * @returns false if the permit has changed since it was read
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function giveGrace(
  dependencies: LeaseDependencies,
  { key, entry, until }: { key: string; entry: PoolEntry & { execution: string }; until: number },
  call: Call,
): Promise<boolean> {
  const { clock, ids } = dependencies;
  const version = ids.uuid();
  const isAlone = entry.path === ALONE;
  const at = executionAt(entry.path);
  const { won, record } = await updatePool(
    dependencies,
    {
      key,
      set: [
        ...['#h.v = :version', '#h.e = :expires', '#h.g = :execution'],
        ...(isBound(entry) ? ['#h.t = #h.n', ...(isAlone ? ['#h.u = :graceSeconds'] : [])] : []),
      ],
      remove: [at, '#h.y', '#h.n', '#h.j', '#h.z'],
      condition: isStill(entry),
      values: {
        ...{ ':version': text(version), ':expires': integer(until), ':execution': text(entry.execution) },
        ...(isBound(entry) && isAlone && { ':graceSeconds': secondsOf(entry.graceMs ?? 0) }),
      },
      ttl: ttlOf(entry.path, { now: clock.now(), expiresAt: until }),
    },
    call,
  );
  // A try of the SDK may have landed before the one that lost.
  const isGiven = won || entryOf(record, entry.name)?.version === version;
  if (isGiven && record.mark !== undefined) await repairAfter(dependencies, { key: key, endsAt: until }, call);
  return isGiven;
}
