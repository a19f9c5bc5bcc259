import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, not } from '../../aws/condition.ts';
import { HoldfastError } from '../../errors.ts';
import type { ReleaseInput } from '../calls/inputs.ts';
import { type LeaseDependencies, TRANSFER_MS } from '../dependencies.ts';
import { isUnderCap } from '../record/capped.ts';
import { entryAt, hasLeaseId, hasNoEndMark, isNotRemembered } from '../record/conditions.ts';
import { ALONE, type Proof, proofOf, ticketOfLeaseId } from '../record/identity.ts';
import { isNoneMoved, leftAsleep, namesOf } from '../record/mark.ts';
import { entryOfNew } from '../record/new-entries.ts';
import { entryOf, isAloneIn } from '../record/record.ts';
import { endAlone, ringAfter, secondsOf, updateKey, type Written } from '../record/requests.ts';
import { FIRST_PAGE, MOST_NAMED, type NextInLine, newGrantOf } from './next.ts';
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
 * Releases an exclusive grant that was made while others were in line. Looks at the line at once, and hands the key off by the lease id, in place of a
 * write that is bound to lose (docs/protocols/queue.md#quick-release).
 * @returns undefined if the plain release must decide. With `unanswered` it must too, but the key may have been handed off already
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown of the write
 */
export async function releaseInLine(
  dependencies: LeaseDependencies,
  { key, leaseId }: ReleaseInput,
  call: Call,
): Promise<'handedOff' | 'unanswered' | undefined> {
  const [proof, ticket] = [proofOf(leaseId), ticketOfLeaseId(leaseId)];
  if (!proof || ticket === undefined || call.timeLeftMs() < TRANSFER_MS) return undefined;
  const line = await peek(dependencies, { key, ticket }, call).catch(plainIfUnread);
  if (line?.isAsleep) return leaveAsleep(dependencies, { key, proof, line }, call);
  const [served] = line?.nextGrants ?? [];
  if (!line || !served || (isTask(served.waiter) && !(await canNotify(dependencies, served.waiter)))) return undefined;
  const { won, record, unanswered, isOurs, versions } = await pass(dependencies, { key, proof, line, served }, call);
  if (won || isOurs) logGrants(record, line, call);
  if (!won) return isOurs ? 'handedOff' : unanswered ? 'unanswered' : undefined;
  if (isTask(served.waiter) || line.taskWaits) {
    const { handOff } = await import('./hand-off.ts');
    await handOff(dependencies, { record, given: { line, versions } }, call);
  }
  return 'handedOff';
}

/** The plain release can end the grant without the line. */
function plainIfUnread(error: unknown): undefined {
  if (!(error instanceof HoldfastError)) throw error;
}

/**
 * Finds the next waiter, before the release has proved that it holds the key. Reads one page, and changes nothing.
 * @returns undefined if only the record can decide: the line is empty, others would share the key, a task is overdue, or the ticket of the grant is still there
 */
async function peek(
  dependencies: LeaseDependencies,
  { key, ticket: own }: WaiterKey,
  call: Call,
): Promise<NextInLine | undefined> {
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
  // If a task waits, a caller whose deadline is within the margin is passed over. By a clock that is ahead it may have left, and the task does not look by itself.
  const latest = waiting.some(isTask) ? now + dependencies.clockSkewMs : now;
  const [waiter, ...behind] = waiting.filter((one) => isTask(one) || one.deadline > latest);
  if (!waiter)
    return sleeper && waiting.length === 0 ? { ...NO_GRANT, next: sleeper.ticket, isAsleep: true } : undefined;
  const grant = newGrantOf(waiter);
  if (!isAloneIn(grant)) return undefined;
  const [next] = behind;
  const first = sleeper?.ticket;
  // The numbers of a crowd that came at once are too low, and only the record shows that. So a number is used only if sleepers are behind the waiter.
  const passesNoSleeper = first !== undefined && first > waiter.ticket;
  return {
    nextGrants: [{ waiter, grant }],
    others: next !== undefined || first !== undefined || read === FIRST_PAGE,
    next: next?.ticket ?? first,
    ...(passesNoSleeper && !isTask(waiter) && { number: waiter.number }),
    ...(next && !isTask(next) && { waitingTickets: behind.slice(0, MOST_NAMED).map(({ ticket }) => ticket) }),
    inLine: [],
    behind: next && newGrantOf(next),
    taskWaits: behind.some(isTask),
    refused: [],
  };
}

const NO_GRANT: NextInLine = {
  nextGrants: [],
  others: true,
  next: undefined,
  inLine: [],
  behind: undefined,
  taskWaits: false,
  refused: [],
};

/**
 * Ends the grant, and leaves the key free for callers that sleep. Then hands off, because a task that joined meanwhile does not look by itself.
 * @returns as `releaseInLine`
 */
async function leaveAsleep(
  dependencies: LeaseDependencies,
  { key, proof, line: { next = '' } }: { key: string; proof: Proof; line: NextInLine },
  call: Call,
): Promise<'handedOff' | 'unanswered' | undefined> {
  const entry = { name: proof.name };
  const now = dependencies.clock.now();
  const [end, left] = [endAlone(dependencies, { key, entry, how: 'released', now }), leftAsleep(next)];
  const { won, record, unanswered } = await updateKey(
    dependencies,
    {
      key,
      set: ['used = used - #h.w', ...end.set, ...left.set],
      remove: [...end.remove, ...left.remove],
      condition: all(hasLeaseId(proof), hasNoEndMark(ALONE), isNoneMoved, { expression: 'attribute_exists(mark)' }),
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
  line: NextInLine;
  served: NextInLine['nextGrants'][number];
}

/** `isOurs`: a try of the SDK has landed before the one that lost, and the new holder has extended or claimed its grant since. */
type Passed = Written & { isOurs: boolean; versions: ReadonlyMap<string, string> };

/** Ends the grant by its id, and grants to the next waiter. The mark stays. */
async function pass(
  dependencies: LeaseDependencies,
  { key, proof, line, served }: QuickHandOff,
  call: Call,
): Promise<Passed> {
  const now = dependencies.clock.now();
  const { grant } = served;
  const { item, version, id } = entryOfNew(dependencies, { grant, now, others: line.others, hasPrevious: true });
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
          line.number === undefined ? 'line_out = if_not_exists(line_out, :zero) + :one' : 'line_out = :one',
        ],
        ...(line.next === undefined ? [] : ['next_ticket = :next']),
        ...(line.waitingTickets === undefined ? [] : ['next_tickets = :names']),
        ...(execution === undefined ? [] : ['execution = :execution']),
        ...ring.set,
      ],
      remove: [
        'prev_by',
        ...(execution === undefined ? ['execution'] : []),
        ...(line.next === undefined ? ['next_ticket'] : []),
      ],
      condition: all(
        hasLeaseId(proof),
        hasNoEndMark(ALONE),
        isNotRemembered(grant.name),
        isUnderCap(undefined, [grant]),
        isNoneMoved,
        not({ expression: '#h.m = :m', names: entryAt(ALONE) }),
        { expression: 'fence < :fence AND attribute_exists(mark)' },
      ),
      values: {
        ...{ ':g0': item, ':fence': integer(now), ':released': text('released'), ':now': integer(now) },
        ...(line.number === undefined ? { ':zero': integer(0), ':one': integer(1) } : { ':one': integer(line.number) }),
        ...(line.next !== undefined && { ':next': text(line.next) }),
        ...(line.waitingTickets !== undefined && { ':names': text(namesOf(line.waitingTickets)) }),
        ...(execution !== undefined && { ':execution': text(execution) }),
        ...ring.values,
      },
      ttl: secondsOf(now + grant.ttlMs),
    },
    call,
  );
  const entry = entryOf(written.record, grant.name);
  const won = written.won || entry?.version === version;
  return { ...written, won, isOurs: entry?.id === id, versions: new Map([[grant.name, version]]) };
}
