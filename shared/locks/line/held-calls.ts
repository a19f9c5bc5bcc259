import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { logLine } from '../../surroundings/log.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { HeldFor } from './expected.ts';

// Bounds the calls that wait inside the service (docs/authorization.md#calls-that-wait), because each occupies an environment, and an account has few.
// Each held call has a slot: an attribute of one of four records. The slot notes when the call ends at the latest, so that the slot of a call that died
// comes free by itself.

const RECORDS = 4;
/** No caller can name such a key. */
const heldCallKey = (nth: number): string => `holdfast:held:${nth}`;
const SLOT_TTL_SECONDS = 86_400;
/** A call may end later than its deadline by this much. */
const LATE_MS = 1000;
/** How many slots a call tries before it gives up. */
const TRIES = 5;

/** The part of the slots that may be taken, with the slot of the call itself. The other slots are left to calls whose turn is nearer. */
export const SHARE: Record<HeldFor, number> = { front: 1, soon: 0.5, first: 0.5, plain: 0.8 };

interface Holding {
  heldFor: HeldFor;
  /** The latest end of the wait, in epoch milliseconds. */
  deadline: number;
}

interface Slot {
  nth: number;
  slot: number;
  until: number;
}

/**
 * Runs `wait` in a slot, if one is free for such a call.
 * @returns undefined if the call must not be held
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown, and as `wait`
 */
export async function inSlot<Result>(
  dependencies: LeaseDependencies,
  holding: Holding,
  { wait, call }: { wait: () => Promise<Result>; call: Call },
): Promise<{ result: Result } | undefined> {
  const most = dependencies.quotas?.maxHeldCalls;
  if (most === undefined) return { result: await wait() };
  const slot = await takeSlot(dependencies, { ...holding, most }, call).catch(ifNotCounted);
  if (!slot) return undefined;
  try {
    return { result: await wait() };
  } finally {
    await freeSlot(dependencies, slot, call).catch(({ message: cause }: Error) =>
      logLine('WARN', { message: 'the slot of a held call stays taken for up to 21 s', cause }),
    );
  }
}

/**
 * A call is not held if more calls come than the records can count, or if the answer was lost. In the second case its slot may be taken, and comes free
 * by itself.
 */
function ifNotCounted(error: unknown): undefined {
  if (error instanceof HoldfastError && (error.code === 'Throttled' || error.code === 'OutcomeUnknown')) return;
  throw error;
}

/** The slots are spread over the records as evenly as they can be. */
const sizeOf = (most: number, nth: number): number => Math.floor(most / RECORDS) + (nth < most % RECORDS ? 1 : 0);

async function takeSlot(
  dependencies: LeaseDependencies,
  { heldFor, deadline, most }: Holding & { most: number },
  call: Call,
): Promise<Slot | undefined> {
  const { ids, clock } = dependencies;
  const until = deadline + LATE_MS;
  const records = Math.min(RECORDS, most);
  if (records === 0) return undefined;
  const from = Math.floor(ids.random() * records);
  const inRecord = (one: number): [number, number] => [one, Math.floor(ids.random() * sizeOf(most, one))];
  let [nth, slot] = inRecord(from);
  for (let tries = 1; ; tries++) {
    const size = sizeOf(most, nth);
    const allowed = Math.max(1, Math.floor(size * SHARE[heldFor]));
    const mine = { nth, slot, until };
    const { won, item } = await writeHeldCall(dependencies, { ...mine, ...taking(until, clock.now()) }, call);
    const taken = takenIn(item, clock.now());
    if (won && taken.size <= allowed) return mine;
    if (won) await freeSlot(dependencies, mine, call);
    const isFull = won || taken.size >= allowed;
    // By chance one record may be full and another not. If two are full, only a call that may take any slot tries a third.
    if (tries === TRIES || (isFull && nth !== from && heldFor !== 'front')) return undefined;
    const free = Array.from({ length: size }, (_, one) => one).filter((one) => !taken.has(one));
    const next = isFull ? undefined : free[Math.floor(ids.random() * free.length)];
    [nth, slot] = next === undefined ? inRecord((nth + 1) % records) : [nth, next];
  }
}

const SLOT = /^s(\d+)$/;

/** The slots whose calls are still held. */
const takenIn = (item: Item | undefined, now: number): Set<number> =>
  new Set(
    Object.entries(item ?? {}).flatMap(([name, { N: until }]) => {
      const slot = SLOT.exec(name)?.[1];
      return slot !== undefined && Number(until) >= now ? [Number(slot)] : [];
    }),
  );

/** What a write does with a slot, and the condition for that. */
interface SlotChange {
  update: string;
  condition: string;
  values: Item;
}

/** Takes a slot whose call has ended. */
const taking = (until: number, now: number): SlotChange => ({
  update: 'SET #slot = :until, lease_expiry = :ttl',
  condition: 'attribute_not_exists(#slot) OR #slot < :now',
  values: {
    ...{ ':until': integer(until), ':now': integer(now) },
    ':ttl': integer(Math.ceil(now / 1000) + SLOT_TTL_SECONDS),
  },
});

/** Frees the slot, unless it came free by itself and another call has taken it. */
const freeSlot = (dependencies: LeaseDependencies, slot: Slot, call: Call) => {
  const values = { ':until': integer(slot.until) };
  return writeHeldCall(dependencies, { ...slot, update: 'REMOVE #slot', condition: '#slot = :until', values }, call);
};

/** @returns with the record as it is then */
async function writeHeldCall(
  { dynamodb, table }: LeaseDependencies,
  { nth, slot, update, condition: expression, values }: Omit<Slot, 'until'> & SlotChange,
  call: Call,
): Promise<{ won: boolean; item: Item | undefined }> {
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(heldCallKey(nth)) },
    UpdateExpression: update,
    ...conditionFields({ expression, names: { '#slot': `s${slot}` }, values }),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
  return { won: outcome.won, item: outcome.won ? outcome.item : outcome.old };
}
