import { BatchGetItemCommand, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { addRetryWith, reading, send } from '../../aws/send.ts';
import type { Ids } from '../../surroundings/ids.ts';
import { type LeaseDependencies, ROW_EVERY_MS, WINDOW_MS } from '../dependencies.ts';
import { logFailedLook } from '../executions/questions.ts';
import { type KeyRecord, parseKey } from '../record/record.ts';
import type { GrantOnRecord, TryOutcome } from '../record/room.ts';
import { claim, isAlive, isGrant, leave, refuseCall, refuseEnded } from './claim.ts';
import { type Joined, type JoinOptions, join } from './join.ts';
import type { Lock, LockCall } from './lock.ts';
import { meanOf } from './pace.ts';
import { getWaiter, isTask, parseWaiter, type WaiterKey, type WaitingCall } from './waiters.ts';

/** What a poll has read. `row`: the call's own row, if DynamoDB returned it. */
interface Polled {
  record: KeyRecord;
  row?: WaitingCall | 'gone';
}

/**
 * Asks about the executions of bound holders beside a wait, one look at a time, because a slow answer of AWS must not
 * keep the call from its own grant. If the call returns first, the look may stop at any point. That is safe: each of
 * its writes names the version from before the question.
 */
function backgroundLook(lock: Pick<Lock, 'lookAtHolders'>): (record: KeyRecord, isNext: boolean) => void {
  let isLooking = false;
  const end = () => {
    isLooking = false;
  };
  return (record, isNext) => {
    if (isLooking) return;
    isLooking = true;
    lock.lookAtHolders(record, isNext).catch(logFailedLook).then(end);
  };
}

/** An eventually consistent read of a record: half a read unit. @throws HoldfastError Throttled, Unavailable */
export async function pollItem(
  { dynamodb, table }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<Item | undefined> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) } });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return item;
}

/** Reads the record of a key as `pollItem` does. @throws HoldfastError Throttled, Unavailable */
const pollRecord = async (dependencies: LeaseDependencies, key: string, call: Call): Promise<KeyRecord> =>
  parseKey(key, await pollItem(dependencies, key, call));

/**
 * Reads the record as `pollRecord` does, and the row of the call by a consistent read, in one request.
 * @throws HoldfastError Throttled, Unavailable
 */
async function pollRecordAndWaiter(
  dependencies: LeaseDependencies,
  { key, ticket }: WaiterKey,
  call: Call,
): Promise<Polled> {
  const { dynamodb, table, waitersTable } = dependencies;
  const command = new BatchGetItemCommand({
    RequestItems: {
      [table]: { Keys: [{ key: text(key) }] },
      [waitersTable]: { Keys: [{ key: text(key), ticket: text(ticket) }], ConsistentRead: true },
    },
  });
  const operation = reading(`tables ${table} and ${waitersTable}`);
  const { Responses: found = {}, UnprocessedKeys: left = {} } = await send(dynamodb, { command, operation }, call);
  // DynamoDB may leave out one of the two items. If it left out the row, the next poll reads it.
  if (left[table]) return { record: await pollRecord(dependencies, key, call) };
  const record = parseKey(key, found[table]?.[0]);
  return left[waitersTable] ? { record } : { record, row: waitingCallIn(found[waitersTable]?.[0]) };
}

function waitingCallIn(item: Item | undefined): WaitingCall | 'gone' {
  const waiter = item && parseWaiter(item);
  return waiter && !isTask(waiter) ? waiter : 'gone';
}

/**
 * Waits in line until the call has its grant, or until its deadline (docs/protocols/queue.md#wait).
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function waitInLine(lockCall: LockCall, joining: JoinOptions): Promise<GrantOnRecord> {
  const joined = await join(lockCall, joining);
  if (joined.granted) return joined.granted;
  const { requestId } = lockCall.lock.request;
  // A call that fails leaves its waiter, and may have received a grant. So its error names the request and the ticket.
  const granted = new CallInLine({ ...lockCall, hasPlace: joined.hasPlace === true }, joined, joining).untilGranted();
  return granted.catch(addRetryWith({ requestId, ticket: joined.ticket }));
}

/** The value of `#checkedAt` after an outcome that makes the call doubt that its row is still there. */
const IN_DOUBT = Number.NEGATIVE_INFINITY;

/** How often a held call decides again whether its caller should sleep. */
const DECIDE_EVERY_MS = 5000;

