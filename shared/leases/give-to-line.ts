import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { logLine } from '../surroundings/log.ts';
import type { LeaseRecord } from './record.ts';
import { canBeHad, isLeased } from './rules.ts';

/**
 * Serves the next in line after a waiter has left it, if the lease can be had. A failure does not concern the caller that ended that waiter: the
 * schedule goes on.
 * @throws never a HoldfastError
 */
export async function handOffToLine(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<void> {
  if (record.waiters === undefined || !canBeHad(record, dependencies)) return;
  const { handOff } = await import('./hand-off.ts');
  try {
    await handOff(dependencies, { record, ending: isLeased(record) ? 'expired' : 'free' }, call);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    logLine('WARN', { message: 'the hand-off of a lease failed: the schedule repeats it', cause: error.message });
  }
}
