import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { nameWithin } from '../../namespace.ts';
import { durations, previousView } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { canNotify, logGrant, measureHandOff, NOTIFY_MS, type Notified, sendMessage } from '../line/notify.ts';
import type { WaitingTask } from '../line/waiters.ts';
import { isEntryAsSeen } from './conditions.ts';
import { renew, setting } from './continuing-grants.ts';
import { EXCLUSIVE_PATH } from './identity.ts';
import { grantView, sharedTerms } from './outcomes.ts';
import { type HolderEntry, isBound, isUnnotified, type KeyRecord } from './record.ts';
import { updateKey } from './requests.ts';

/**
 * The pauses before a throttled message is sent again, in milliseconds. Any other message may have arrived, and is not
 * sent again.
 */
const NOTIFY_PAUSES_MS = [100, 200, 400];

/** How much of the ttl may be over when a task receives its grant. The task measures its work by the ttl. */
const MAX_SHORTFALL_MS = 500;

/**
 * How often a call renews a grant whose time is short. Each renewal may be slow too, and then the grant is left to the
 * schedule.
 */
const MAX_RENEWALS = 3;

interface GrantMessage {
  waiter: WaitingTask;
  record: KeyRecord;
  entry: HolderEntry;
  /** Whether the request has received this grant before. */
  repeated: boolean;
  /** Whether this call wrote the version on record. */
  isWrittenHere: boolean;
  /**
   * The entry as it was before this call wrote that the task receives the grant. Absent if no such write came before
   * the message.
   */
  before?: HolderEntry | undefined;
}

/**
 * Notifies a task of its grant. The message is the answer that acquire would have given, with the whole ttl left
 * (docs/protocols/tasks.md#notify). The response to a write may be late, so the clock is read again after each write.
 * If the grant stays short of its ttl, no message is sent, and the outcome is `unanswered`.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown, all of a renewal
 */
export async function notifyHolder(
  dependencies: LeaseDependencies,
  message: GrantMessage,
  call: Call,
): Promise<Notified> {
  const { outcome, record, entry } = await sendGrant(dependencies, message, call);
  if (outcome !== 'gone' || !message.repeated) return { outcome, record };
  const { before = message.entry } = message;
  return { outcome, record: await takeBackAnswer(dependencies, { record, entry, before }, call) };
}

async function sendGrant(
  dependencies: LeaseDependencies,
  { waiter, repeated, ...message }: GrantMessage,
  call: Call,
): Promise<Notified & { entry: HolderEntry }> {
  const { clock } = dependencies;
  await canNotify(dependencies, waiter); // creates the client first, because that takes time which must not come off the ttl
  let { record, entry, isWrittenHere } = message;
  const pauses = NOTIFY_PAUSES_MS.values();
  for (let renewals = 0; ; ) {
    const now = clock.now();
    if (isWrittenHere && !isShort(entry, now)) {
      const times = durations({ since: waiter.parkedAt, expiresAt: entry.expiresAt, now });
      const output = JSON.stringify({ ...answerFor(waiter, { record, entry, now }), ...times, repeated });
      logGrant(record.key, entry, call); // before the message, because this call may exit at any moment after it
      const outcome = await sendMessage(dependencies, { waiter, message: { output } }, call);
      const { value: pauseMs } = outcome === 'throttled' ? pauses.next() : { value: undefined };
      if (pauseMs !== undefined && call.timeLeftMs() > pauseMs + NOTIFY_MS) {
        await clock.sleep(pauseMs);
        continue;
      }
      if (outcome === 'accepted' && !repeated) {
        call.measure?.('ParkedMs', times.waitedMs);
        measureHandOff(entry, clock.now(), call);
      }
      return { outcome: outcome === 'throttled' ? 'unanswered' : outcome, record, entry };
    }
    if (renewals++ === MAX_RENEWALS) return { outcome: 'unanswered', record, entry };
    const renewed = await renew(dependencies, { key: record.key, entry, isRepeated: repeated }, call);
    if (!renewed.won || !renewed.entry) return { outcome: 'overtaken', record: renewed.record, entry };
    ({ record, entry } = renewed);
    isWrittenHere = true;
  }
}

/**
 * Undoes the note that a task has received the grant, because the task is gone. Otherwise the next task of the
 * execution would wait behind a bound grant that no task has (docs/protocols/bound.md#a-grant-that-reached-no-task).
 */
async function takeBackAnswer(
  dependencies: LeaseDependencies,
  { record, entry, before }: { record: KeyRecord; entry: HolderEntry; before: HolderEntry },
  call: Call,
): Promise<KeyRecord> {
  if (!isBound(entry) || entry.version === before.version) return record;
  const { answeredAt } = before;
  const parts = {
    ...(answeredAt !== undefined && { r: integer(answeredAt) }),
    ...(isUnnotified(before) && { j: text(entry.version) }),
  };
  const update = {
    ...setting(parts),
    ...(answeredAt === undefined && { remove: ['#h.r'] }),
    condition: isEntryAsSeen(entry),
  };
  return (await updateKey(dependencies, { key: record.key, ...update }, call)).record;
}

/** Whether too much of the ttl is over. A bound grant has no ttl, so it is never short unless it has ended. */
const isShort = (entry: HolderEntry, now: number): boolean =>
  entry.expiresAt - now < (isBound(entry) ? 0 : entry.ttlMs) - MAX_SHORTFALL_MS;

/** The answer of acquire, without the durations and `repeated`. */
const answerFor = (
  { key, namespace, permit }: WaitingTask,
  { record: { used }, entry, now }: { record: KeyRecord; entry: HolderEntry; now: number },
) => ({
  ...grantView(nameWithin(namespace, key), entry, now),
  previous: previousView(entry.previous),
  ...(entry.path !== EXCLUSIVE_PATH &&
    sharedTerms(entry, { used, limit: permit?.limit ?? null, limitBefore: entry.limitBefore })),
});