class CallInLine {
  readonly #lockCall: LockCall;
  readonly #lock: Lock;
  readonly #joining: JoinOptions;
  readonly #deadline: number;
  #decidesAt: number;
  readonly #ticket: string;
  readonly #lookInBackground: ReturnType<typeof backgroundLook>;
  #record: KeyRecord;
  #polledAt: number;
  /** When the call last read its own row. If it is `IN_DOUBT`, the call reads the row before it acts. */
  #checkedAt: number;
  #requestMs: number | undefined;
  /** Since when the key has looked free while another waiter was next. */
  #freeSince: number | undefined;
  /** How long this call leaves the free key to the waiters before it. */
  #patienceMs = 0;
  /** The last hand-off, if the next waiter could not be served. */
  #fruitless: { fingerprint: string; triedAt: number } | undefined;
  #ownVersion: string | undefined;
  /** Whether the row of this call is gone, and the request has no grant. */
  #isGone = false;

  constructor(lockCall: LockCall, { ticket, record }: Joined, joining: JoinOptions) {
    this.#lockCall = lockCall;
    this.#lock = lockCall.lock;
    this.#lookInBackground = backgroundLook(lockCall.lock);
    this.#joining = joining;
    this.#deadline = joining.deadline;
    this.#decidesAt = this.#now + DECIDE_EVERY_MS;
    this.#ticket = ticket;
    this.#record = record;
    this.#polledAt = this.#now;
    this.#checkedAt = this.#now;
  }

