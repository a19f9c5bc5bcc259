import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, not } from '../../aws/condition.ts';
import { HoldfastError } from '../../errors.ts';
import type { ReleaseInput } from '../calls/inputs.ts';
import { type LeaseDependencies, MIN_HAND_OFF_TIME_MS } from '../dependencies.ts';
import { isUnderCap } from '../record/capped.ts';
import { entryAt, hasLeaseId, isNotEnding, isNotRemembered } from '../record/conditions.ts';
import { EXCLUSIVE_PATH, type Proof, proofOf, ticketOfLeaseId } from '../record/identity.ts';
import { isNoneMoved, leftToSleepers, shortNamesOf } from '../record/mark.ts';
import { entryOfNew } from '../record/new-entries.ts';
import { entryOf, isExclusiveGrant } from '../record/record.ts';
import { endExclusive, ringAfter, secondsAttribute, updateKey, type Written } from '../record/requests.ts';
import { FIRST_PAGE, type FoundInLine, MAX_NAMED, newGrantOf } from './next.ts';
import { canNotify, logGrants } from './notify.ts';
import {
  isInLine,
  isOverdue,
  isPlace,
  isTask,
  isWaiting,
  readWaiters,
  type Waiter,
  type WaiterKey,
} from './waiters.ts';

/**
 * Releases an exclusive grant that was made while others were in line. Because of their mark, a plain release would
 * lose its first write. So this reads the line first, and hands the key off in one write
 * (docs/protocols/queue.md#quick-release).
 * @returns undefined if the plain release must decide. `unanswered`: it must decide too, but the key may have been
 * handed off already
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown of the write
 */
export async function quickRelease(
  dependencies: LeaseDependencies,
  { key, leaseId }: ReleaseInput,
  call: Call,
): Promise<'handedOff' | 'unanswered' | undefined> {
  const [proof, ticket] = [proofOf(leaseId), ticketOfLeaseId(leaseId)];
  if (!proof || ticket === undefined || call.timeLeftMs() < MIN_HAND_OFF_TIME_MS) return undefined;
  const found = await peek(dependencies, { key, ticket }, call).catch(undefinedIfLineUnread);
  if (found?.isLeftToSleepers) return leaveToSleepers(dependencies, { key, proof, found }, call);
  const [served] = found?.nextGrants ?? [];
  if (!found || !served || (isTask(served.waiter) && !(await canNotify(dependencies, served.waiter)))) return undefined;
  const { won, record, unanswered, landedEarlier, versions } = await writeQuickHandOff(
    dependencies,
    { key, proof, found, served },
    call,
  );
  if (won || landedEarlier) logGrants(record, found, call);
  if (!won) return landedEarlier ? 'handedOff' : unanswered ? 'unanswered' : undefined;
  if (isTask(served.waiter) || found.taskWaits) {
    const { handOff } = await import('./hand-off.ts');
    await handOff(dependencies, { record, justGranted: { found, versions } }, call);
  }
  return 'handedOff';
}

/** Leaves the grant to the plain release if the line cannot be read. */
function undefinedIfLineUnread(error: unknown): undefined {
  if (!(error instanceof HoldfastError)) throw error;
}

/**
 * Finds the next waiter. Reads one page without changing it, because the release has not proved yet that it holds the
 * key.
 * @returns undefined if a hand-off must decide: the line is empty, others would share the key, a task is overdue, or
 * the row of the grant is still there
 */
async function peek(
  dependencies: LeaseDependencies,
  { key, ticket: own }: WaiterKey,
  call: Call,
): Promise<FoundInLine | undefined> {
  const now = dependencies.clock.now();
  const waiting: Waiter[] = [];
  let sleeper: Waiter | undefined;
  let read = 0;
  for await (const waiter of readWaiters(dependencies, { key, firstPage: FIRST_PAGE }, call)) {
    if (waiter.ticket === own || (isTask(waiter) && isOverdue(waiter, now))) return undefined;
    if (isWaiting(waiter, now)) waiting.push(waiter);
    else if (isPlace(waiter) && isInLine(waiter, now)) sleeper ??= waiter;
    if (++read === FIRST_PAGE) break;
  }
  // If a task waits, pass over callers whose deadline is within the margin: by a clock that is ahead they may have
  // left, and the task does not poll.
  const latest = waiting.some(isTask) ? now + dependencies.clockSkewMs : now;
  const [waiter, ...behind] = waiting.filter((row) => isTask(row) || row.deadline > latest);
  if (!waiter)
    return sleeper && waiting.length === 0
      ? { ...NO_GRANT, firstOther: sleeper.ticket, isLeftToSleepers: true }
      : undefined;
  const grant = newGrantOf(waiter);
  if (!isExclusiveGrant(grant)) return undefined;
  const [next] = behind;
  const sleeperTicket = sleeper?.ticket;
  // When many callers join at the same time, a waiter's arrival number may be lower than its place in the order of
  // tickets. Only the record shows that, so use the number only if the page shows a sleeper behind the waiter.
  const passesNoSleeper = sleeperTicket !== undefined && sleeperTicket > waiter.ticket;
  return {
    nextGrants: [{ waiter, grant }],
    hasOthers: next !== undefined || sleeperTicket !== undefined || read === FIRST_PAGE,
    firstOther: next?.ticket ?? sleeperTicket,
    ...(passesNoSleeper && !isTask(waiter) && { number: waiter.number }),
    ...(next && !isTask(next) && { waitingTickets: behind.slice(0, MAX_NAMED).map(({ ticket }) => ticket) }),
    unservedRows: [],
    firstOtherAsks: next && newGrantOf(next),
    taskWaits: behind.some(isTask),
    refused: [],
  };
}

