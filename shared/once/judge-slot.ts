import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { EXCLUSIVE_WEIGHT } from '../locks/record/identity.ts';
import { endOfRequest, entryOf } from '../locks/record/record.ts';
import { leaseLost } from '../locks/record/refusals.ts';
import { entriesToEnd } from '../locks/record/room.ts';
import { keySummary } from '../locks/record/views.ts';
import type { OnceRequest } from './once-grant.ts';
import type { Done, OnceRecord } from './record.ts';
import { onceKeyOf } from './row-key.ts';
import { compareSlots, isAfterAllPeriods } from './slots.ts';

/** What a record means for a request. `own`: the request has the run. `free`: the request may try to begin. */
export type SlotVerdict =
  | { meaning: 'own' }
  | { meaning: 'done' | 'superseded'; done: Done }
  | { meaning: 'free' | 'held' };

/** The slot that is done, until the record may forget it. */
export const rememberedBy = (
  { done }: OnceRecord,
  { clock, clockSkewMs }: Pick<LeaseDependencies, 'clock' | 'clockSkewMs'>,
): Done | undefined => (done && done.keepUntil >= clock.now() - clockSkewMs ? done : undefined);

/**
 * Judges a record that was read by the rules of docs/protocols/once.md#begin. The condition of the write
 * (`mayBegin`) has the same rules, so change both.
 * @throws HoldfastError Conflict (the slot is done with another input, or a slot is done that sorts after all periods),
 * LeaseLost (the grant of this request has ended)
 */
export function judgeSlot(dependencies: LeaseDependencies, request: OnceRequest, record: OnceRecord): SlotVerdict {
  const { clock, clockSkewMs } = dependencies;
  const now = clock.now();
  const key = onceKeyOf(request.key);
  const ownEntry = entryOf(record, request.name);
  if (ownEntry && ownEntry.expiresAt > now && !ownEntry.isEnding) return { meaning: 'own' };
  const done = rememberedBy(record, dependencies);
  const order = done ? compareSlots(done.slot, request.slot) : -1;
  if (done && order === 0) {
    if (hasSameInput(done, request)) return { meaning: 'done', done };
    throw otherInput(record, key, now);
  }
  if (done && order > 0) {
    // The margin counts, because the period may have begun for another caller by a clock that is ahead.
    if (request.period && isAfterAllPeriods(done.slot, clock.now() + clockSkewMs, request.period))
      throw noPeriod(record, key, { doneSlot: done.slot, now });
    return { meaning: 'superseded', done };
  }
  const ended = endOfRequest(record, request.name);
  if (ended) throw leaseLost(key, ended);
  return {
    meaning: entriesToEnd(record, { ...request, weight: EXCLUSIVE_WEIGHT, room: 0 }, { now, clockSkewMs })
      ? 'free'
      : 'held',
  };
}

/**
 * Whether the stored result fits the caller. If the caller names its input, a result without a hash
 * does not fit: it may belong to another input.
 */
const hasSameInput = (done: Done, { inputHash }: OnceRequest): boolean =>
  inputHash === undefined || inputHash === done.inputHash;

/**
 * The error for a slot that sorts after all periods. The answer `superseded` would look like success, period after
 * period.
 */
function noPeriod(
  record: OnceRecord,
  key: string,
  { doneSlot, now }: { doneSlot: string; now: number },
): HoldfastError {
  const detail = `the slot ${JSON.stringify(doneSlot)} is done, and sorts after the current period: forget the slot, use another key, or pass the same per and zone everywhere`;
  return new HoldfastError('Conflict', detail, { key, field: 'per', actual: { ...keySummary(record, now), key } });
}

function otherInput(record: OnceRecord, key: string, now: number): HoldfastError {
  const detail = 'the slot is done with another input: name another slot or another key';
  return new HoldfastError('Conflict', detail, {
    ...{ key, field: 'inputHash' },
    actual: { ...keySummary(record, now), key },
  });
}
