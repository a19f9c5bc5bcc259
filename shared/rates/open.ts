import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { openPath, type RateRecord, rateRowOf } from './record.ts';

/** The highest number of open reservations of a key. */
export const MAX_OPEN = 200;
/**
 * How long a reservation certainly stays open. A call that needs its room may then remove it, and its estimate stands.
 */
const OPEN_MS = 15 * 60_000;
/** How many reservations one write removes, because DynamoDB limits an expression to 4 KB. */
const MAX_REMOVED = 50;

/**
 * Removes the oldest open reservations, if they are at least 15 minutes old.
 * @throws HoldfastError QueueFull if none is so old, Throttled, Unavailable, OutcomeUnknown
 */
export async function makeRoom(
  { dynamodb, table, clock }: LeaseDependencies,
  { key, record }: { key: string; record: RateRecord },
  call: Call,
): Promise<void> {
  const cut = clock.now() - OPEN_MS;
  const oldest = record.open.toSorted((one, other) => one.at - other.at);
  const old = oldest.filter(({ at }) => at <= cut).slice(0, MAX_REMOVED);
  if (old.length === 0) {
    const retryAfterMs = Math.max(1000, (oldest[0]?.at ?? cut) - cut);
    const detail = `${MAX_OPEN} reservations of the key are open: settle or cancel each, or reserve without settle`;
    throw new HoldfastError('QueueFull', detail, {
      ...{ key, retryAfterMs, quota: 'openReservations', limit: MAX_OPEN },
    });
  }
  const names = old.map((_, nth) => `#o${nth}`);
  const areThere: Condition = {
    expression: names.map((name) => `attribute_exists(${name})`).join(' AND '),
    names: Object.fromEntries(old.map(({ name }, nth) => [`#o${nth}`, openPath(name)])),
  };
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(rateRowOf(key)) },
    UpdateExpression: `SET opens = opens - :gone REMOVE ${names.join(', ')}`,
    ...conditionFields(areThere, { values: { ':gone': integer(old.length) } }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  // If the condition fails, another call has already made room.
  await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}