const NO_GRANT: FoundInLine = {
  nextGrants: [],
  hasOthers: true,
  unservedRows: [],
  taskWaits: false,
  refused: [],
};

/**
 * Ends the grant, and leaves the key free for callers that sleep. Then hands off, because a task may have joined
 * since the read of the line, and tasks do not poll.
 * @returns as `quickRelease`
 */
async function leaveToSleepers(
  dependencies: LeaseDependencies,
  { key, proof, found: { firstOther = '' } }: { key: string; proof: Proof; found: FoundInLine },
  call: Call,
): Promise<'handedOff' | 'unanswered' | undefined> {
  const entry = { name: proof.name };
  const now = dependencies.clock.now();
  const [end, left] = [endExclusive(dependencies, { key, entry, how: 'released', now }), leftToSleepers(firstOther)];
  const { won, record, unanswered } = await updateKey(
    dependencies,
    {
      key,
      set: ['used = used - #h.w', ...end.set, ...left.set],
      remove: [...end.remove, ...left.remove],
      condition: all(hasLeaseId(proof), isNotEnding(EXCLUSIVE_PATH), isNoneMoved, {
        expression: 'attribute_exists(mark)',
      }),
      names: end.names,
      values: { ...end.values, ...left.values },
    },
    call,
  );
  if (!won) return unanswered ? 'unanswered' : undefined;
  const { handOffAfter } = await import('./hand-off.ts');
  await handOffAfter(dependencies, { record }, call);
  return 'handedOff';
}

interface QuickHandOff {
  key: string;
  proof: Proof;
  found: FoundInLine;
  served: FoundInLine['nextGrants'][number];
}

/** `landedEarlier`: an earlier try of the SDK landed, and the new holder has claimed or extended its grant since. */
type QuickHandOffWritten = Written & { landedEarlier: boolean; versions: ReadonlyMap<string, string> };

/** Ends the grant and makes the next one, in one write. The lease id in the condition is the proof. The mark stays. */
async function writeQuickHandOff(
  dependencies: LeaseDependencies,
  { key, proof, found, served }: QuickHandOff,
  call: Call,
): Promise<QuickHandOffWritten> {
  const now = dependencies.clock.now();
  const { grant } = served;
  const { item, version, id } = entryOfNew(dependencies, { grant, now, hasOthers: found.hasOthers, hasPrevious: true });
  const ring = ringAfter({ entry: proof, how: 'released' });
  const { execution } = grant;
  const written = await updateKey(
    dependencies,
    {
      key,
      set: [
        ...['#h = :g0', 'fence = :fence', 'prev_holder = #h.h', 'prev_fence = fence', 'prev_ended = :released'],
        ...[
          'prev_at = :now',
          'turn_ms = :now - #h.a',
          found.number === undefined ? 'line_out = if_not_exists(line_out, :zero) + :one' : 'line_out = :number',
        ],
        ...(found.firstOther === undefined ? [] : ['next_ticket = :next']),
        ...(found.waitingTickets === undefined ? [] : ['next_tickets = :names']),
        ...(execution === undefined ? [] : ['execution = :execution']),
        ...ring.set,
      ],
      remove: [
        'prev_by',
        ...(execution === undefined ? ['execution'] : []),
        ...(found.firstOther === undefined ? ['next_ticket'] : []),
      ],
      condition: all(
        hasLeaseId(proof),
        isNotEnding(EXCLUSIVE_PATH),
        isNotRemembered(grant.name),
        isUnderCap(undefined, [grant]),
        isNoneMoved,
        not({ expression: '#h.m = :m', names: entryAt(EXCLUSIVE_PATH) }),
        { expression: 'fence < :fence AND attribute_exists(mark)' },
      ),
      values: {
        ...{ ':g0': item, ':fence': integer(now), ':released': text('released'), ':now': integer(now) },
        ...(found.number === undefined
          ? { ':zero': integer(0), ':one': integer(1) }
          : { ':number': integer(found.number) }),
        ...(found.firstOther !== undefined && { ':next': text(found.firstOther) }),
        ...(found.waitingTickets !== undefined && { ':names': text(shortNamesOf(found.waitingTickets)) }),
        ...(execution !== undefined && { ':execution': text(execution) }),
        ...ring.values,
      },
      ttl: secondsAttribute(now + grant.ttlMs),
    },
    call,
  );
  const entry = entryOf(written.record, grant.name);
  const won = written.won || entry?.version === version;
  return { ...written, won, landedEarlier: entry?.id === id, versions: new Map([[grant.name, version]]) };
}
