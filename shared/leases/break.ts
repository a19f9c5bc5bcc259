import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, not } from '../aws/condition.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { BreakInput } from '../line/calls.ts';
import { type Broken, holderTerms } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { operatorOf } from '../line/ended.ts';
import { hasFence, hasNoEndMark, isClaimed, isExpired, isHeld, isLease, isUnmarked } from './conditions.ts';
import { endLease } from './end.ts';
import { type Leased, type LeaseRecord, parseRecord, unusable } from './record.ts';
import { endsAt, isEnding, isLeased, takeoverAt } from './rules.ts';
import { leaseLost, leaseView } from './views.ts';
import { updateLease } from './write.ts';

/**
 * Ends the lease that an operator saw, named by its fence (docs/protocols/leases.md#break): at once, or with `wait` when its holder releases it or
 * its ttl ends. The first in line gets it. Only the fence stops what the holder still writes. A repeat gives the same answer, unless the
 * lease has ended or the key has been granted since.
 * @throws HoldfastError Conflict (leased under another fence), NotFound (not leased), Throttled, Unavailable, OutcomeUnknown
 */
export function breakLeaseByFence(dependencies: LeaseDependencies) {
  return ({ key, fence, wait = false }: BreakInput, call: Call): Promise<Broken> =>
    (wait ? markEnding : endNow)(dependencies, { key, fence }, call);
}

interface Breaking {
  key: string;
  fence: number;
}

/** One conditional UpdateItem. */
async function endNow(dependencies: LeaseDependencies, { key, fence }: Breaking, call: Call): Promise<Broken> {
  const condition = all(isLease, hasFence(fence), isHeld, isUnmarked);
  for (let inDoubt = false; ; ) {
    const outcome = await endLease(dependencies, { key, condition, markBroken: true }, call);
    const item = outcome.won ? outcome.item : outcome.old;
    const unanswered = inDoubt || (!outcome.won && outcome.unanswered);
    const record = item ? parseRecord(item, unanswered) : { key };
    if (isBroken(record, fence)) {
      if (record.ticket !== undefined) await endWaiter(dependencies, record, call);
      return brokenView(record, { fence, ended: true });
    }
    const current = recordUnder(dependencies, { record, fence, unanswered });
    const handed = await handOffBroken(dependencies, current, call);
    if (handed.end !== 'overtaken') return brokenView(current, { fence, ended: true });
    inDoubt ||= handed.unanswered === true;
  }
}

/**
 * One conditional UpdateItem, which gives the grant a new version, so that no call that has read the grant before extends it. A lease that no
 * caller holds ends at once: a grant that was not claimed, an expired lease, and a grant whose task was not notified.
 */
async function markEnding(dependencies: LeaseDependencies, { key, fence }: Breaking, call: Call): Promise<Broken> {
  const { clock, clockSkewMs, ids } = dependencies;
  for (let inDoubt = false; ; ) {
    const now = clock.now();
    const version = ids.uuid();
    const isInUse = all(isHeld, isClaimed, not(isExpired(now - clockSkewMs)));
    const operator = operatorOf(call);
    const by = operator === undefined ? '' : ', broken_by = :operator';
    const expression = `SET ending_at = :now, lease_version = :version${by}`;
    const values = {
      ...{ ':now': integer(now), ':version': text(version) },
      ...(operator !== undefined && { ':operator': text(operator) }),
    };
    const condition = all(hasFence(fence), isInUse, hasNoEndMark);
    const written = await updateLease(dependencies, { key, expression, values, condition, version }, call);
    const record = written.record;
    if (isBroken(record, fence)) return brokenView(record, { fence, ended: true });
    const unanswered = inDoubt || written.unanswered === true;
    const current = recordUnder(dependencies, { record, fence, unanswered });
    if (isEnding(current) && takeoverAt(current, clockSkewMs) > now) {
      const isUnnotified = current.ticket !== undefined && (await endUnnotifiedTask(dependencies, current, call));
      return isUnnotified ? endNow(dependencies, { key, fence }, call) : brokenView(current, { fence, ended: false });
    }
    if (current.malformed !== undefined) throw unusable(current);
    const handed = await handOffBroken(dependencies, current, call);
    if (handed.end !== 'overtaken') return brokenView(current, { fence, ended: true });
    inDoubt ||= handed.unanswered === true;
  }
}

interface Seen {
  record: LeaseRecord;
  fence: number;
  /** Whether a try got no answer: it may have broken the lease before another caller took the key, or another client removed the record. */
  unanswered: boolean;
}

/** @throws HoldfastError if the record shows no lease with the fence */
function recordUnder({ clock, table }: LeaseDependencies, { record, fence, unanswered }: Seen): Leased {
  const { key } = record;
  if (unanswered && record.fence !== fence) throw outcomeUnknown(writing(`table ${table}`), undefined, { key });
  if (!isLeased(record)) throw new HoldfastError('NotFound', 'no caller holds the lease of the key', { key });
  if (record.fence === fence) return record;
  const actual = leaseView(key, record, clock.now());
  throw new HoldfastError(
    'Conflict',
    'the lease has another fence: read the key, and break the lease by its present fence',
    { key, actual },
  );
}

const breaking = (record: LeaseRecord) => ({ record, ending: 'broken' }) as const;

/** Under the version of the record: it may have been extended, claimed or ended since. */
async function handOffBroken(dependencies: LeaseDependencies, record: Leased, call: Call) {
  const { handOff } = await import('./hand-off.ts');
  return handOff(dependencies, breaking(record), call);
}

/** A holder that got the lease from the line may be a task that was not notified yet. */
async function endWaiter(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<void> {
  const { settleWaiter } = await import('./hand-off.ts');
  await settleWaiter(dependencies, breaking(record), call);
}

async function endUnnotifiedTask(
  dependencies: LeaseDependencies,
  { key, ticket = '' }: LeaseRecord,
  call: Call,
): Promise<boolean> {
  const { endUnnotified } = await import('../line/notify.ts');
  const ended = { waiter: { key, ticket }, error: leaseLost(key, 'broken', undefined) };
  const delivery = await endUnnotified(dependencies, ended, call);
  return delivery === 'delivered';
}

function isBroken(record: LeaseRecord, fence: number): boolean {
  return record.fence === fence && record.brokenAt !== undefined && !isLeased(record);
}

function brokenView(record: LeaseRecord, { fence, ended }: Pick<Broken, 'fence' | 'ended'>): Broken {
  const { key, holder = null, heartbeatAt, acquiredAt } = record;
  const expiresAt = isLeased(record) ? endsAt(record) : record.brokenUntil;
  return { key, broken: true, fence, holder, ended, ...holderTerms({ expiresAt, heartbeatAt, acquiredAt }) };
}
