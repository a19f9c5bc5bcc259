import type { Call } from '../../aws/call.ts';
import { naming } from '../../aws/send.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { lookAtBoth, lookAtRecord, type Seen } from '../../line/look.ts';
import { meanOf } from '../../line/pace.ts';
import { isOwnOf } from '../../line/request.ts';
import { ROW_EVERY_MS, WINDOW_SECONDS } from '../../line/times.ts';
import { getTicket, isTask } from '../../line/waiters.ts';
import type { GrantRequest } from '../grant.ts';
import type { LeaseRecord } from '../record.ts';
import { endsAt, isLeased, isOver, takeoverAt } from '../rules.ts';
import { type Claimed, claim } from './claim.ts';
import { handOff } from './hand-off.ts';
import { type Joined, type Joining, join, markLate } from './join.ts';
import { leave, refuse, refuseEnded } from './leave.ts';
import { markAgain } from './marks.ts';
import { leasePatienceMs, pauseMs } from './pace.ts';
import { placeOf, readRecord } from './read-record.ts';

/** If the record was deleted, and its mark with it, a crowd may have found that at the same time, and one call of the crowd is enough. */
const CROWD_MS = 25;

/**
 * Waits in line until the call has the lease, or its patience ends (docs/protocols/queue.md#wait).
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function waitInLine(dependencies: LeaseDependencies, joining: Joining, call: Call): Promise<Claimed> {
  const joined = await join(dependencies, joining, call);
  const waiting = new Waiting(dependencies, joining, call);
  waiting.joined(joined);
  // A call that fails leaves its ticket there, and may have received the lease.
  return waiting.untilGranted().catch(naming({ requestId: joining.request.requestId, ticket: joined.ticket }));
}

class Waiting {
  readonly #dependencies: LeaseDependencies;
  readonly #request: GrantRequest;
  readonly #deadline: number;
  readonly #call: Call;
  #ticket = '';
  #arrival: number | undefined;
  #isMarked = true;
  #record: LeaseRecord;
  /** When it last looked at the record, and at its own ticket. */
  #lookedAt = 0;
  #checkedAt = 0;
  /** How long its looks take. */
  #requestMs: number | undefined;
  /** Since when the lease has looked free during the turn of another. */
  #freeSince: number | undefined;
  #patienceMs = 0;
  /** The version of a whole grant that this very call wrote for itself. */
  #ownVersion: string | undefined;
  /** Whether its ticket is gone, and another holds the lease. */
  #isGone = false;

  constructor(dependencies: LeaseDependencies, { request, deadline }: Joining, call: Call) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#deadline = deadline;
    this.#call = call;
    this.#record = { key: request.key };
  }

  joined({ ticket, arrival, isMarked, standing }: Joined): void {
    this.#ticket = ticket;
    this.#arrival = arrival;
    this.#isMarked = isMarked;
    this.#record = standing;
    this.#lookedAt = this.#now;
    this.#checkedAt = this.#now;
    this.#freeSince = undefined;
  }

  async untilGranted(): Promise<Claimed> {
    for (;;) {
      const claimed = await this.#ownGrant();
      if (claimed) return claimed;
      if (this.#isGone || this.#now >= this.#deadline)
        return leave(this.#dependencies, { request: this.#request, name: this.#name }, this.#call);
      if (await this.#handOnOrMark()) continue;
      if (await this.#checkRow()) continue;
      await this.#pauseAndLook();
    }
  }

  get #now(): number {
    return this.#dependencies.clock.now();
  }

  get #name() {
    return { key: this.#request.key, ticket: this.#ticket };
  }

  get #place() {
    return placeOf(this.#dependencies, this.#request.key);
  }

  /** @returns the lease, where the record shows that it is this request's. @throws HoldfastError LeaseLost if that has ended, or is to end */
  async #ownGrant(): Promise<Claimed | undefined> {
    const record = this.#record;
    if (!isOwnOf(record, this.#request)) return undefined;
    if (!isLeased(record) || isOver(record))
      return refuseEnded(this.#dependencies, { record, name: this.#name }, this.#call);
    const isOurs = record.version === this.#ownVersion;
    // This may come after the window, if no other call was quicker.
    if (!isOurs && record.claimTtlMs === undefined && endsAt(record) <= this.#now) return undefined;
    const asked = { asker: this.#request, seen: record, ticket: this.#ticket, isOurs };
    const claimed = await claim(this.#dependencies, asked, this.#call);
    if (!claimed) this.#checkedAt = Number.NEGATIVE_INFINITY; // the call stood still, or was withdrawn
    return claimed;
  }

  /** @returns whether what is seen now must be judged at once */
  async #handOnOrMark(): Promise<boolean> {
    const record = this.#record;
    const { clockSkewMs } = this.#dependencies;
    const isOwn = isOwnOf(record, this.#request);
    const canBeHad = !isLeased(record) || takeoverAt(record, clockSkewMs) <= this.#now;
    if (!canBeHad) {
      this.#freeSince = undefined;
      if (!this.#isMarked && !isOwn) return this.#markLate();
      if (record.waiters !== undefined || isOwn) return false;
      const { won, standing } = await markAgain(this.#dependencies, { record, ticket: this.#ticket }, this.#call);
      this.#record = standing;
      return !won;
    }
    if (isLeased(record) && isOwn && record.claimTtlMs !== undefined) return false; // the next look claims it
    if (!this.#mayHandOn()) return false;
    const ending = isLeased(record) ? 'expired' : 'free';
    const handed = { record, ending, own: this.#ticket } as const;
    const { end, moved, standing, hasGoneOn } = await handOff(this.#dependencies, handed, this.#call);
    this.#freeSince = undefined;
    this.#record = standing;
    if (moved.includes(this.#ticket) && !hasGoneOn) this.#ownVersion = standing.version;
    if (end === 'empty') this.#checkedAt = Number.NEGATIVE_INFINITY; // its own ticket is gone, or was withdrawn
    return end !== 'empty' && isOwnOf(standing, this.#request);
  }

  async #markLate(): Promise<boolean> {
    const late = { request: this.#request, ticket: this.#ticket };
    const { arrival, isMarked, standing } = await markLate(this.#dependencies, late, this.#call);
    this.#arrival = arrival;
    this.#isMarked = isMarked;
    this.#record = standing;
    return true;
  }

  #mayHandOn(): boolean {
    const isMarked = isLeased(this.#record) || this.#record.waiters !== undefined;
    if (this.#isNext && isMarked) return true;
    if (this.#freeSince === undefined) {
      const { ids } = this.#dependencies;
      this.#freeSince = this.#now;
      this.#patienceMs = isMarked ? leasePatienceMs(this.#seen, ids) : CROWD_MS * ids.random();
    }
    return this.#patienceLeft <= 0;
  }

  get #patienceLeft(): number {
    return this.#freeSince === undefined ? Number.POSITIVE_INFINITY : this.#freeSince + this.#patienceMs - this.#now;
  }

  get #seen() {
    return { record: this.#record, ticket: this.#ticket, arrival: this.#arrival };
  }

  get #isNext(): boolean {
    const { nextTicket } = this.#record;
    return nextTicket === undefined || nextTicket === this.#ticket;
  }

  /** The next one hands an expired lease on by what it saw last, because the write names that version. */
  get #isTurnByExpiry(): boolean {
    const record = this.#record;
    if (record.nextTicket !== this.#ticket || !isLeased(record) || isOwnOf(record, this.#request)) return false;
    return takeoverAt(record, this.#dependencies.clockSkewMs) <= this.#now;
  }

  /** After a standstill longer than the window, or something odd, the call looks at its ticket before it sleeps. @returns as `#handOnOrMark`, or whether it is gone */
  async #checkRow(): Promise<boolean> {
    const isOdd = this.#checkedAt === Number.NEGATIVE_INFINITY;
    if (!isOdd && this.#now - this.#lookedAt <= WINDOW_SECONDS * 1000) return false;
    this.#checkedAt = this.#now;
    const row = await getTicket(this.#dependencies, this.#name, this.#call);
    return (await this.#afterRow(row && !isTask(row) ? row : 'gone')) || this.#isGone;
  }

  /** @returns whether the record that stands must be judged. @throws HoldfastError LeaseLost (`cancelled`), LeaseHeld without a place */
  async #afterRow(row: NonNullable<Seen<LeaseRecord>['row']>): Promise<boolean> {
    const { key } = this.#request;
    const isCancelled = row !== 'gone' && row.cancelledAt !== undefined;
    if (row !== 'gone' && !isCancelled) return false;
    const record = await readRecord(this.#dependencies, key, this.#call);
    this.#record = record; // what was seen before may be old, and a claim of it would be lost
    const stands = !isLeased(record) || record.claimTtlMs !== undefined || endsAt(record) > this.#now;
    // The claim passes a grant on to the next one if the request was cancelled.
    if (stands && isOwnOf(record, this.#request)) return true;
    if (isCancelled) return refuse(this.#dependencies, { record, name: this.#name, reason: 'cancelled' }, this.#call);
    // Another call of the request may have had the lease and given it back. With a new place this one would get it a second time.
    this.#isGone = true;
    return false;
  }

  async #pauseAndLook(): Promise<void> {
    const { clock, clockSkewMs, ids } = this.#dependencies;
    const toTakeoverMs = takeoverAt(this.#record, clockSkewMs) - this.#now;
    const pause = pauseMs({ ...this.#seen, now: this.#now, toTakeoverMs, requestMs: this.#requestMs }, ids);
    await clock.sleep(Math.max(1, Math.min(pause, Math.ceil(this.#patienceLeft), this.#deadline - this.#now)));
    if (this.#isTurnByExpiry) return;
    this.#lookedAt = this.#now;
    if (this.#now - this.#checkedAt < ROW_EVERY_MS) {
      this.#record = await lookAtRecord(this.#dependencies, this.#place, this.#call);
      this.#requestMs = meanOf(this.#requestMs, this.#now - this.#lookedAt);
      return;
    }
    this.#checkedAt = this.#now;
    const looking = { place: this.#place, name: this.#name };
    const { record, row } = await lookAtBoth(this.#dependencies, looking, this.#call);
    this.#record = record;
    if (row !== undefined) await this.#afterRow(row);
  }
}
