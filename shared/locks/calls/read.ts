import type { Call } from '../../aws/call.ts';
import { DEFAULT_LIMIT } from '../../fields.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { readKey } from '../record/requests.ts';
import { type KeyView, keyView } from '../record/views.ts';
import type { ReadInput } from './inputs.ts';
import type { KeyPage } from './list-keys.ts';

/**
 * Reads one key or, without a `key`, lists the keys.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable
 */
export function readKeyOrList(dependencies: LeaseDependencies) {
  const readOne = readOneKey(dependencies);
  return async ({ key, ...query }: ReadInput, call: Call): Promise<KeyView | KeyPage> => {
    if (key !== undefined) return readOne({ ...query, key }, call);
    const { listKeys } = await import('./list-keys.ts');
    return listKeys(dependencies)(query, call);
  };
}

/**
 * Reads the holders of a key, with a consistent read, and the tasks and callers in line.
 * @throws HoldfastError Throttled, Unavailable
 */
export function readOneKey(dependencies: LeaseDependencies) {
  return async ({ key, waiters, limit = DEFAULT_LIMIT }: ReadInput & { key: string }, call: Call): Promise<KeyView> => {
    const record = await readKey(dependencies, key, call);
    const now = dependencies.clock.now();
    const view = keyView(record, now);
    // Without a mark there are no waiters, unless a third-party client has removed the mark, which the schedule puts
    // back. Callers that have left may come back.
    if (record.mark === undefined && !(Number(record.lineUntil) > now) && !waiters) return { ...view, waiting: 0 };
    const { readWaiting } = await import('../line/listed-waiters.ts');
    const granted = new Set(record.entries.map(({ ticket }) => ticket));
    const line = await readWaiting(
      dependencies,
      { key, moved: record.moved, movedBy: record.movedBy, granted, limit: waiters ? limit : 0 },
      call,
    );
    return { ...view, waiting: line.waiting, ...(waiters && { waiters: line.waiters }) };
  };
}
