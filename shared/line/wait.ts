import { naming } from '../aws/send.ts';
import type { Granted } from '../permits/permit-request.ts';
import type { PoolRecord } from '../permits/record.ts';
import { claim, isAlive, isGrant } from './claim.ts';
import { type Joined, type Joining, join } from './join.ts';
import { leave, refuse, refuseEnded } from './leave.ts';
import type { Lock, LockCall } from './lock.ts';
import { looksBeside, pollRecord, pollRecordAndWaiter } from './look.ts';
import { meanOf } from './patience.ts';
import { ROW_EVERY_MS, WINDOW_MS } from './times.ts';
import { getWaiter, isTask, type WaitingCall } from './waiters.ts';

/**
 * Waits in line until the call has its grant, or until its deadline (docs/protocols/queue.md#wait).
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function waitInLine(at: LockCall, joining: Joining): Promise<Granted> {
  const joined = await join(at, joining);
  const { requestId } = at.lock.asked;
  // A call that fails does not delete its waiter, and may have received a grant. So its error names the request and the ticket.
  const granted = new Waiting(at, joined, joining).untilGranted();
  return granted.catch(naming({ requestId, ticket: joined.ticket }));
}

class Waiting {
  readonly #at: LockCall;
  readonly #lock: Lock;
  readonly #deadline: number;
  readonly #ticket: string;
  readonly #looksBeside: ReturnType<typeof looksBeside>;
  #record: PoolRecord;
  /** When the call last looked at the record, and when it last read its own waiter. */
  #lookedAt: number;
  #checkedAt: number;
  /** How long the looks of this call take. */
  #requestMs: number | undefined;
  /** Since when the lock has looked free while another waiter was next, and how long this call leaves the lock to that waiter. */
  #freeSince: number | undefined;
  #patienceMs = 0;
  /** The last hand-off, if it served no waiter because the next waiter cannot be served yet. */
  #fruitless: { state: string | undefined; at: number } | undefined;
  /** The version of a full grant that this call wrote for itself. */
  #ownVersion: string | undefined;
  /** True if the waiter of this call is gone, and the request has no grant. */
  #isGone = false;

  constructor(at: LockCall, { ticket, record }: Joined, { deadline }: Joining) {
    this.#at = at;
    this.#lock = at.lock;
    this.#looksBeside = looksBeside(at.lock);
    this.#deadline = deadline;
    this.#ticket = ticket;
    this.#record = record;
    this.#lookedAt = this.#now;
    this.#checkedAt = this.#now;
  }

  async untilGranted(): Promise<Granted> {
    this.#askAboutHolders();
    for (;;) {
      const claimed = await this.#ownGrant();
      if (claimed) return claimed;
      if (this.#isGone || this.#now >= this.#deadline) return leave(this.#at, this.#ticket);
      if (await this.#checkWaiter()) continue;
      if (await this.#markOrHandOff()) continue;
      if (await this.#checkWaiter()) continue;
      await this.#pauseAndLook();
    }
  }

  get #now(): number {
    return this.#at.dependencies.clock.now();
  }

  get #name() {
    return { key: this.#lock.asked.key, ticket: this.#ticket };
  }

  get #sight() {
    return { record: this.#record, ticket: this.#ticket, requestMs: this.#requestMs };
  }

  /** True if the record shows a grant of the request, or how that grant ended. */
  get #isDecided(): boolean {
    const own = this.#lock.own(this.#record);
    return typeof own === 'string' || isAlive(own, this.#now);
  }

  /** @returns the claimed grant, if the record shows a grant of this request. @throws HoldfastError LeaseLost if that grant has ended, or is ending */
  async #ownGrant(): Promise<Granted | undefined> {
    const record = this.#record;
    const own = this.#lock.own(record);
    if (typeof own === 'string') return refuseEnded(this.#at, { record, ticket: this.#ticket, reason: own });
    const isOurs = own !== undefined && own.version === this.#ownVersion;
    if (!isOurs && !isAlive(own, this.#now)) return undefined;
    const claimed = await claim(this.#at, { record, ticket: this.#ticket, isOurs });
    if (!claimed) this.#checkedAt = Number.NEGATIVE_INFINITY; // the call was paused, or was withdrawn
    return claimed;
  }

  /** @returns true if the call must judge the current record at once */
  async #markOrHandOff(): Promise<boolean> {
    const lock = this.#lock;
    const isFree = lock.freeAt(this.#record) <= this.#now;
    if (!isFree) this.#freeSince = undefined;
    if (!lock.isMarked(this.#record)) {
      // Another call may have seen the line empty, because this waiter is gone.
      if (await this.#readWaiter()) return true;
      this.#record = (await lock.markBack(this.#record, this.#ticket)).record;
      // If a third-party client has overwritten an entry, the mark cannot be raised as long as that entry is there.
      return lock.isMarked(this.#record) || this.#isDecided;
    }
    if (!isFree || this.#isStillFruitless) return false;
    const own = lock.own(this.#record);
    if (isGrant(own) && own.claimTtlMs !== undefined) return false; // the next look claims it
    if (!this.#mayHandOff()) return false;
    const { end, record, ownVersion } = await lock.handOff(this.#record, this.#ticket);
    this.#record = record;
    this.#freeSince = undefined;
    this.#fruitless = end === 'waits' ? { state: lock.state(record), at: this.#now } : undefined;
    if (ownVersion !== undefined) this.#ownVersion = ownVersion;
    if (end === 'empty') this.#checkedAt = Number.NEGATIVE_INFINITY; // its own waiter is gone, or was withdrawn
    return end !== 'empty' && this.#isDecided;
  }

  /** True if this call may hand off: the next waiter at once, every other waiter after its patience. */
  #mayHandOff(): boolean {
    if (this.#lock.isNext(this.#record, this.#ticket) && !this.#lock.isLeftToRelease(this.#record)) return true;
    if (this.#freeSince === undefined) {
      this.#freeSince = this.#now;
      this.#patienceMs = this.#lock.patienceMs(this.#sight);
    }
    return this.#patienceLeft <= 0;
  }

  get #patienceLeft(): number {
    return this.#freeSince === undefined ? Number.POSITIVE_INFINITY : this.#freeSince + this.#patienceMs - this.#now;
  }

  /** True if another hand-off would serve no waiter either. The next waiter may have left, so this holds for up to a second. */
  get #isStillFruitless(): boolean {
    const last = this.#fruitless;
    if (!last || this.#now - last.at >= ROW_EVERY_MS) return false;
    return last.state !== undefined && last.state === this.#lock.state(this.#record);
  }

  /** After a pause longer than the grant window, or after an unexpected outcome, the call reads its waiter before it acts. @returns as `#markOrHandOff` */
  async #checkWaiter(): Promise<boolean> {
    const isOdd = this.#checkedAt === Number.NEGATIVE_INFINITY;
    return (isOdd || this.#now - this.#lookedAt > WINDOW_MS) && (await this.#readWaiter());
  }

  /** @returns as `#markOrHandOff` */
  async #readWaiter(): Promise<boolean> {
    this.#lookedAt = this.#now;
    this.#checkedAt = this.#now;
    const { dependencies, call } = this.#at;
    const row = await getWaiter(dependencies, this.#name, call);
    return this.#judge(row && !isTask(row) ? row : 'gone');
  }

  /** @returns as `#markOrHandOff`. @throws HoldfastError LeaseLost (`cancelled`) */
  async #judge(row: WaitingCall | 'gone'): Promise<boolean> {
    const isCancelled = row !== 'gone' && row.cancelledAt !== undefined;
    if (row !== 'gone' && !isCancelled) return false;
    const record = await this.#lock.read();
    this.#record = record; // what was seen before may be old, and a claim of it would be lost
    // If the request was withdrawn, the claim gives up the grant.
    if (this.#isDecided) return true;
    if (isCancelled) return refuse(this.#at, { record, ticket: this.#ticket, reason: 'cancelled' });
    // A duplicate call may have had a grant and released it, and the record may no longer remember that. With a new waiter, the request would get a second grant.
    this.#isGone = true;
    return true;
  }

  #askAboutHolders(): void {
    this.#looksBeside(this.#record, this.#lock.isNext(this.#record, this.#ticket));
  }

  async #pauseAndLook(): Promise<void> {
    const { dependencies, lock, call } = this.#at;
    const pause = lock.pauseMs(this.#sight);
    const left = Math.min(Math.ceil(this.#patienceLeft), this.#deadline - this.#now);
    await dependencies.clock.sleep(Math.max(1, Math.min(pause, left)));
    if (lock.skipsLook(this.#record, this.#ticket)) return;
    this.#lookedAt = this.#now;
    const { key } = lock.asked;
    if (this.#now - this.#checkedAt < ROW_EVERY_MS) {
      this.#record = await pollRecord(dependencies, key, call);
      this.#requestMs = meanOf(this.#requestMs, this.#now - this.#lookedAt);
      return;
    }
    this.#askAboutHolders();
    this.#checkedAt = this.#now;
    const { record, row } = await pollRecordAndWaiter(dependencies, this.#name, call);
    this.#record = record;
    if (row !== undefined) await this.#judge(row);
  }
}
