import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { raiseFence } from '../record/continuing-grants.ts';
import { notifyHolder } from '../record/notify-holder.ts';
import { entryOf, type HolderEntry, type KeyRecord } from '../record/record.ts';
import { isSlowWrite } from '../record/requests.ts';
import type { GrantToEnd } from '../record/room.ts';
import { sendRepairAfterWindow, sendRepairAtRoom } from './delayed-repair.ts';
import type { FoundInLine, NextGrant } from './next.ts';
import { logFailedHandOff } from './notify.ts';
import { deleteWaiter, isTask } from './waiters.ts';

// The messages that follow a hand-off: to tasks that have just received grants, and delayed repairs for the tasks
// behind them.

/** The versions that a write has given to new entries, by the name of the request. */
export type Versions = ReadonlyMap<string, string>;

interface WrittenGrants {
  record: KeyRecord;
  versions: Versions;
  unnotified: Set<string>;
}

/**
 * Notifies the tasks of their grants. If a task waits behind the new holders, sends a delayed repair.
 * @returns the grants whose tasks were gone, and so were never notified: this call sent the first message about them
 */
export async function notifyGranted(
  dependencies: LeaseDependencies,
  { found: { nextGrants, firstOtherAsks, taskWaits }, ...notifying }: WrittenGrants & { found: FoundInLine },
  call: Call,
): Promise<GrantToEnd[]> {
  const grantsOfGoneTasks: GrantToEnd[] = [];
  for (const nextGrant of nextGrants.filter(({ waiter }) => isTask(waiter))) {
    const entry = await notifyTask(dependencies, { nextGrant, ...notifying }, call);
    if (entry) grantsOfGoneTasks.push({ entry, how: 'neverNotified' });
  }
  const { record } = notifying;
  if (!taskWaits || grantsOfGoneTasks.length === nextGrants.length) return grantsOfGoneTasks;
  if (nextGrants.some(({ waiter }) => !isTask(waiter))) await sendRepairAfterWindow(dependencies, record.key, call);
  else if (firstOtherAsks) await sendRepairAtRoom(dependencies, { record, request: firstOtherAsks }, call);
  return grantsOfGoneTasks;
}

/**
 * Notifies a task of the grant that it has just received. Logs a failure: the call that hands off has done its own
 * work, and the schedule notifies the task later.
 * @returns the grant, if its task was gone
 */
async function notifyTask(
  dependencies: LeaseDependencies,
  { nextGrant: { waiter, grant }, record, versions, unnotified }: WrittenGrants & { nextGrant: NextGrant },
  call: Call,
): Promise<HolderEntry | undefined> {
  const entry = entryOf(record, grant.name);
  if (!entry || entry.ticket !== waiter.ticket || !isTask(waiter)) return undefined;
  // Another version: while the answer of this write was lost, another call has passed the grant to another task of the
  // request, and notified that task.
  if (entry.version !== versions.get(grant.name)) return undefined;
  // Expired: this call was paused for longer than the ttl, and another call may have taken the key over.
  if (entry.expiresAt <= dependencies.clock.now()) return undefined;
  unnotified.add(waiter.ticket);
  try {
    const mayBeLow = entry.metNoFence && isSlowWrite(entry.acquiredAt, dependencies.clock.now());
    const shown = mayBeLow
      ? await raiseFence(dependencies, { key: record.key, entry }, call)
      : { won: true, record, entry };
    if (!shown.won || !shown.entry) return undefined;
    const message = { waiter, record: shown.record, entry: shown.entry, repeated: false, isWrittenHere: true };
    const { outcome, record: current } = await notifyHolder(dependencies, message, call);
    if (outcome === 'accepted' || outcome === 'gone') unnotified.delete(waiter.ticket);
    if (outcome === 'accepted') await deleteWaiter(dependencies, waiter, call);
    return outcome === 'gone' ? entryOf(current, grant.name) : undefined;
  } catch (error) {
    return logFailedHandOff(error);
  }
}
