import { namesCaller } from './pace.ts';
import type { PoolRecord } from './record.ts';

// Which call gives the room of a released permit to the line. If two calls did, both would read the line and grant the same tickets, one of them in
// vain. If the call that should has exited, the next waiter gives the room after its patience, so only time depends on this.

/** The part of a release that notes when. DynamoDB computes each value from the record as it was before the write. */
export const FREED = {
  set: ['freed_before = if_not_exists(freed_at, :now)', 'freed_at = :now', 'used_before = used'],
};

/** A hand-off is over by then, or its call has exited. */
const HAND_OFF_MS = 100;

const isRecent = (at: number | undefined, now: number): boolean => at !== undefined && Math.abs(now - at) < HAND_OFF_MS;

/**
 * Whether the last release is perhaps handing off still. False if a task is next, or may be, because a task does not look. False after an exclusive grant, whose
 * end and hand-off are one write.
 */
export const isHandedOff = (record: PoolRecord, now: number): boolean =>
  !record.isFree && isRecent(record.freedAt, now) && namesCaller(record);

/**
 * For the release whose write has just shown the record: whether the release before that one hands off the room of both. There was room before this
 * release, so that call has not written its last grant, and goes on while the record that it wrote has room.
 */
export const isHandedOffWithBefore = (record: PoolRecord, now: number): boolean =>
  isRecent(record.freedBefore, now) &&
  record.usedBefore !== undefined &&
  record.lastLimit !== undefined &&
  record.usedBefore < record.lastLimit &&
  namesCaller(record);
