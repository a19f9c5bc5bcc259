import type { Stack } from '@aws-sdk/client-cloudformation';
import { DeleteItemCommand, paginateScan } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../shared/aws/attributes.ts';
import type { Item } from '../shared/aws/dynamodb.ts';
import { POOL } from '../shared/line/kind.ts';
import { parsePool } from '../shared/permits/record.ts';
import type { Clock } from '../shared/surroundings/clock.ts';
import { type Aws, timeOfAws } from './aws.ts';
import { Refusal } from './failure.ts';
import type { TemplateOf } from './stack.ts';
import type { Values } from './values.ts';

/** The tables of a stack of 0.2.0, which has a table of its own for pools. No later version reads that table. */
export interface OldPools {
  pools: string;
  waiters: string;
  /** How long after its end a permit is still protected, in milliseconds. */
  clockSkewMs: number;
}

/** @returns undefined if the stack has no table for pools */
export function oldPoolsOf(previous: Values, own: Values): OldPools | undefined {
  const { stage, poolsTable, waitersTable, clockSkewMs = '500' } = previous;
  if (poolsTable === undefined) return undefined;
  return {
    pools: poolsTable || `holdfast-${stage}-pools`,
    waiters: waitersTable || String(own.waitersTable),
    clockSkewMs: Number(clockSkewMs),
  };
}

/** No call of acquire takes longer, in milliseconds. */
const LONGEST_CALL_MS = 30_000;

const POLL_MS = 10_000;

/** How long the command waits until holders and waiters have ended, in milliseconds. */
const PATIENCE_MS = 3_600_000;

/** The lines of pools had keys that begin with this. */
const LINES = 'holdfast:pool:';

const MOST_KEYS_NAMED = 5;

const FORMER: TemplateOf = { UsePreviousTemplate: true };

interface Upgrade {
  old: OldPools;
  previous: Values;
  next: Values;
  /** Whether the permits may still be held and awaited. */
  forgetPools: boolean;
  clock: Clock;
}

interface Hands {
  /** Gives the stack these values, and the new template unless another is named. @returns undefined if nothing changes */
  apply(values: Values, of?: TemplateOf): Promise<Stack | undefined>;
  say(line: string): void;
}

/** What the operator reads before the consent. */
export const adviceOf = ({ pools }: OldPools, forgetPools: boolean): string =>
  [
    `The permits of this stack are in the table ${pools}, which this version does not read. The deployment stops acquire, ${
      forgetPools
        ? 'forgets all permits and their waiters'
        : 'waits until no permit is held and no caller waits for one'
    }, changes the functions, and starts acquire again.`,
    'First stop every process that uses directTransport of 0.2.0: such a process would not see the permits of this version.',
  ].join('\n');

/**
 * Deploys over a stack of 0.2.0. Functions of 0.2.0 count permits in their own table, and would grant a lease of a key that is a pool of this version.
 * So no function of either version acquires until all functions are changed.
 * @throws Refusal if the permits are still in use after an hour; Error if CloudFormation failed. The stack then accepts callers as before
 */
export async function upgrade(
  aws: Aws,
  { old, previous, next, ...how }: Upgrade,
  { apply, say }: Hands,
): Promise<Stack | undefined> {
  const { acquireConcurrency: before = '' } = previous;
  const again = before === '' ? '--reset acquireConcurrency' : `--param acquireConcurrency=${before}`;
  say(`Stopping acquire. If this command is interrupted, run it again with ${again}`);
  await apply({ ...previous, acquireConcurrency: '0' }, FORMER);
  let changed: Stack | undefined;
  try {
    await how.clock.sleep(LONGEST_CALL_MS);
    if (how.forgetPools) await forgetLines(aws, old);
    else await untilDrained(aws, { old, clock: how.clock }, say);
    changed = await apply({ ...next, acquireConcurrency: '0' });
  } catch (error) {
    say('Starting acquire again');
    await apply(previous, FORMER).catch(({ message }: Error) => say(message));
    throw error;
  }
  say('Starting acquire again');
  return (await apply(next)) ?? changed;
}

async function untilDrained(
  aws: Aws,
  { old, clock }: Pick<Upgrade, 'old' | 'clock'>,
  say: Hands['say'],
): Promise<void> {
  const endsAt = clock.now() + PATIENCE_MS;
  let said = '';
  for (let keys = await keysInUse(aws, old); keys.length > 0; keys = await keysInUse(aws, old)) {
    const more = keys.length > MOST_KEYS_NAMED ? ` and ${keys.length - MOST_KEYS_NAMED} more` : '';
    const inUse = `permits of ${keys.slice(0, MOST_KEYS_NAMED).join(', ')}${more} are held, or callers wait for them`;
    if (clock.now() >= endsAt)
      throw new Refusal(
        `${inUse}. Stop those holders and waiters, and deploy again, or add --forget-pools. Nothing was changed`,
      );
    if (inUse !== said) say(`Waiting: ${inUse}`);
    said = inUse;
    await clock.sleep(POLL_MS);
  }
}

async function keysInUse(aws: Aws, { pools, waiters, clockSkewMs }: OldPools): Promise<string[]> {
  const now = await timeOfAws(aws, pools);
  const keys: string[] = [];
  const scan = { TableName: pools, ConsistentRead: true };
  for await (const { Items = [] } of paginateScan({ client: aws.dynamodb }, scan))
    for (const item of Items) if (isHeld(item, now - clockSkewMs)) keys.push(item.key?.S ?? '');
  for await (const { key } of rowsOfLines(aws, waiters, now)) keys.push((key?.S ?? '').slice(LINES.length));
  return [...new Set(keys)].toSorted();
}

const isHeld = (item: Item, after: number): boolean =>
  parsePool('', { ...item, lease_version: text(POOL) }).entries.some(({ expiresAt }) => expiresAt > after);

/** The rows of tasks, and of calls that may still wait. */
async function* rowsOfLines({ dynamodb }: Aws, waiters: string, now: number): AsyncGenerator<Item> {
  const scan = {
    TableName: waiters,
    ConsistentRead: true,
    FilterExpression: 'begins_with(#key, :lines) AND (attribute_not_exists(keep_until) OR keep_until > :now)',
    ProjectionExpression: '#key, ticket',
    ExpressionAttributeNames: { '#key': 'key' },
    ExpressionAttributeValues: { ':lines': text(LINES), ':now': integer(now) },
  };
  for await (const { Items = [] } of paginateScan({ client: dynamodb }, scan)) yield* Items;
}

/**
 * Takes all waiters out of the lines of the pools of 0.2.0: they would receive permits that exclude no caller of a later version. Their tasks end
 * at their own timeouts.
 */
async function forgetLines(aws: Aws, { waiters }: OldPools): Promise<void> {
  for await (const Key of rowsOfLines(aws, waiters, 0))
    await aws.dynamodb.send(new DeleteItemCommand({ TableName: waiters, Key }));
}
