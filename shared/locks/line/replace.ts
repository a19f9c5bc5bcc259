import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition, conditionFields, not } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { writing } from '../../aws/send.ts';
import { canSleep, type LeaseDependencies } from '../dependencies.ts';
import { hasNoEndMark, isInUse, isOf } from '../record/conditions.ts';
import { ALONE, RING, remember, requestName } from '../record/identity.ts';
import type { Replacing } from '../record/mark.ts';
import { ending, entryOf, type KeyRecord } from '../record/record.ts';
import { updateKey, type Written } from '../record/requests.ts';
import type { GrantRequest } from '../record/room.ts';
import { type Delivery, failTask, leftToSchedule } from './notify.ts';
import { superseded, supersederOf } from './superseded.ts';
import { isTask, parseWaiter, placeOf, readWaiters, type Waiter } from './waiters.ts';

// Requests that replace older ones (docs/protocols/replace.md). Loaded if a request says so, or if the record names the latest.

/** The newest request that joined by `replace`, as the record names it. */
interface Latest {
  name: string;
  ticket: string;
  /** The ticket of the request that the last join dropped. */
  dropped: string | undefined;
  holder: string;
  /** Whether it asks the holder to stop. */
  stops: boolean;
}

function latestOf({ latest: map }: KeyRecord): Latest | undefined {
  const [name, ticket, holder] = [map?.n?.S, map?.t?.S, map?.h?.S];
  if (name === undefined || ticket === undefined || holder === undefined) return undefined;
  return { name, ticket, holder, dropped: map?.d?.S, stops: map?.r?.BOOL === true };
}

type Newcomer = Pick<GrantRequest, 'key' | 'name' | 'holder' | 'replace'> & { ticket: string };

const SLOTS = Array.from({ length: RING }, (_, slot) => `r${slot}`).join(', ');

/** The latest request waits no more, or it is the newcomer itself. Then a join drops no request. */
const dropsNone = (name: string): Condition => ({
  expression: `latest.n = :m OR #alone.m = latest.n OR latest.n IN (${SLOTS})`,
  names: { '#alone': ALONE },
  values: { ':m': text(name) },
});

/** The same of a record that was read. */
function isDropping(record: KeyRecord, name: string): boolean {
  const latest = latestOf(record);
  if (!latest || latest.name === name || entryOf(record, latest.name)) return false;
  return ending(record, latest.name) === undefined;
}

/** Names the newcomer. The write that drops another puts that name into the ring, from the record as the write meets it, so a crowd needs no second write. */
function replacing({ name, holder, replace, ticket }: Newcomer, drops: boolean): Replacing {
  const stops = { BOOL: replace === 'running' };
  const none = dropsNone(name);
  if (!drops) {
    const latest: Item[string] = { M: { n: text(name), t: text(ticket), h: text(holder), r: stops } };
    const condition = { ...none, expression: `attribute_not_exists(latest) OR ${none.expression}` };
    return { drops, condition, also: { set: ['latest = :latest'], values: { ':latest': latest } } };
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
    drops,
    condition: all({ expression: 'attribute_exists(latest)' }, not(none)),
    also: {
      set: ['r0 = latest.n', ...shifted, ...newest],
      values: {
        ...{ ':none': text('-'), ':broken': text(`s${holder}`), ':m': text(name) },
        ...{ ':ticket': text(ticket), ':holder': text(holder), ':stops': stops },
      },
    },
  };
}

/**
 * Raises the mark for a newcomer, which becomes the latest (docs/protocols/replace.md#join). Then tells the request that it replaces, and asks the
 * holder to stop. What this call leaves undone, a hand-off or the schedule does.
 * @param write raises the mark, with what the newcomer adds to it
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown of the mark
 */
