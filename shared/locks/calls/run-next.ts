import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { readMoved } from '../line/moved-row.ts';
import { isInLine, isOverdue, isPlace, isTask, isWaiting, type Waiter } from '../line/waiters.ts';
import { shortNamesOf } from '../record/mark.ts';
import type { KeyRecord } from '../record/record.ts';
import { readKey, updateKey } from '../record/requests.ts';
import type { RunNextInput } from './inputs.ts';
import { handOffToLine } from './release.ts';
import { type MovedToFront, operatorOf } from './types.ts';

/**
 * Moves a waiter to the front of its line, for an operator (docs/protocols/queue.md#run-next). The waiter receives the
 * next grant. Only one waiter of a key is moved at a time, and the last command counts.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function runNext(dependencies: LeaseDependencies) {
  return async ({ key, ticket }: RunNextInput, call: Call): Promise<MovedToFront> => {
    const notMoved = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, moved: false, reason }) as const;
    const waiter = await readMoved(dependencies, { key, ticket }, call);
    if (!waiter)
      return notMoved(hasGrantByTicket(await readKey(dependencies, key, call), ticket) ? 'granted' : 'unknown');
    const now = dependencies.clock.now();
    // A caller that is away between two calls, and does not sleep, keeps its position only until others are served.
    const mayBeNext = isPlace(waiter) ? isInLine(waiter, now) : !isOverdue(waiter, now) && isWaiting(waiter, now);
    if (!mayBeNext) return notMoved('gone');
    const { won, record, before } = await move(dependencies, waiter, call);
    if (hasGrantByTicket(record, ticket)) return notMoved('granted');
    if (!won && record.moved !== ticket) return notMoved('gone');
    // The key may be free and marked, because it was left to a caller that sleeps, or because a call exited before its
    // hand-off.
    await handOffToLine(dependencies, { record }, call);
    return {
      key,
      ticket,
      moved: true,
      before: before?.moved !== undefined && before.moved !== ticket ? before.moved : null,
    };
  };
}

const hasGrantByTicket = ({ entries }: KeyRecord, ticket: string): boolean =>
  entries.some((entry) => entry.ticket === ticket);

/** The write loses if another operator has moved a waiter in the same millisecond, or by a clock that is ahead. */
const MAX_MOVE_TRIES = 5;

async function move(dependencies: LeaseDependencies, waiter: Waiter, call: Call): Promise<Moved> {
  let movedAt = dependencies.clock.now();
  for (let tries = 1; ; tries++) {
    const moved = await writeMove(dependencies, { waiter, movedAt }, call);
    const { won, record } = moved;
    if (won || record.mark === undefined || record.moved === waiter.ticket || tries === MAX_MOVE_TRIES) return moved;
    movedAt = Math.max(dependencies.clock.now(), (record.movedAt ?? 0) + 1);
  }
}

type Moved = Awaited<ReturnType<typeof updateKey>>;

/**
 * Writes the move, if there is a line. A late duplicate does not change the record: it meets a later
 * `moved_at`, or names a ticket that no longer waits.
 */
function writeMove(
  dependencies: LeaseDependencies,
  { waiter, movedAt }: { waiter: Waiter; movedAt: number },
  call: Call,
) {
  const { key, ticket } = waiter;
  const operator = operatorOf(call);
  // A caller polls by itself, and reads in the hints that it is next. A task does not poll.
  const isCaller = !isTask(waiter);
  return updateKey(
    dependencies,
    {
      key,
      set: [
        ...['moved = :ticket', 'moved_at = :at', 'next_ticket = :ticket'],
        ...(operator === undefined ? [] : ['moved_by = :operator']),
        ...(isCaller ? ['next_tickets = :names'] : []),
      ],
      remove: [...(operator === undefined ? ['moved_by'] : []), ...(isCaller ? [] : ['next_tickets'])],
      condition: all(
        { expression: 'attribute_exists(mark)' },
        { expression: 'attribute_not_exists(moved_at) OR moved_at < :at' },
      ),
      values: {
        ...{ ':ticket': text(ticket), ':at': integer(movedAt) },
        ...(operator !== undefined && { ':operator': text(operator) }),
        ...(isCaller && { ':names': text(shortNamesOf([ticket])) }),
      },
      returns: 'ALL_OLD',
    },
    call,
  );
}
