import type { Call } from '../../aws/call.ts';
import { naming } from '../../aws/send.ts';
import { refuseWhereLong, takePlace } from '../../line/join.ts';
import { lookAtBoth, lookAtRecord } from '../../line/look.ts';
import { meanOf } from '../../line/pace.ts';
import { ROW_EVERY_MS, WINDOW_MS } from '../../line/times.ts';
import { type CallTicket, deleteTicket, getTicket, isTask, lineOf } from '../../line/waiters.ts';
import { isCancelled } from '../../line/waiting-calls.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { placeOf, readPool } from '../read.ts';
import { ending, type PoolEntry, type PoolRecord, parsePool } from '../record.ts';
import { type Granted, MAX_MEETINGS, type PermitRequest } from '../request.ts';
import { roomAt, toEnd } from '../room.ts';
import { permitLost } from '../views.ts';
import { repeatFromLine } from './claim.ts';
import { advance } from './hand-off.ts';
import { refuseInLine } from './leave.ts';
import { markJoined, ownOf } from './marks.ts';
import { type JoinedPool, poolPatienceMs, poolPauseMs } from './pace.ts';

export interface Joining {
  request: PermitRequest;
  /** The place of an earlier call of the request, if it asks again. */
  ticket?: string | undefined;
  /** When it stops waiting, in epoch milliseconds. */
  deadline: number;
  /** That of the last grant, as its try has shown it. */
  fence: number | undefined;
}

