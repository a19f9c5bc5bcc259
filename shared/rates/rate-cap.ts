import { GetItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { outcomeUnknown, reading, send, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { DAY_SECONDS } from '../periods.ts';
import type { RateCap } from './cap-after.ts';
import { capAfter, type RateCapCommand } from './cap-after.ts';
import { viewOf } from './read.ts';
import { capText, parseRate, type RateRecord, rateCapAt, rateRowOf } from './record.ts';

export interface CapCommand extends RateCapCommand {
  key: string;
  now: number;
}

export interface RateCapped {
  /** The cap after the command. Undefined if nothing is capped. */
  cap: RateCap | undefined;
  before: RateCap | undefined;
}

const MAX_RATE_CAP_TRIES = 5;
/** How long a row with a cap stays after its last command or reservation. */
export const CAPPED_SECONDS = 400 * DAY_SECONDS;

/**
 * Caps the rates of a key, pauses the key, or lifts either: one read, and one conditional UpdateItem
 * (docs/protocols/rates.md#cap). A lift keeps `cap_at`, so that a late duplicate of an earlier command changes nothing.
 * @throws HoldfastError Conflict (other operators were faster, five times), Throttled, Unavailable, OutcomeUnknown
 */
export async function writeRateCap(
  dependencies: LeaseDependencies,
  command: CapCommand,
  call: Call,
): Promise<RateCapped> {
  const { dynamodb, table } = dependencies;
  const { key, now } = command;
  const operation = writing(`table ${table}`);
  let item = await readRow(dependencies, key, call);
  let mayHaveLanded = false;
  for (let tries = 1; tries <= MAX_RATE_CAP_TRIES; tries++) {
    const found = parseRate(item);
    const before = rateCapAt(found, { now, clockSkewMs: dependencies.clockSkewMs });
    const commandedAt = Math.max(now, (found.capAt ?? 0) + 1);
    const cap = capAfter(before, command, commandedAt);
    const written = capAttributes(cap, commandedAt);
    const update = new UpdateItemCommand({
      TableName: table,
      Key: { key: text(rateRowOf(key)) },
      ...updateTo(written, found, command),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const outcome = await conditionalWrite(dynamodb, { command: update, operation }, call);
    if (outcome.won || hasLanded(outcome.old, written)) return { cap, before };
    mayHaveLanded ||= outcome.unanswered;
    item = outcome.old;
  }
  if (mayHaveLanded) throw outcomeUnknown(operation, undefined, { key });
  throw new HoldfastError('Conflict', 'other operators cap the key at the same time: send the call again', {
    key,
    actual: viewOf(dependencies, key, item),
  });
}

async function readRow({ dynamodb, table }: LeaseDependencies, key: string, call: Call): Promise<Item | undefined> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(rateRowOf(key)) }, ConsistentRead: true });
  return (await send(dynamodb, { command, operation: reading(`table ${table}`) }, call)).Item;
}

const CAP_ATTRIBUTES = ['cap_at', 'cap', 'cap_until'];

/** The last command is still the one of this instant. */
export const hasCapAt = (at: number | undefined): Condition =>
  at === undefined
    ? { expression: 'attribute_not_exists(cap_at)' }
    : { expression: 'cap_at = :capAt', values: { ':capAt': integer(at) } };

export const onlyCap = (item: Item): Item =>
  Object.fromEntries(
    Object.entries(item).filter(([name]) => ['key', 'lease_expiry', ...CAP_ATTRIBUTES].includes(name)),
  );

const capAttributes = (cap: RateCap | undefined, commandedAt: number): Item => ({
  cap_at: integer(commandedAt),
  ...(cap && { cap: text(capText(cap)) }),
  ...(cap && Number.isFinite(lastEnd(cap)) && { cap_until: integer(lastEnd(cap)) }),
});

/** When the last part of the cap ends. Infinite if one of them does not end by itself. */
const lastEnd = ({ pause, capped }: RateCap): number =>
  Math.max(...[pause, capped].map((part) => (part ? (part.until ?? Number.POSITIVE_INFINITY) : 0)));

function updateTo(written: Item, found: RateRecord, { now }: CapCommand) {
  const removed = CAP_ATTRIBUTES.filter((name) => !(name in written));
  const latest = Math.ceil(Math.max(now, (found.paidUntil ?? 0) / 1000) / 1000);
  const [expiry, seconds] = written.cap
    ? [':expiry', CAPPED_SECONDS]
    : ['if_not_exists(lease_expiry, :expiry)', DAY_SECONDS];
  const set = [...Object.keys(written).map((name) => `${name} = :${name}`), `lease_expiry = ${expiry}`].join(', ');
  const values = Object.fromEntries(Object.entries(written).map(([name, value]) => [`:${name}`, value]));
  return {
    UpdateExpression: removed.length > 0 ? `SET ${set} REMOVE ${removed.join(', ')}` : `SET ${set}`,
    ...conditionFields(hasCapAt(found.capAt), { values: { ...values, ':expiry': integer(latest + seconds) } }),
  };
}

/** Whether an earlier try of the call has landed, and its response was lost. */
const hasLanded = (item: Item | undefined, written: Item): boolean =>
  CAP_ATTRIBUTES.every((name) => item?.[name]?.S === written[name]?.S && item?.[name]?.N === written[name]?.N);
