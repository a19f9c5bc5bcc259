import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition, conditionFields, not } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { writing } from '../../aws/send.ts';
import { canSleep, type LeaseDependencies } from '../dependencies.ts';
import { hasLeaseId, isInUse, isNotEnding } from '../record/conditions.ts';
import { EXCLUSIVE_PATH, nameOfRequest, RING_ATTRIBUTES, remember } from '../record/identity.ts';
import type { ReplacePart } from '../record/mark.ts';
import { endOfRequest, entryOf, type KeyRecord } from '../record/record.ts';
import { updateKey, type Written } from '../record/requests.ts';
import type { GrantRequest } from '../record/room.ts';
import { failTask, logFailedHandOff, type NotifyOutcome } from './notify.ts';
import { superseded, supersederOf } from './superseded.ts';
import { isTask, parseWaiter, placeKeyOf, readWaiters, type Waiter } from './waiters.ts';

// Requests that replace older ones (docs/protocols/replace.md). Only loaded for a request with `replace`, or for a
// record that names the latest one.

/** The newest request that joined with `replace`, as the record names it. */
interface Latest {
  name: string;
  ticket: string;
  /** The ticket of the request that it has replaced, which may not be notified yet. */
  replaced: string | undefined;
  holder: string;
  /** Whether it also asks the holder of the key to stop (`running`). */
  stops: boolean;
}

function latestOf({ latest: map }: KeyRecord): Latest | undefined {
  const [name, ticket, holder] = [map?.n?.S, map?.t?.S, map?.h?.S];
  if (name === undefined || ticket === undefined || holder === undefined) return undefined;
  return { name, ticket, holder, replaced: map?.d?.S, stops: map?.r?.BOOL === true };
}

/** A request with `replace` that joins the line. */
type Newcomer = Pick<GrantRequest, 'key' | 'name' | 'holder' | 'replace'> & { ticket: string };

/** The latest request does not wait any more, or is the newcomer itself, so the newcomer does not replace it. */
const replacesNone = (requestName: string): Condition => ({
  expression: `latest.n = :m OR #alone.m = latest.n OR latest.n IN (${RING_ATTRIBUTES})`,
  names: { '#alone': EXCLUSIVE_PATH },
  values: { ':m': text(requestName) },
});

/** Whether a newcomer would replace the latest request of a record that was read: the opposite of `replacesNone`. */
function replacesLatest(record: KeyRecord, requestName: string): boolean {
  const latest = latestOf(record);
  if (!latest || latest.name === requestName || entryOf(record, latest.name)) return false;
  return endOfRequest(record, latest.name) === undefined;
}

/**
 * The part of the write that makes the newcomer the latest, and remembers the replaced request. DynamoDB copies the
 * name of the replaced request inside the record, whichever request that is by then, so that newcomers that join at the
 * same moment do not conflict.
 */
function replacing({ name, holder, replace, ticket }: Newcomer, replaces: boolean): ReplacePart {
  const stops = { BOOL: replace === 'running' };
  const none = replacesNone(name);
  if (!replaces) {
    const latest: Item[string] = { M: { n: text(name), t: text(ticket), h: text(holder), r: stops } };
    const condition = { ...none, expression: `attribute_not_exists(latest) OR ${none.expression}` };
    return { replaces, condition, addedParts: { set: ['latest = :latest'], values: { ':latest': latest } } };
  }
  const [, ...shifted] = remember('').set;
  const newest = [
    'latest.d = latest.t',
    'latest.n = :m',
    'latest.t = :ticket',
    'latest.h = :holder',
    'latest.r = :stops',
  ];
  return {
    replaces,
    condition: all({ expression: 'attribute_exists(latest)' }, not(none)),
    addedParts: {
      set: ['r0 = latest.n', ...shifted, ...newest],
      values: {
        ...{ ':none': text('-'), ':how': text(`s${holder}`), ':m': text(name) },
        ...{ ':ticket': text(ticket), ':holder': text(holder), ':stops': stops },
      },
    },
  };
}

/**
 * Raises the mark for a newcomer, which becomes the latest (docs/protocols/replace.md#join). Then notifies the request
 * that it replaced, and asks the holder to stop. If this call crashes before that, a hand-off or the schedule does
 * both.
 * `write` raises the mark, with what the newcomer adds to that write
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown of the mark
 */
export async function markReplacing<Marked extends Written>(
  dependencies: LeaseDependencies,
  { newcomer, write }: { newcomer: Newcomer; write(how: ReplacePart): Promise<Marked> },
  call: Call,
): Promise<Marked> {
  const { key, name, holder } = newcomer;
  for (let [replaces, hasReplaced] = [false, false]; ; ) {
    const marked = await write(replacing(newcomer, replaces));
    const { won, record } = marked;
    const latest = latestOf(record);
    // A try without an answer may have landed, and then this call must notify the request that it replaced.
    hasReplaced ||= replaces && (won || latest?.ticket === newcomer.ticket);
    if (won) {
      const replaced = hasReplaced ? latest?.replaced : undefined;
      if (replaced !== undefined)
        await notifySuperseded(dependencies, { key, ticket: replaced, by: holder }, call).catch(logFailedHandOff);
      await askHolder(dependencies, record, call).catch(logFailedHandOff);
      return marked;
    }
    if (replacesLatest(record, name) === replaces || entryOf(record, name) || endOfRequest(record, name)) return marked;
    replaces = !replaces;
  }
}