/**
 * Waits in line until the call has a permit, or its patience ends (docs/protocols/pools.md#wait).
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function waitInPool(dependencies: PoolDependencies, joining: Joining, call: Call): Promise<Granted> {
  const waiting = new Waiting(dependencies, joining, call);
  const ticket = await waiting.join(joining);
  // A call that fails leaves its ticket there, and may have been granted a permit.
  return waiting.untilGranted().catch(naming({ requestId: joining.request.requestId, ticket }));
}

class Waiting {
  readonly #dependencies: PoolDependencies;
  readonly #request: PermitRequest;
  readonly #deadline: number;
  readonly #call: Call;
  #ticket = '';
  #joined: JoinedPool = { turn: undefined, fence: undefined, at: 0 };
  /** How long its looks take. */
  #requestMs: number | undefined;
  #record: PoolRecord;
  /** When it last looked at the record, and at its own ticket. */
  #lookedAt = 0;
  #checkedAt = 0;
  /** Since when there has been room that no call gave to the line, and how long this call waits for others to do so. */
  #roomSince: number | undefined;
  #patienceMs = 0;
  /** Whether its ticket is gone, and no permit is its own. */
  #isGone = false;

  constructor(dependencies: PoolDependencies, { request, deadline }: Joining, call: Call) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#deadline = deadline;
    this.#call = call;
    this.#record = parsePool(request.key);
  }

  /** The ticket first, then the mark. @returns its place */
  async join({ ticket: before, fence }: Joining): Promise<string> {
    const { key, holder, ttlMs, requestId, principal, data, limit, weight, name } = this.#request;
    const { execution, target, graceMs = 0 } = this.#request;
    const terms = { data, execution, target, graceSeconds: graceMs / 1000, permit: { limit, weight } };
    const asked = { key: lineOf(key), holder, ttlSeconds: ttlMs / 1000, requestId, principal, ...terms };
    const placing = { asked, ticket: before, deadline: this.#deadline };
    const { ticket, again } = await takePlace(this.#dependencies, placing, this.#call);
    const joining = { key, name, ticket, fence: again ? undefined : fence };
    const { won, standing } = await markJoined(this.#dependencies, joining, this.#call);
    this.#ticket = ticket;
    this.#record = standing;
    this.#lookedAt = this.#now;
    this.#checkedAt = this.#now;
    if (!won) return ticket;
    this.#joined = { turn: again ? undefined : standing.turn, fence: standing.fence, at: this.#now };
    const arrivals = Number(standing.waiters?.N);
    // A call that has its place already stays in line.
    if (!again) await refuseWhereLong(this.#dependencies, { ...this.#name, arrivals }, this.#call);
    return ticket;
  }

  async untilGranted(): Promise<Granted> {
    for (;;) {
      const granted = await this.#ownGrant();
      if (granted) return granted;
      if (this.#isGone || this.#now >= this.#deadline) return this.#leave();
      if (await this.#stoodStill()) continue;
      if (await this.#markOrAdvance()) continue;
      await this.#pauseAndLook();
    }
  }

  get #now(): number {
    return this.#dependencies.clock.now();
  }

  get #name() {
    return { key: lineOf(this.#request.key), ticket: this.#ticket };
  }

  get #isNext(): boolean {
    return this.#record.nextTicket === this.#ticket;
  }

  get #sight() {
    return { record: this.#record, ticket: this.#ticket, joined: this.#joined };
  }

  get #own(): PoolEntry | undefined {
    return ownOf(this.#record, this.#request.name, this.#now);
  }

  /** Whether it would fit, if it were the first in line. */
  get #hasRoom(): boolean {
    const { clockSkewMs } = this.#dependencies;
    return toEnd(this.#record, this.#request, { now: this.#now, clockSkewMs }) !== undefined;
  }

  /** @throws HoldfastError LeaseLost if its permit has ended, or it was withdrawn */
  async #ownGrant(): Promise<Granted | undefined> {
    const { key, name } = this.#request;
    for (let tries = 0, own = this.#own; own && tries < MAX_MEETINGS; tries++, own = this.#own) {
      const claiming = { request: this.#request, standing: this.#record, own, ticket: this.#ticket };
      const granted = await repeatFromLine(this.#dependencies, claiming, this.#call);
      if (granted) return granted;
      this.#record = await readPool(this.#dependencies, key, this.#call);
    }
    const how = ending(this.#record, name);
    if (!how) return undefined;
    const isWithdrawn = await isCancelled(this.#dependencies, this.#name, this.#call);
    await deleteTicket(this.#dependencies, this.#name, this.#call);
    throw permitLost(key, isWithdrawn ? 'cancelled' : how);
  }

  /** After a standstill longer than the window, the ticket comes first. @returns whether what is seen now must be judged at once */
  async #stoodStill(): Promise<boolean> {
    if (this.#now - this.#lookedAt <= WINDOW_MS) return false;
    this.#lookedAt = this.#now;
    return this.#checkRow();
  }

  /** @returns whether what is seen now must be judged at once */
  async #markOrAdvance(): Promise<boolean> {
    const { key, name } = this.#request;
    if (this.#record.waiters === undefined) {
      // The line was seen empty, so perhaps its own place is gone.
      if (await this.#checkRow()) return true;
      const joining = { key, name, ticket: this.#ticket, isBack: true };
      this.#record = (await markJoined(this.#dependencies, joining, this.#call)).standing;
      // An entry that another client has ruined keeps the mark off for as long as it stands.
      return this.#record.waiters !== undefined || this.#own !== undefined;
    }
    if (!this.#hasRoom) {
      this.#roomSince = undefined;
      return false;
    }
    if (!this.#isNext && !this.#mayAdvance()) return false;
    this.#roomSince = undefined;
    await this.#advance();
    return this.#own !== undefined;
  }

  /** The next in line advances at once, and the others after their patience. */
  #mayAdvance(): boolean {
    if (this.#roomSince === undefined) {
      this.#roomSince = this.#now;
      this.#patienceMs = poolPatienceMs(this.#sight, this.#dependencies.ids);
    }
    return this.#now - this.#roomSince >= this.#patienceMs;
  }

  async #advance(): Promise<void> {
    const { standing } = await advance(this.#dependencies, { record: this.#record }, this.#call);
    this.#record = standing;
  }

  async #pauseAndLook(): Promise<void> {
    const { clock, ids, clockSkewMs } = this.#dependencies;
    const { key } = this.#request;
    const toRoomMs = roomAt(this.#record, this.#request, clockSkewMs) - this.#now;
    const pause = poolPauseMs({ ...this.#sight, now: this.#now, toRoomMs, requestMs: this.#requestMs }, ids);
    await clock.sleep(Math.max(1, Math.min(pause, this.#deadline - this.#now)));
    const place = placeOf(this.#dependencies, key);
    this.#lookedAt = this.#now;
    if (this.#now - this.#checkedAt < ROW_EVERY_MS) {
      this.#record = await lookAtRecord(this.#dependencies, place, this.#call);
      this.#requestMs = meanOf(this.#requestMs, this.#now - this.#lookedAt);
      return;
    }
    this.#checkedAt = this.#now;
    const { record, row } = await lookAtBoth(this.#dependencies, { place, name: this.#name }, this.#call);
    this.#record = record;
    if (row !== undefined) await this.#afterRow(row);
  }

  /** @returns whether the record that stands must be judged */
  async #checkRow(): Promise<boolean> {
    this.#checkedAt = this.#now;
    const row = await getTicket(this.#dependencies, this.#name, this.#call);
    return this.#afterRow(row && !isTask(row) ? row : 'gone');
  }

  /** @returns whether the record that stands must be judged. @throws HoldfastError LeaseLost (`cancelled`) */
  async #afterRow(row: CallTicket | 'gone'): Promise<boolean> {
    const { key, name } = this.#request;
    const isWithdrawn = row !== 'gone' && row.cancelledAt !== undefined;
    if (row !== 'gone' && !isWithdrawn) return false;
    this.#record = await readPool(this.#dependencies, key, this.#call);
    // What it was granted ends by its claim, also where it was withdrawn.
    if (this.#own) return true;
    if (isWithdrawn) {
      await deleteTicket(this.#dependencies, this.#name, this.#call);
      throw permitLost(key, 'cancelled');
    }
    // Another call of the request may have had a permit and given it back, longer ago than the record remembers. With a new place this one would
    // have it a second time.
    this.#isGone = ending(this.#record, name) === undefined;
    return true;
  }

  /** Its place stays for a while, for the call that asks again. @throws HoldfastError LeaseHeld, with the place, if it has one; LeaseLost */
  async #leave(): Promise<Granted> {
    const { key } = this.#request;
    const row = await getTicket(this.#dependencies, this.#name, this.#call);
    await this.#afterRow(row && !isTask(row) ? row : 'gone');
    this.#record = await readPool(this.#dependencies, key, this.#call);
    // A call that leaves must give the room on, or it would take the turn of those behind it along.
    if (this.#record.waiters !== undefined && !this.#own) await this.#advance();
    const granted = await this.#ownGrant();
    if (granted) return granted;
    const leaving = { request: this.#request, record: this.#record, ticket: row && this.#ticket };
    return refuseInLine(this.#dependencies, leaving, this.#call);
  }
}
