import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { entryOf, type HolderEntry, type KeyRecord } from '../record/record.ts';
import { isLate } from '../record/requests.ts';
import type { Going } from '../record/room.ts';
import { notifyHolder, raiseFence } from '../record/versions.ts';
import { sendRepairAfterWindow, sendRepairAtRoom } from './delayed-repair.ts';
import type { NextGrant, NextInLine } from './next.ts';
import { leftToSchedule } from './notify.ts';
import { deleteWaiter, isTask } from './waiters.ts';

// The messages of a hand-off: to the tasks that have just received grants, and to the repair about those behind them.

/** The versions that a write has given new entries, by name. */
export type Versions = ReadonlyMap<string, string>;

interface NotifyingGranted {
  record: KeyRecord;
  versions: Versions;
  unnotified: Set<string>;
}

/** @returns the grants whose tasks were gone. This call sent the first message about them, so their tasks were never notified */
export async function notifyGranted(
  dependencies: LeaseDependencies,
  { line: { nextGrants, behind, taskWaits }, ...notifying }: NotifyingGranted & { line: NextInLine },
  call: Call,
): Promise<Going[]> {
  const goneTasks: Going[] = [];
  for (const nextGrant of nextGrants.filter(({ waiter }) => isTask(waiter))) {
    const entry = await notifyTask(dependencies, { nextGrant, ...notifying }, call);
    if (entry) goneTasks.push({ entry, how: 'neverNotified' });
  }
  const { record } = notifying;
  if (!taskWaits || goneTasks.length === nextGrants.length) return goneTasks;
  if (nextGrants.some(({ waiter }) => !isTask(waiter))) await sendRepairAfterWindow(dependencies, record.key, call);
  else if (behind) await sendRepairAtRoom(dependencies, { record, asked: behind }, call);
  return goneTasks;
}

/** A failure after the grant is not the caller's: the schedule notifies the task. */
async function notifyTask(
  dependencies: LeaseDependencies,
  { nextGrant: { waiter, grant }, record, versions, unnotified }: NotifyingGranted & { nextGrant: NextGrant },
  call: Call,
): Promise<HolderEntry | undefined> {
  const entry = entryOf(record, grant.name);
  if (!entry || entry.ticket !== waiter.ticket || !isTask(waiter)) return undefined;
  // If the answer of the write was lost, a call with another task of the request may have notified that other task since.
  if (entry.version !== versions.get(grant.name)) return undefined;
  // If this call was paused for longer than the ttl, another grant may have replaced its own.
  if (entry.expiresAt <= dependencies.clock.now()) return undefined;
  unnotified.add(waiter.ticket);
  try {
    const mayBeLow = entry.metNoFence && isLate(entry.acquiredAt, dependencies.clock.now());
    const shown = mayBeLow
      ? await raiseFence(dependencies, { key: record.key, entry }, call)
      : { won: true, record, entry };
    if (!shown.won || !shown.entry) return undefined;
    const message = { waiter, record: shown.record, entry: shown.entry, repeated: false, isOurs: true };
    const { outcome, record: current } = await notifyHolder(dependencies, message, call);
    if (outcome === 'accepted' || outcome === 'gone') unnotified.delete(waiter.ticket);
    if (outcome === 'accepted') await deleteWaiter(dependencies, waiter, call);
    return outcome === 'gone' ? entryOf(current, grant.name) : undefined;
  } catch (error) {
    return leftToSchedule(error);
  }
}