  async untilGranted(): Promise<GrantOnRecord> {
    this.#askAboutHolders();
    for (;;) {
      const claimed = await this.#claimOwnGrant();
      if (claimed) return claimed;
      if (this.#isGone || this.#now >= this.#deadline) return leave(this.#lockCall, this.#ticket);
      if (await this.#checkWaiter()) continue;
      if (await this.#markOrHandOff()) continue;
      // An empty line leaves the row in doubt, so it is checked before the pause.
      if (await this.#checkWaiter()) continue;
      const slept = await this.#sleepIfFar();
      if (slept) return slept;
      await this.#pauseAndPoll();
    }
  }

  /**
   * Puts the caller to sleep if its turn is far.
   * @returns a grant that came before the caller slept
   * @throws HoldfastError LeaseHeld if the caller sleeps
   */
  async #sleepIfFar(): Promise<GrantOnRecord | undefined> {
    if (!this.#joining.sleepIfFar || this.#now < this.#decidesAt) return undefined;
    this.#decidesAt = this.#now + DECIDE_EVERY_MS;
    return this.#joining.sleepIfFar(this.#record, { ...this.#joining, ticket: this.#ticket });
  }

  get #now(): number {
    return this.#lockCall.dependencies.clock.now();
  }

  get #rowKey() {
    return { key: this.#lock.request.key, ticket: this.#ticket };
  }

  get #sight() {
    return { record: this.#record, ticket: this.#ticket, requestMs: this.#requestMs };
  }

  /** Whether the record shows a grant of the request, or how that grant ended. */
  get #isDecided(): boolean {
    const own = this.#lock.ownGrant(this.#record);
    return typeof own === 'string' || isAlive(own, this.#now);
  }

  /**
   * Claims the grant of the request, if the record shows one.
   * @throws HoldfastError LeaseLost if that grant has ended, or is ending
   */
  async #claimOwnGrant(): Promise<GrantOnRecord | undefined> {
    const record = this.#record;
    const own = this.#lock.ownGrant(record);
    if (typeof own === 'string') return refuseEnded(this.#lockCall, { record, ticket: this.#ticket, reason: own });
    const isWrittenHere = own !== undefined && own.version === this.#ownVersion;
    if (!isWrittenHere && !isAlive(own, this.#now)) return undefined;
    const claimed = await claim(this.#lockCall, { record, ticket: this.#ticket, isWrittenHere });
    if (!claimed) this.#checkedAt = IN_DOUBT; // the call was paused for too long, or was withdrawn
    return claimed;
  }

  /**
   * Restores a mark that is gone, or hands off a key that is free.
   * @returns whether the call must judge the record again, without a pause
   */
  async #markOrHandOff(): Promise<boolean> {
    const lock = this.#lock;
    const hasRoom = lock.roomAt(this.#record) <= this.#now;
    if (!hasRoom) this.#freeSince = undefined;
    if (!lock.isMarked(this.#record)) {
      // Perhaps another call has found the line empty and removed the mark, because the row of this call is gone.
      if (await this.#readWaiter()) return true;
      this.#record = (await lock.restoreMark(this.#record, this.#ticket)).record;
      // If a third-party client has overwritten an entry, the mark cannot be raised until that entry is gone.
      return lock.isMarked(this.#record) || this.#isDecided;
    }
    if (!hasRoom || this.#isStillFruitless) return false;
    const own = lock.ownGrant(this.#record);
    if (isGrant(own) && own.claimTtlMs !== undefined) return false; // the next poll claims it
    if (!this.#mayHandOff()) return false;
    const { end, record, ownVersion } = await lock.handOff(this.#record, this.#ticket);
    this.#record = record;
    this.#freeSince = undefined;
    this.#fruitless = end === 'waits' ? { fingerprint: lock.fingerprintOf(record), triedAt: this.#now } : undefined;
    if (ownVersion !== undefined) this.#ownVersion = ownVersion;
    if (end === 'empty') this.#checkedAt = IN_DOUBT; // so the row of this call is gone, or was withdrawn
    return end !== 'empty' && this.#isDecided;
  }

  /**
   * Whether this call may hand off the free key: the next waiter at once, every other waiter after its patience, in
   * case those before it have crashed.
   *
   *   the key looks free          + patience
   *         |-- the next waiter ------|-- this call
   */
  #mayHandOff(): boolean {
    const { patience } = this.#joining;
    // The key was free before this call came, and no caller has had it since. So it was left free for sleepers, and
    // this call leaves it to them too.
    if (patience && (this.#record.freedAt ?? 0) <= patience.freeSince) {
      this.#freeSince ??= this.#now;
      this.#patienceMs = Math.max(0, patience.until - this.#freeSince);
      return this.#patienceLeft <= 0;
    }
    if (this.#lock.isNext(this.#record, this.#ticket)) return true;
    if (this.#freeSince === undefined) {
      this.#freeSince = this.#now;
      this.#patienceMs = this.#lock.patienceMs(this.#sight);
    }
    return this.#patienceLeft <= 0;
  }

  get #patienceLeft(): number {
    return this.#freeSince === undefined ? Number.POSITIVE_INFINITY : this.#freeSince + this.#patienceMs - this.#now;
  }

  /**
   * Whether another hand-off would serve no waiter either, because the record is the same. After a second this call
   * tries again: the next waiter may have left.
   */
  get #isStillFruitless(): boolean {
    const last = this.#fruitless;
    if (!last || this.#now - last.triedAt >= ROW_EVERY_MS) return false;
    return last.fingerprint === this.#lock.fingerprintOf(this.#record);
  }

  /**
   * Reads the row of this call, if the row may be gone: after an unexpected outcome, or after a pause that was longer
   * than the grant window, in which the call may have lost a grant and its position.
   * @returns as `#markOrHandOff`
   */
  async #checkWaiter(): Promise<boolean> {
    const isInDoubt = this.#checkedAt === IN_DOUBT || this.#now - this.#polledAt > WINDOW_MS;
    return isInDoubt && (await this.#readWaiter());
  }

  /** @returns as `#markOrHandOff` */
  async #readWaiter(): Promise<boolean> {
    this.#polledAt = this.#now;
    this.#checkedAt = this.#now;
    const { dependencies, call } = this.#lockCall;
    const row = await getWaiter(dependencies, this.#rowKey, call);
    return this.#judge(row && !isTask(row) ? row : 'gone');
  }

  /** Judges the call's row. @returns as `#markOrHandOff`. @throws HoldfastError LeaseLost (`cancelled`), Superseded */
  async #judge(row: WaitingCall | 'gone'): Promise<boolean> {
    if (row !== 'gone' && row.cancelledAt === undefined) return false;
    const record = await this.#lock.read();
    this.#record = record; // the poll was eventually consistent, and a claim of an old version would be lost
    // The request has a grant: claim it. If the request was withdrawn, the claim gives up the grant.
    if (this.#isDecided) return true;
    if (row !== 'gone') return refuseCall(this.#lockCall, { record, ticket: this.#ticket, reason: row });
    // Do not join again. A duplicate call may have had the grant and released it so long ago that the record has
    // forgotten that, and then the request would get a second grant.
    this.#isGone = true;
    return true;
  }

  #askAboutHolders(): void {
    this.#lookInBackground(this.#record, this.#lock.isNext(this.#record, this.#ticket));
  }

  async #pauseAndPoll(): Promise<void> {
    const { dependencies, lock, call } = this.#lockCall;
    const pause = lock.pauseMs(this.#sight);
    const left = Math.min(Math.ceil(this.#patienceLeft), this.#deadline - this.#now);
    await dependencies.clock.sleep(Math.max(1, Math.min(pause, left)));
    if (lock.skipsPoll(this.#record, this.#ticket)) return;
    this.#polledAt = this.#now;
    const { key } = lock.request;
    if (this.#now - this.#checkedAt < ROW_EVERY_MS) {
      this.#record = await pollRecord(dependencies, key, call);
      this.#requestMs = meanOf(this.#requestMs, this.#now - this.#polledAt);
      return;
    }
    this.#askAboutHolders();
    this.#checkedAt = this.#now;
    const { record, row } = await pollRecordAndWaiter(dependencies, this.#rowKey, call);
    this.#record = record;
    if (row !== undefined) await this.#judge(row);
  }
}

/** The pauses of a racing call grow from the first of these to the second. */
const MIN_RACE_PAUSE_MS = 25;
const MAX_RACE_PAUSE_MS = 250;

/** The pause between tries while there is a mark: each reads the line, and wins only if no waiter can be served. */
const BESIDE_LINE_MS = 1000;

interface RaceOptions {
  /** The record that refused the first try. */
  heldBy: KeyRecord;
  /** When the call stops waiting, in epoch milliseconds. */
  deadline: number;
  attempt(): Promise<TryOutcome>;
}

/**
 * Waits outside the line (`fair: false`): polls until the key looks free, and tries again. A race costs less than a
 * position in line, and the caller that polls first gets the grant.
 * @throws HoldfastError LeaseHeld at the deadline, and the errors of a try
 */
export async function race(lockCall: LockCall, { heldBy, ...racing }: RaceOptions): Promise<GrantOnRecord> {
  const { clock, ids } = lockCall.dependencies;
  const pauses = jitteredPauses(ids);
  const lookAtHolders = backgroundLook(lockCall.lock);
  for (let record = heldBy; ; ) {
    await untilSeemsFree(lockCall, { ...racing, heldBy: record, pauses, lookAtHolders, triedAt: clock.now() });
    const outcome = await racing.attempt();
    if (outcome.won) return outcome;
    record = outcome.record;
  }
}

interface Round extends RaceOptions {
  pauses: Iterator<number, never>;
  lookAtHolders: ReturnType<typeof backgroundLook>;
  triedAt: number;
}

/** Polls until the key looks free. Pauses until the holder's expiry, or for a jittered pause if that is shorter. */
async function untilSeemsFree(
  { dependencies, lock, call }: LockCall,
  { heldBy, deadline, pauses, lookAtHolders, triedAt }: Round,
): Promise<void> {
  const { clock } = dependencies;
  const tryAgainAt = (record: KeyRecord): number => {
    const own = lock.ownGrant(record);
    if (typeof own === 'string' || (isGrant(own) && own.expiresAt > clock.now())) return Number.NEGATIVE_INFINITY;
    const roomAt = lock.roomAt(record);
    return lock.isMarked(record) ? Math.max(roomAt, triedAt + BESIDE_LINE_MS) : roomAt;
  };
  for (let record = heldBy; ; ) {
    const now = clock.now();
    const leftMs = deadline - now;
    if (leftMs <= 0) throw lock.errorOfHeld(record);
    // The time to wait can be negative: the key is free for its line, but the next task cannot be notified, because
    // Step Functions does not answer.
    const toTryMs = tryAgainAt(record) - now;
    const pause = pauses.next().value;
    await clock.sleep(Math.min(toTryMs > 0 ? Math.min(pause, toTryMs) : pause, leftMs));
    record = await pollRecord(dependencies, lock.request.key, call);
    lookAtHolders(record, true);
    if (tryAgainAt(record) <= clock.now()) return;
  }
}

/** The pauses of a race, in milliseconds. */
export function* jitteredPauses(ids: Ids): Generator<number, never> {
  for (let pause = MIN_RACE_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_RACE_PAUSE_MS))
    yield Math.round(pause * (0.5 + ids.random() / 2));
}
