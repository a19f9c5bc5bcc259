import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { reading, send } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { LeaseRecord } from '../record.ts';
import { isLeased, takeoverAt } from '../rules.ts';
import { notifyGranted } from './delivery.ts';
import { releaseHeldByDead } from './execution-ended.ts';
import { failOverdue, handOff } from './hand-off.ts';
import { markAgain } from './marks.ts';
import { readRecord } from './record.ts';
import { AFTER_ALL_TICKETS, deleteTicket, getTicket, ticketsOf } from './tickets.ts';

export interface Repaired {
  /** With somebody parked. */
  keys: number;
  /** Tasks that were given a lease whose holder had gone without a word. */
  granted: number;
  /** Tasks that were told of a grant that was on record. */
  told: number;
  /** Tasks that Step Functions gave no answer about: tried again in the next run. */
  unanswered: number;
  /** Whether all keys were seen; else the rest is left to the next run. */
  complete: boolean;
}

/** Whoever wrote a grant tells it within moments, or never will. */
const TOLD_AFTER_MS = 10_000;

/**
 * So long after its deadline no task waits any more that sets its timeout as documented. What can never be told, of a key that
 * Step Functions may not use for instance, would have its lease renewed for ever.
 */
const TOLD_PAST_DEADLINE_MS = 180_000;

/** One key takes this long at most, as a rule. */
const LAST_KEY_MS = 5000;

/** What one run does for one key, so that a queue of dead tickets does not cost the others their turn. */
const MAX_HAND_OFFS = 10;
const MAX_OVERDUE = 100;

/**
 * A client that knows nothing of the queue gives its lease back without a word, and whoever asks next has it. So while such a client
 * holds a key with young tickets, the run lasts, and looks at that key again and again. Older tickets wait for the next run: a queue that
 * such clients keep busy may never get the key, and must not be watched for ever.
 */
const LOOK_AGAIN_MS = 5000;
const YOUNG_MS = 600_000;

/**
 * Goes through the keys that somebody is parked for, and mends what a call left behind that died half way, or a holder that
 * ended without a word. It starts from the tickets and not from the leases, for other clients and TTL drop the mark.
 * Starts anywhere, so that a run that is cut short is not always short of the same keys.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a key, after all the others were tried
 */
export function repairer(dependencies: LeaseDependencies) {
  return async (_: object, call: Call): Promise<Repaired> => {
    const repaired: Repaired = { keys: 0, granted: 0, told: 0, unanswered: 0, complete: true };
    const failures: unknown[] = [];
    const endsAt = dependencies.clock.now() + call.timeLeftMs();
    const watched: string[] = [];
    for await (const key of keysWithTickets(dependencies, call)) {
      if (call.timeLeftMs() < LAST_KEY_MS) {
        repaired.complete = false;
        break;
      }
      repaired.keys++;
      try {
        if (await repairKey(dependencies, key, repaired, call)) watched.push(key);
      } catch (error) {
        failures.push(error);
      }
    }
    await watch(dependencies, watched, endsAt, repaired, call).catch((error) => failures.push(error));
    if (failures.length > 0) throw failures[0];
    return repaired;
  };
}

/** Row by row, jumping over all further ones of the same key: a long queue costs no more than a short one. */
async function* keysWithTickets(
  { dynamodb, ids, waitersTable }: LeaseDependencies,
  call: Call,
): AsyncGenerator<string> {
  const seen = new Set<string>();
  let from: string | undefined = ids.uuid(); // any place in the table will do
  for (let rounds = 0; rounds < 2; ) {
    const command: ScanCommand = new ScanCommand({
      TableName: waitersTable,
      Limit: 1,
      ProjectionExpression: '#key',
      ExpressionAttributeNames: { '#key': 'key' },
      ...(from !== undefined && { ExclusiveStartKey: { key: text(from), ticket: text(AFTER_ALL_TICKETS) } }),
    });
    const page = await send(dynamodb, command, reading(`table ${waitersTable}`), call);
    const key = page.Items?.[0]?.key?.S;
    if (key === undefined) {
      rounds++;
      from = undefined;
    } else if (seen.has(key)) return;
    else {
      seen.add(key);
      yield key;
      from = key;
    }
  }
}

