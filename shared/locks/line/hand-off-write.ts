import type { Call } from '../../aws/call.ts';
import type { Condition } from '../../aws/condition.ts';
import type { EndedGrant } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { isMarkAsSeen, isUsedAsSeen } from '../record/conditions.ts';
import { writeEnds, writeGrants } from '../record/grants.ts';
import {
  areNotSuperseded,
  isMovedAsSeen,
  keptMark,
  leftToSleepers,
  movedToRemove,
  newMark,
  removedMark,
} from '../record/mark.ts';
import { isExclusiveGrant, type KeyRecord, type NewGrant } from '../record/record.ts';
import type { Written } from '../record/requests.ts';
import { type GrantToEnd, previousOf, previousOfExclusive } from '../record/room.ts';
import type { FoundInLine, NextGrant } from './next.ts';
import type { Versions } from './notify-granted.ts';
import { hintsAfter } from './pace.ts';
import { stayingOf } from './waiters.ts';

export interface RecordAndEnding {
  record: KeyRecord;
  toEnd: readonly GrantToEnd[];
}

interface HandOffWrite extends RecordAndEnding {
  found: FoundInLine;
  /** Whether the line is empty, so that the write removes the mark. */
  isLineEmpty: boolean;
  now: number;
  /** The arrival number of the last new holder, if that holder did not pass a sleeper. */
  arrivalNumber: number | undefined;
  /**
   * Whether this call is among the new holders. It will not claim its grant, so this write notes how long turns last.
   */
  servesSelf: boolean;
  /** The moved waiter that the write serves or forgets. */
  moved: string | undefined;
}

/**
 * The conditions of a write that removes the mark: no waiter has joined since the line was read, and no operator has
 * moved another one. If the line has a place of a holder's request, no grant has ended either, because the place keeps
 * the mark as soon as that grant has ended.
 */
const mayUnmark = (record: KeyRecord, hasPlaceOfHolder = false): Condition[] => [
  isMarkAsSeen(record),
  ...isMovedAsSeen(record.moved),
  ...(hasPlaceOfHolder ? [isUsedAsSeen(record)] : []),
];

/**
 * Ends and makes grants in one write (docs/protocols/locks.md#hand-off).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function writeHandOff(
  dependencies: LeaseDependencies,
  {
    record,
    toEnd,
    found: { nextGrants, hasOthers, firstOther, waitingTickets, unservedRows, isLeftToSleepers, hasPlaceOfHolder },
    isLineEmpty,
    now,
    arrivalNumber,
    servesSelf,
    moved,
  }: HandOffWrite,
  call: Call,
): Promise<Written & { versions: Versions }> {
  const { key } = record;
  if (nextGrants.length === 0) {
    const asleep = isLeftToSleepers && firstOther !== undefined ? { mark: leftToSleepers(firstOther) } : undefined;
    const conditions = mayUnmark(record, hasPlaceOfHolder);
    const line = isLineEmpty ? { mark: removedMark(stayingOf(unservedRows), record.moved), conditions } : asleep;
    const written = await writeEnds(dependencies, { key, toEnd, now, line }, call);
    return { ...written, versions: new Map() };
  }
  const grants = newGrants({ record, toEnd, nextGrants, now });
  const value = newMark(dependencies);
  const markWithOthers = () =>
    keptMark(
      { record, next: firstOther, waitingTickets },
      { granted: nextGrants.length, value, number: arrivalNumber, hints: servesSelf ? hintsAfter(record) : {} },
    );
  const mark = hasOthers
    ? { ...markWithOthers(), remove: movedToRemove(moved) }
    : removedMark(stayingOf(unservedRows), record.moved);
  const conditions = hasOthers
    ? [...isMovedAsSeen(moved), ...areNotSuperseded(grants)]
    : mayUnmark(record, hasPlaceOfHolder);
  const line = { record, hasOthers, mark, conditions };
  const granting = { key, grants, toEnd, now, line };
  const written = await writeGrants(dependencies, granting, call);
  return { ...written, won: written.landed };
}

/** The grants that the write makes. Each names the holder before it, and the limit before it if that differs. */
function newGrants({
  record,
  toEnd,
  nextGrants,
  now,
}: RecordAndEnding & { nextGrants: readonly NextGrant[]; now: number }): NewGrant[] {
  const previous: (EndedGrant | undefined)[] = previousOf(toEnd, now);
  let last = record.lastLimit;
  return nextGrants.map(({ grant }, nth) => {
    const { limit } = grant;
    const limitBefore = limit === null || limit === last ? undefined : last;
    last = limit ?? last;
    const before =
      isExclusiveGrant(grant) && record.entries.length === 0 ? previousOfExclusive(record, now) : undefined;
    return { ...grant, previous: previous[nth] ?? before, limitBefore };
  });
}
