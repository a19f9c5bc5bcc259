import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, any } from '../aws/condition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isDue, leftToNextLook } from '../line/executions/bound-grant.ts';
import { MOST_LOOKS } from '../line/executions/questions.ts';
import { ASK_EVERY_MS } from '../line/times.ts';
import { isStill } from './conditions.ts';
import { endPermitsOf } from './execution-ended.ts';
import { type BoundEntry, isBound, type PoolRecord } from './record.ts';
import { updatePool } from './write.ts';

/**
 * Asks about the executions that hold bound permits, each unless a call has asked a moment ago, and ends the permits of executions that have ended
 * (docs/protocols/bound.md#the-look).
 * @param most how many questions the call may still ask
 * @returns how many in line were given permits
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function lookAtPermits(
  dependencies: LeaseDependencies,
  { record, most = MOST_LOOKS }: { record: PoolRecord; most?: number },
  call: Call,
): Promise<number> {
  const { key } = record;
  const due = dueEntries(record, dependencies.clock.now()).slice(0, most);
  let granted = 0;
  for (const entry of due) {
    if (!(await note(dependencies, { key, entry }, call))) continue;
    granted += (await endPermitsOf(dependencies, { key, execution: entry.execution }, call)).granted;
  }
  return granted;
}

/** As `lookAtPermits`, for a call that the pool keeps waiting, or that is refused: a failure of the look does not fail the call. */
export async function lookBeside(dependencies: LeaseDependencies, record: PoolRecord, call: Call): Promise<void> {
  await lookAtPermits(dependencies, { record }, call).catch(leftToNextLook);
}

/** The bound permits about which no call has asked for a while, the longest first. A permit that its caller has yet to claim ends by the grant window. */
const dueEntries = ({ entries }: PoolRecord, now: number): BoundEntry[] =>
  entries
    .filter(isBound)
    .filter((entry) => entry.claimTtlMs === undefined && isDue(entry, now))
    .toSorted(({ lookedAt: one = 0 }, { lookedAt: other = 0 }) => one - other);

/** @returns whether this call asks */
async function note(
  dependencies: LeaseDependencies,
  { key, entry }: { key: string; entry: BoundEntry },
  call: Call,
): Promise<boolean> {
  const now = dependencies.clock.now();
  const isDueStill = any(
    { expression: 'attribute_not_exists(#h.j)' },
    { expression: '#h.j < :due', values: { ':due': integer(now - ASK_EVERY_MS) } },
  );
  const update = {
    key,
    now,
    set: ['#h.j = :now'],
    condition: all(isStill(entry), isDueStill),
    values: { ':now': integer(now) },
  };
  return (await updatePool(dependencies, update, call)).won;
}