/**
 * Notifies a request that a newer one has replaced it: sends the error to a task, or flags the place and the row of a
 * call.
 * `by`: the holder of the newer request
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function notifySuperseded(
  dependencies: LeaseDependencies,
  { key, ticket, by }: { key: string; ticket: string; by: string },
  call: Call,
): Promise<NotifyOutcome | undefined> {
  // A call that comes back writes its row first and its place second. This call flags them in the reverse order, so at
  // least one of the two calls sees what the other wrote.
  for (const sortKey of canSleep(dependencies) ? [placeKeyOf(ticket), ticket] : [ticket]) {
    const row = await flagSuperseded(dependencies, { key, ticket: sortKey, by }, call);
    if (row) call.log?.({ message: 'superseded', key, holder: row.holder, ticket, by });
    if (row && isTask(row)) return failTask(dependencies, { waiter: row, error: superseded(key, by) }, call);
  }
  return undefined;
}

/** Flags the row of a call. @returns the row that is now flagged, or the row of a task, which stays as it is */
async function flagSuperseded(
  { dynamodb, clock, waitersTable }: LeaseDependencies,
  { key, ticket, by }: { key: string; ticket: string; by: string },
  call: Call,
): Promise<Waiter | undefined> {
  const condition = { expression: 'attribute_exists(keep_until) AND attribute_not_exists(cancelled_at)' };
  const command = new UpdateItemCommand({
    TableName: waitersTable,
    Key: { key: text(key), ticket: text(ticket) },
    UpdateExpression: 'SET cancelled_at = :now, superseded_by = :by',
    ...conditionFields(condition, { values: { ':now': integer(clock.now()), ':by': text(by) } }),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
  const item = outcome.won ? outcome.item : outcome.old;
  const row = item && parseWaiter(item);
  return outcome.won || (row && isTask(row)) ? row : undefined;
}

/**
 * Asks the holder to stop, if both the holder and the latest request said `running`: the holder's next heartbeat fails
 * (docs/protocols/replace.md#ask-the-holder). If the grant is not claimed yet, the call that claims it does this
 * instead.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function askHolder(dependencies: LeaseDependencies, record: KeyRecord, call: Call): Promise<void> {
  const { clock, clockSkewMs, ids } = dependencies;
  const latest = latestOf(record);
  const entry = record.entries.find(({ path }) => path === EXCLUSIVE_PATH);
  if (!latest?.stops || entry?.replace !== 'running' || entry.isEnding || entry.name === latest.name) return;
  if (endOfRequest(record, latest.name) !== undefined || entry.claimTtlMs !== undefined) return;
  const now = clock.now();
  const written = await updateKey(
    dependencies,
    {
      key: record.key,
      set: ['#h.s = :now', '#h.S = :by', '#h.v = :version'],
      condition: all(hasLeaseId(entry), isNotEnding(EXCLUSIVE_PATH), isInUse(EXCLUSIVE_PATH, now - clockSkewMs)),
      values: { ':now': integer(now), ':by': text(latest.holder), ':version': text(ids.uuid()) },
    },
    call,
  );
  if (written.won) call.log?.({ message: 'asked to stop', key: record.key, holder: entry.holder, by: latest.holder });
}

/** How many rows of a key the repair reads at most to find requests that were superseded. */
const MAX_SUPERSEDED_ROWS = 100;

/**
 * Finishes the work of a newcomer that crashed after its write of the mark: notifies the requests that were replaced,
 * and asks the holder to stop.
 */
export async function repairReplaced(dependencies: LeaseDependencies, record: KeyRecord, call: Call): Promise<void> {
  const latest = latestOf(record);
  let [read, isThere] = [0, false];
  for await (const row of readWaiters(dependencies, { key: record.key, firstPage: MAX_SUPERSEDED_ROWS }, call)) {
    isThere ||= row.ticket === latest?.ticket && (isTask(row) || row.cancelledAt === undefined);
    await notifyIfSuperseded(dependencies, { record, row }, call);
    if (++read === MAX_SUPERSEDED_ROWS) break;
  }
  if (isThere) await askHolder(dependencies, record, call);
}

/**
 * Notifies the request of a row if the record remembers it as superseded.
 * @returns undefined if the row stays, because it does not belong to a task
 */
export async function notifyIfSuperseded(
  dependencies: LeaseDependencies,
  { record, row }: { record: KeyRecord; row: Waiter },
  call: Call,
): Promise<NotifyOutcome | undefined> {
  const by = supersederOf(record, nameOfRequest(row));
  const isFlagged = !isTask(row) && row.cancelledAt !== undefined;
  if (row.replace === undefined || by === undefined || isFlagged) return undefined;
  return notifySuperseded(dependencies, { key: row.key, ticket: row.ticket, by }, call);
}
