import { PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { type Condition, conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { logLine } from '../../surroundings/log.ts';
import type { LeaseDependencies } from '../dependencies.ts';

// Counts calls that wait, if the concurrency of acquire is reserved (docs/authorization.md#calls-that-wait). An environment cannot see how many
// others wait. So each call that begins to wait adds itself to one record of the leases table, and removes itself at the end of its wait. It
// notes until when it may wait, in steps of five seconds, so that the entry of a call that died ends by itself.
//
// No write here is tried again after a try without an answer. If both had landed, a call that begins to wait would count twice, and one that ends
// would take away the entry of another, so that too many calls could wait. An entry that such a write leaves too many ends by itself, within 25 s.

/** No caller can name such a key. */
const KEY = 'holdfast:waits';

const BUCKET_MS = 5000;
/** A write removes up to this many buckets of the past, and replaces a record that is older than these. So the record stays small. */
const CLEARED = 12;
const TTL_SECONDS = 86_400;
/** How long an environment that met the limit lets no call wait, without a look: callers that come back at once must not keep the record busy. */
const FULL_MS = 1000;

/** When a call that may not wait can ask again, in milliseconds: from and to. */
const ASK_AGAIN_MS = [1000, 3000] as const;

interface Waiting<Result> {
  /** The latest end of the wait, in epoch milliseconds. */
  deadline: number;
  /** True if the call has kept its position, and so comes before new calls. */
  isBack: boolean;
  /** How many environments are reserved for acquire. */
  concurrency: number;
  /** The error of a call that does not wait. */
  held(): HoldfastError;
  wait(): Promise<Result>;
}

/** The limit that this environment met, and until when it asks no more on behalf of calls with that limit. */
const met = new WeakMap<LeaseDependencies, { most: number; until: number }>();

/**
 * Lets a call wait, unless it would use up the reserved concurrency.
 * @throws HoldfastError LeaseHeld if it must not wait, Throttled, Unavailable, OutcomeUnknown, and as `wait`
 */
export async function countedWait<Result>(
  dependencies: LeaseDependencies,
  { deadline, isBack, concurrency, held, wait }: Waiting<Result>,
  call: Call,
): Promise<Result> {
  const bucket = Math.floor(deadline / BUCKET_MS);
  if (!(await mayWait(dependencies, { bucket, most: mostWaiting(concurrency, isBack) }, call)))
    throw tooManyWait(dependencies, held());
  try {
    return await wait();
  } finally {
    await takeBack(dependencies, bucket, call);
  }
}

/** Errors of a call that could not be counted: more calls come than one record takes, or the answer was lost, and its entry may stand. */
const UNCOUNTED: ReadonlySet<string> = new Set(['Throttled', 'OutcomeUnknown']);

async function mayWait(
  dependencies: LeaseDependencies,
  { bucket, most }: { bucket: number; most: number },
  call: Call,
): Promise<boolean> {
  const { clock } = dependencies;
  const now = clock.now();
  const full = met.get(dependencies);
  if (full && most <= full.most && now < full.until && now >= full.until - FULL_MS) return false;
  const waiting = await count(dependencies, bucket, call).catch((error) => {
    if (error instanceof HoldfastError && UNCOUNTED.has(error.code)) return undefined;
    throw error;
  });
  if (waiting !== undefined && waiting <= most) return true;
  met.set(dependencies, { most, until: clock.now() + FULL_MS });
  if (waiting !== undefined) await takeBack(dependencies, bucket, call);
  return false;
}

function tooManyWait({ ids }: LeaseDependencies, held: HoldfastError): HoldfastError {
  const { code, message, context, retryAfterMs = 0 } = held;
  const [least, most] = ASK_AGAIN_MS;
  const soon = Math.round(least + (most - least) * ids.random());
  return new HoldfastError(code, `${message}, and too many calls wait for leases: send the call again later`, {
    ...context,
    retryAfterMs: Math.min(retryAfterMs, soon),
  });
}

/** A tenth of the environments stays for calls that do not wait, and another tenth for calls that come back to their places. */
function mostWaiting(concurrency: number, isBack: boolean): number {
  const kept = Math.max(1, Math.ceil(concurrency / 10));
  return Math.max(0, concurrency - (isBack ? kept : 2 * kept));
}

/** @returns how many calls wait now, with this one. A call that died counts until the end that it noted. */
async function count(dependencies: LeaseDependencies, bucket: number, call: Call): Promise<number> {
  const { dynamodb, clock, table } = dependencies;
  for (;;) {
    const now = clock.now();
    const present = Math.floor(now / BUCKET_MS);
    // The wait of this call may be over by now, and one expression cannot both raise and remove an attribute.
    const past = Array.from({ length: CLEARED }, (_, back) => present - 1 - back).filter((one) => one !== bucket);
    const over = past.map((one) => `until_${one}`);
    const isFresh: Condition = {
      expression: 'written_at > :fresh',
      values: { ':fresh': integer((present - CLEARED + 1) * BUCKET_MS) },
    };
    const values = { ':one': integer(1), ':now': integer(now), ':ttl': integer(ttl(now)) };
    const command = new UpdateItemCommand({
      TableName: table,
      Key: { key: text(KEY) },
      UpdateExpression: `SET written_at = :now, lease_expiry = :ttl ADD until_${bucket} :one REMOVE ${over.join(', ')}`,
      ...conditionFields(isFresh, { values }),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const write = { command, operation: writing(`table ${table}`), landsOnce: true };
    const counted = await conditionalWrite(dynamodb, write, call);
    if (counted.won) return sum(counted.item ?? {}, present);
    if (await beginAgain(dependencies, { bucket, old: counted.old }, call)) return 1;
  }
}

const sum = (item: Item, present: number): number =>
  Object.entries(item).reduce((total, [name, { N: value }]) => {
    const [, bucket] = /^until_(\d+)$/.exec(name) ?? [];
    return bucket !== undefined && Number(bucket) >= present ? total + Math.max(0, Number(value)) : total;
  }, 0);

/** If no call has waited for a minute, everything in the record is over. */
async function beginAgain(
  { dynamodb, clock, table }: LeaseDependencies,
  { bucket, old }: { bucket: number; old: Item | undefined },
  call: Call,
): Promise<boolean> {
  const now = clock.now();
  const seen = old?.written_at;
  const isUnchanged: Condition =
    seen === undefined
      ? { expression: 'attribute_not_exists(written_at)' }
      : { expression: 'written_at = :seen', values: { ':seen': seen } };
  const times = { written_at: integer(now), lease_expiry: integer(ttl(now)) };
  const command = new PutItemCommand({
    TableName: table,
    Item: { key: text(KEY), ...times, [`until_${bucket}`]: integer(1) },
    ...conditionFields(isUnchanged),
  });
  const write = { command, operation: writing(`table ${table}`), landsOnce: true };
  return (await conditionalWrite(dynamodb, write, call)).won;
}

/** A failure is not the caller's, which has its answer. Its entry ends by itself in a few seconds. */
async function takeBack({ dynamodb, clock, table }: LeaseDependencies, bucket: number, call: Call): Promise<void> {
  if ((bucket + 1) * BUCKET_MS <= clock.now()) return;
  const name = `until_${bucket}`;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(KEY) },
    UpdateExpression: `ADD ${name} :less`,
    ...conditionFields(
      { expression: `${name} > :zero`, values: { ':zero': integer(0) } },
      {
        values: { ':less': integer(-1) },
      },
    ),
  });
  const write = { command, operation: writing(`table ${table}`), landsOnce: true };
  await conditionalWrite(dynamodb, write, call).catch((error: Error) =>
    logLine('WARN', { message: 'the count of waiting calls may be too high for up to 25 s', cause: error.message }),
  );
}

const ttl = (now: number): number => Math.ceil(now / 1000) + TTL_SECONDS;
