import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { isOwnOf } from '../line/acquisition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { GrantEnd, WithdrawableLock } from '../line/withdrawal.ts';
import { isStillHeld, isUnmarked } from './conditions.ts';
import { endLease } from './end.ts';
import { handOffToLine } from './give-to-line.ts';
import { readRecord } from './read-record.ts';
import { type Leased, type LeaseRecord, parseRecord } from './record.ts';
import { isEndOf, isLeased } from './rules.ts';

/** The lease of a key, for a call that ends waiters and grants. */
export const withdrawableLease = (
  dependencies: LeaseDependencies,
  key: string,
  call: Call,
): WithdrawableLock<LeaseRecord> => ({
  table: dependencies.table,
  read: () => readRecord(dependencies, key, call),
  grantOf: (record, ticket) => (isLeased(record) && record.ticket === ticket ? record : undefined),
  own: (record, asker) =>
    isLeased(record) && isOwnOf(record, asker)
      ? { ticket: record.ticket, end: () => endCurrent(dependencies, record, call) }
      : undefined,
  remembers: () => false,
  handOffToLine: (record) => handOffToLine(dependencies, record, call),
});

async function endCurrent(dependencies: LeaseDependencies, record: Leased, call: Call): Promise<GrantEnd> {
  const { key } = record;
  const outcome = await endLease(dependencies, { key, condition: all(isStillHeld(record), isUnmarked) }, call);
  if (outcome.won) return 'ended';
  const current = outcome.old ? parseRecord(outcome.old, outcome.unanswered) : { key };
  if (outcome.unanswered && isEndOf(record, { record: current, isBroken: false })) return 'ended';
  if (current.version !== record.version) return outcome.unanswered ? 'inDoubt' : 'changed';
  const { handOff } = await import('./hand-off.ts');
  const handed = await handOff(dependencies, { record: current, ending: 'released' }, call);
  if (handed.end !== 'overtaken') return 'ended';
  return outcome.unanswered || handed.unanswered ? 'inDoubt' : 'changed';
}