/** Looks at the keys again until their leases come free or the run must end. */
async function watch(
  dependencies: LeaseDependencies,
  keys: string[],
  endsAt: number,
  repaired: Repaired,
  call: Call,
): Promise<void> {
  const { clock } = dependencies;
  let watched = keys;
  while (watched.length > 0 && clock.now() + LOOK_AGAIN_MS + LAST_KEY_MS <= endsAt) {
    await clock.sleep(LOOK_AGAIN_MS);
    const still: string[] = [];
    for (const key of watched) {
      if (call.timeLeftMs() < LAST_KEY_MS) return;
      const standing = await handOnOrMark(dependencies, await readRecord(dependencies, key, call), repaired, call);
      if (isForeign(standing)) still.push(key);
    }
    watched = still;
  }
}

/** Leased by a client that writes the Rust crate's attributes alone. */
const isForeign = (record: LeaseRecord): boolean => isLeased(record) && record.leaseId === undefined;

/** @returns whether to look at the key again in this run */
async function repairKey(
  dependencies: LeaseDependencies,
  key: string,
  repaired: Repaired,
  call: Call,
): Promise<boolean> {
  const record = await readRecord(dependencies, key, call);
  await failAllOverdue(dependencies, record, repaired, call);
  const standing = await handOnOrMark(dependencies, record, repaired, call);
  await tellUntold(dependencies, standing, repaired, call);
  return isForeign(standing) && hasYoungTicket(dependencies, key, call);
}

async function hasYoungTicket(dependencies: LeaseDependencies, key: string, call: Call): Promise<boolean> {
  const newestFirst = ticketsOf(dependencies, key, call, { firstPage: 1, ScanIndexForward: false });
  const { value: newest } = await newestFirst.next();
  return newest !== undefined && newest.parkedAt + YOUNG_MS > dependencies.clock.now();
}

/**
 * Hands on a lease that can be had, and puts a lost mark back on one that runs.
 * @returns the record as it was last seen
 */
async function handOnOrMark(
  dependencies: LeaseDependencies,
  seen: LeaseRecord,
  repaired: Repaired,
  call: Call,
): Promise<LeaseRecord> {
  const { key } = seen;
  let record = seen;
  for (let tries = 0; canBeHad(dependencies, record); record = await readRecord(dependencies, key, call)) {
    const { end, standing } = await handOff(dependencies, record, isLeased(record) ? 'expired' : 'free', call);
    if (end === 'granted') repaired.granted++;
    if (end !== 'left' || ++tries === MAX_HAND_OFFS || call.timeLeftMs() < LAST_KEY_MS) return standing;
  }
  return record.waiters === undefined ? (await markAgain(dependencies, record, call)).standing : record;
}

const canBeHad = ({ clock, clockSkewMs }: LeaseDependencies, record: LeaseRecord): boolean =>
  !isLeased(record) || takeoverAt(record, clockSkewMs) <= clock.now();

/** Also behind a lease that runs: its TTL alone would delete a row, and its task would wait for ever. */
async function failAllOverdue(dependencies: LeaseDependencies, record: LeaseRecord, repaired: Repaired, call: Call) {
  const overdue = {
    FilterExpression: 'deadline <= :now',
    ExpressionAttributeValues: { ':now': integer(dependencies.clock.now()) },
  };
  let tries = 0;
  for await (const ticket of ticketsOf(dependencies, record.key, call, overdue)) {
    if (ticket.ticket === record.ticket) continue;
    if (tries++ === MAX_OVERDUE) return;
    if (!(await failOverdue(dependencies, ticket, record, call))) repaired.unanswered++;
  }
}

/** A grant whose ticket is still there was perhaps never told. It is told now, anew and under a new version, by us alone. */
async function tellUntold(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  repaired: Repaired,
  call: Call,
): Promise<void> {
  const { key, ticket, acquiredAt = 0 } = record;
  if (!isLeased(record) || ticket === undefined || acquiredAt + TOLD_AFTER_MS > dependencies.clock.now()) return;
  const row = await getTicket(dependencies, { key, ticket }, call);
  if (!row || row.deadline + TOLD_PAST_DEADLINE_MS <= dependencies.clock.now()) return; // then it ends at its expiry
  const grant = { record, repeated: false, isOurs: false };
  const { outcome, standing } = await notifyGranted(dependencies, row, grant, call);
  if (outcome === 'overtaken') return;
  if (outcome === 'unanswered') {
    repaired.unanswered++;
    return;
  }
  await deleteTicket(dependencies, row, call);
  if (outcome === 'delivered') repaired.told++;
  // Gone may mean told before, with the reply lost: the lease moves only if the execution has ended, or when it expires.
  else repaired.granted += await releaseHeldByDead(dependencies, standing, call);
}