export async function markReplacing<Marked extends Written>(
  dependencies: LeaseDependencies,
  { newcomer, write }: { newcomer: Newcomer; write(how: Replacing): Promise<Marked> },
  call: Call,
): Promise<Marked> {
  const { key, name, holder } = newcomer;
  for (let [drops, hasDropped] = [false, false]; ; ) {
    const marked = await write(replacing(newcomer, drops));
    const { won, record } = marked;
    const latest = latestOf(record);
    // A try without an answer has landed, and the next one must find out whether it has dropped another.
    hasDropped ||= drops && (won || latest?.ticket === newcomer.ticket);
    if (won) {
      const dropped = hasDropped ? latest?.dropped : undefined;
      if (dropped !== undefined)
        await tell(dependencies, { key, ticket: dropped, by: holder }, call).catch(leftToSchedule);
      await askHolder(dependencies, record, call).catch(leftToSchedule);
      return marked;
    }
    if (isDropping(record, name) === drops || entryOf(record, name) || ending(record, name)) return marked;
    drops = !drops;
  }
}

/**
 * Tells a request that a newer one has replaced it: sends a message to a task, and flags the place and the row of a call.
 * @param told `by`: the holder of the newer request
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function tell(
  dependencies: LeaseDependencies,
  { key, ticket, by }: { key: string; ticket: string; by: string },
  call: Call,
): Promise<Delivery | undefined> {
  // A call that comes back writes its row, and then its place. So one of the two calls sees the other.
  for (const name of canSleep(dependencies) ? [placeOf(ticket), ticket] : [ticket]) {
    const row = await flag(dependencies, { key, ticket: name, by }, call);
    if (row) call.log?.({ message: 'superseded', key, holder: row.holder, ticket, by });
    if (row && isTask(row)) return failTask(dependencies, { waiter: row, error: superseded(key, by) }, call);
  }
  return undefined;
}

/** @returns the row of a call that is now flagged, or that of a task, which has no flag */
async function flag(
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
 * Asks the holder to stop, if it and the latest request said `running`: its next heartbeat fails (docs/protocols/replace.md#ask-the-holder). Whoever claims
 * a grant asks itself, because a grant that nobody has claimed has no holder to ask.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function askHolder(dependencies: LeaseDependencies, record: KeyRecord, call: Call): Promise<void> {
  const { clock, clockSkewMs, ids } = dependencies;
  const latest = latestOf(record);
  const entry = record.entries.find(({ path }) => path === ALONE);
  if (!latest?.stops || entry?.replace !== 'running' || entry.isEnding || entry.name === latest.name) return;
  if (ending(record, latest.name) !== undefined || entry.claimTtlMs !== undefined) return;
  const now = clock.now();
  const asked = await updateKey(
    dependencies,
    {
      key: record.key,
      set: ['#h.s = :now', '#h.S = :by', '#h.v = :version'],
      condition: all(isOf(entry), hasNoEndMark(ALONE), isInUse(ALONE, now - clockSkewMs)),
      values: { ':now': integer(now), ':by': text(latest.holder), ':version': text(ids.uuid()) },
    },
    call,
  );
  if (asked.won) call.log?.({ message: 'asked to stop', key: record.key, holder: entry.holder, by: latest.holder });
}

/** The repair looks at up to this many rows of a key for requests that were superseded. */
const MOST_ROWS = 100;

/** Does what a call has left undone that died after its mark: tells the requests that it replaced, and asks the holder. */
export async function repairReplaced(dependencies: LeaseDependencies, record: KeyRecord, call: Call): Promise<void> {
  const latest = latestOf(record);
  let [read, isThere] = [0, false];
  for await (const row of readWaiters(dependencies, { key: record.key, firstPage: MOST_ROWS }, call)) {
    isThere ||= row.ticket === latest?.ticket && (isTask(row) || row.cancelledAt === undefined);
    await tellIfSuperseded(dependencies, { record, row }, call);
    if (++read === MOST_ROWS) break;
  }
  if (isThere) await askHolder(dependencies, record, call);
}

/** Tells the request of a row, if the record remembers it as superseded. @returns undefined for the row of a call, which its call deletes */
export async function tellIfSuperseded(
  dependencies: LeaseDependencies,
  { record, row }: { record: KeyRecord; row: Waiter },
  call: Call,
): Promise<Delivery | undefined> {
  const by = supersederOf(record, requestName(row));
  const isFlagged = !isTask(row) && row.cancelledAt !== undefined;
  if (row.replace === undefined || by === undefined || isFlagged) return undefined;
  return tell(dependencies, { key: row.key, ticket: row.ticket, by }, call);
}
