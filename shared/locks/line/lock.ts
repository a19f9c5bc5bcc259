import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { HoldfastError } from '../../errors.ts';
import { endGrant, handOffToLine } from '../calls/release.ts';
import type { EndedGrant } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { isDue, LOOK_PATIENCE_MS } from '../executions/questions.ts';
import { hasNoEntry, isEntryAsSeen, isNotRemembered } from '../record/conditions.ts';
import { otherTermsError, passToTask, recordAnswer, renew } from '../record/continuing-grants.ts';
import { EXCLUSIVE_PATH } from '../record/identity.ts';
import { correctLineOut, markJoined, type ReplacePart, writeMark } from '../record/mark.ts';
import { notifyHolder } from '../record/notify-holder.ts';
import {
  endOfRequest,
  entryOf,
  type HolderEntry,
  isBound,
  isExclusiveGrant,
  type KeyRecord,
} from '../record/record.ts';
import { leaseHeld, leaseLost } from '../record/refusals.ts';
import { readKey, type Written } from '../record/requests.ts';
import { type GrantRequest, otherWeightError, roomFreeFrom } from '../record/room.ts';
import { sendRepairAfterWindow, sendRepairAtRoom } from './delayed-repair.ts';
import { handOff } from './hand-off.ts';
import { measureHandOff, type Notified } from './notify.ts';
import { hintsAfter, meanOf, patienceInLineMs, pauseInLineMs } from './pace.ts';
import { refusalOf } from './superseded.ts';
import type { Waiter, WaiterRequest, WaitingTask } from './waiters.ts';

// Exported from here too, because a plain acquire that needs them already loads this file: a further import would make
// the bundler add a chunk, and each bundle larger.
export { raiseFence } from '../record/continuing-grants.ts';
export { refusalOf } from './superseded.ts';

/** The grant of a request, as the record shows it. Instants are epoch milliseconds. */
export interface Grant {
  /** Each write on the grant sets a new version. */
  version: string;
  /** The waiter that received the grant from the line. */
  ticket?: string | undefined;
  /** The ttl that a call in line asked for, until it claims the grant. */
  claimTtlMs?: number | undefined;
  ttlMs?: number | undefined;
  expiresAt: number;
  previous?: EndedGrant | undefined;
}

/** The outcome of a write on a grant. `record` is the current record, whether the write was won or lost. */
export interface RecordUpdated {
  won: boolean;
  record: KeyRecord;
}

export interface MarkUpdated extends RecordUpdated {
  arrivals: number;
  /** How many of these waiters have left, if the record has that hint. */
  lineOut?: number | undefined;
}

export interface LineHandOffOutcome {
  served: readonly string[];
  /**
   * `served`: a waiter has received a grant. `empty`: no waiter is left, and the mark is gone. `waits`: the next waiter
   * cannot be served yet. `left`: this call has stopped early.
   */
  end: 'served' | 'empty' | 'waits' | 'left';
  record: KeyRecord;
  /** The served tasks that may not have been notified. */
  unnotified?: ReadonlySet<string>;
  ownVersion?: string | undefined;
}

export interface CallState {
  record: KeyRecord;
  ticket: string;
  /** How long requests of this call take. Undefined before the first measured request. */
  requestMs: number | undefined;
}

const markedBy = (won: boolean, record: KeyRecord): MarkUpdated => ({
  won,
  record,
  arrivals: record.arrivals ?? Number.NaN,
  lineOut: record.lineOut,
});

/**
 * A key as one call of one request sees it, while the request waits or after it received its grant from the line. Each
 * method that sends a request throws Throttled, Unavailable or OutcomeUnknown.
 */
export class Lock {
  readonly request: WaiterRequest;
  readonly #dependencies: LeaseDependencies;
  readonly #grantRequest: GrantRequest;
  readonly #call: Call;
  /** How long this call leaves the question about bound holders to the next waiter. */
  #lookPatienceMs: number | undefined;
  /** How many holders the key usually has at a time: a running mean of what this call has read. */
  #usualHolders: number | undefined;
  /** The number of this call's arrival, if it is known. */
  #arrival: number | undefined;

  constructor(dependencies: LeaseDependencies, request: GrantRequest, call: Call) {
    const { key, holder, ttlMs, requestId, principal, data, limit, weight } = request;
    const { execution, target, graceMs = 0, bound, replace } = request;
    const permit = isExclusiveGrant(request) ? undefined : { limit, weight };
    const terms = { data, execution, target, graceSeconds: graceMs / 1000, bound, permit, replace };
    this.request = { key, holder, ttlSeconds: ttlMs / 1000, requestId, principal, ...terms };
    this.#dependencies = dependencies;
    this.#grantRequest = request;
    this.#call = call;
  }

  get isExclusive(): boolean {
    return isExclusiveGrant(this.#grantRequest);
  }

  /** Whether a row of the waiters table belongs to this request, with the same weight and limit. */
  isOwnRow({ requestId, holder, principal, permit }: Waiter): boolean {
    const { request } = this;
    const isOfRequest = requestId === request.requestId && holder === request.holder && principal === request.principal;
    return isOfRequest && permit?.limit === request.permit?.limit && permit?.weight === request.permit?.weight;
  }

  /** A consistent read. */
  read(): Promise<KeyRecord> {
    return readKey(this.#dependencies, this.#grantRequest.key, this.#call);
  }

  /**
   * The grant of the request, even if it has expired, or how the grant ended. A grant that is ending counts as ended:
   * `broken` if an operator broke it, `superseded` if a newer request has asked its holder to stop.
   */
  ownGrant(record: KeyRecord): Grant | 'released' | 'broken' | 'superseded' | undefined {
    const entry = this.#entry(record);
    if (!entry || entry.isEnding) return endOfRequest(record, this.#grantRequest.name);
    const { version, ticket, claimTtlMs, ttlMs, expiresAt, previous } = entry;
    return { version, ticket, claimTtlMs, ttlMs, expiresAt, previous };
  }

  #entry(record: KeyRecord): HolderEntry | undefined {
    return entryOf(record, this.#grantRequest.name);
  }

  /**
   * When the key has room for the request: a time up to now if it has room already, infinite if the time is not known.
   * Waiters before it do not count.
   */
  roomAt(record: KeyRecord): number {
    return roomFreeFrom(record, this.#grantRequest, this.#dependencies.clockSkewMs);
  }

  isMarked({ mark }: KeyRecord): boolean {
    return mark !== undefined;
  }

  /**
   * Raises the mark for a waiter, unless the request has or had a grant.
   * @param how `isCounted`: the arrivals already count the waiter. `mustBeMarked`: only if the key has a mark already.
   * `isAsleep`: the caller has only a place
   */
  async raiseMark(
    ticket: string,
    { isCounted = false, mustBeMarked, isAsleep }: { isCounted?: boolean; mustBeMarked?: boolean; isAsleep?: boolean },
  ): Promise<MarkUpdated> {
    const { key, name } = this.#grantRequest;
    const joining = { key, name, ticket, isCounted, mustBeMarked, isAsleep };
    const { won, record } = await this.#replacing(ticket, (replacing) =>
      markJoined(this.#dependencies, { ...joining, replacing }, this.#call),
    );
    if (won) this.#arrival = isCounted ? undefined : record.arrivals;
    return markedBy(won, record);
  }

  /** Raises the mark by `write`. If the request replaces older ones, the same write makes it the latest. */
  async #replacing(ticket: string, write: (how?: ReplacePart) => Promise<Written>): Promise<Written> {
    const { replace } = this.#grantRequest;
    if (replace === undefined) return write();
    const { markReplacing } = await import('./replace.ts');
    return markReplacing(this.#dependencies, { newcomer: { ...this.#grantRequest, ticket }, write }, this.#call);
  }

  /** Puts back a mark that a third-party client or TTL has removed. */
  async restoreMark({ key }: KeyRecord, ticket: string): Promise<MarkUpdated> {
    const joining = { key, name: this.#grantRequest.name, ticket, restoresMark: true };
    const { won, record } = await markJoined(this.#dependencies, joining, this.#call);
    return markedBy(won, record);
  }

  /** Whether the waiter is next, by the hint. The next waiter hands off at once, all others after their patience. */
  isNext({ nextTicket }: KeyRecord, ticket: string): boolean {
    return nextTicket === ticket;
  }

  /** Serves the next waiters. @param ownTicket the ticket of the call that hands off, if it is in line */
  async handOff(record: KeyRecord, ownTicket?: string): Promise<LineHandOffOutcome> {
    const unnotified = new Set<string>();
    // The call is alive, so an exclusive grant to itself has the whole ttl at once, and does not need a claim.
    const ticketWithoutClaim = this.isExclusive ? ownTicket : undefined;
    const handed = await handOff(this.#dependencies, { record, unnotified, ownTicket: ticketWithoutClaim }, this.#call);
    const { end, served, record: current, ownVersion } = handed;
    return {
      end: served.length > 0 ? 'served' : end,
      served: served,
      unnotified,
      record: current,
      ownVersion,
    };
  }

  /**
   * Writes a new version of the request's grant, if the grant still has the version that was seen. `claim`: makes the
   * grant a full grant. `answer`: keeps the expiry; the new version prevents a hand-off by another call. `renew`:
   * starts the whole ttl again.
   */
  async write(record: KeyRecord, how: 'claim' | 'answer' | 'renew'): Promise<RecordUpdated> {
    const entry = this.#entry(record);
    if (!entry) return { won: false, record };
    const { key, ttlMs } = this.#grantRequest;
    const claim = how === 'claim' ? { ttlMs, hints: hintsAfter(record) } : undefined;
    const { won, record: current } =
      how === 'answer'
        ? await recordAnswer(this.#dependencies, { key, entry }, this.#call)
        : await renew(this.#dependencies, { key, entry, claim }, this.#call);
    return { won, record: current };
  }

  /** Ends the grant of the request unused, and serves the next waiter. */
  async giveUp(record: KeyRecord): Promise<void> {
    const entry = this.#entry(record);
    if (!entry) return;
    const giving = { key: this.#grantRequest.key, proof: entry };
    const { record: current, hasServedLine } = await endGrant(this.#dependencies, giving, this.#call);
    // Hand off even after a lost write: an earlier try whose response was lost may have ended the grant.
    if (!hasServedLine) await handOffToLine(this.#dependencies, { record: current }, this.#call);
  }

  /** How long the call pauses before its next poll, in milliseconds. No promise depends on it. */
  pauseMs(sight: CallState): number {
    const { clock, ids } = this.#dependencies;
    const now = clock.now();
    const toRoomMs = this.roomAt(sight.record) - now;
    this.#usualHolders = meanOf(this.#usualHolders, sight.record.entries.length);
    const { weight } = this.#grantRequest;
    return pauseInLineMs({ ...sight, arrival: this.#arrival, holders: this.#usualHolders, weight, now, toRoomMs }, ids);
  }

  /** How long a waiter that is not next leaves a free key to the waiters before it, in milliseconds. */
  patienceMs(sight: CallState): number {
    return patienceInLineMs({ ...sight, arrival: this.#arrival }, this.#dependencies.ids);
  }

  errorOfHeld(record: KeyRecord): HoldfastError {
    const { clock, clockSkewMs } = this.#dependencies;
    return leaseHeld(record, { request: this.#grantRequest, now: clock.now(), clockSkewMs });
  }

  /** The error for a request whose grant has ended, or that was superseded. @param record names the newer request */
  errorOfEnded(reason: 'released' | 'broken' | 'superseded' | 'unknown', record: KeyRecord): HoldfastError {
    if (reason === 'superseded') return refusalOf(record, this.#grantRequest.name) ?? this.errorOfHeld(record);
    return leaseLost(this.#grantRequest.key, reason);
  }

  /** The tickets of waiters that have their grants. Their rows may still be there, but lists leave them out. */
  ticketsOfHolders({ entries }: KeyRecord): ReadonlySet<string | undefined> {
    return new Set(entries.map(({ ticket }) => ticket));
  }

  /**
   * Whether the call may hand off an expired exclusive grant without another poll. The write requires the fence of the
   * record that the call has, so a grant that was made since is safe.
   */
  skipsPoll(record: KeyRecord, ticket: string): boolean {
    const [holder] = record.entries;
    if (!this.isNext(record, ticket) || holder?.path !== EXCLUSIVE_PATH || this.#entry(record)) return false;
    return this.roomAt(record) <= this.#dependencies.clock.now();
  }

  /**
   * Asks about the executions of bound holders, unless a call has asked in the last 30 seconds.
   * @param isNext false for a call that leaves the question to the next waiter for up to 15 seconds
   */
  async lookAtHolders(record: KeyRecord, isNext: boolean): Promise<void> {
    if (!record.entries.some(isBound)) return;
    const { clock, ids } = this.#dependencies;
    this.#lookPatienceMs ??= LOOK_PATIENCE_MS * ids.random();
    if (!isDue(record, clock.now() - (isNext ? 0 : this.#lookPatienceMs))) return;
    const { lookAtGrants } = await import('../executions/look.ts');
    await lookAtGrants(this.#dependencies, { record }, this.#call);
  }

  /** How many waiters have arrived, and how many are in line, by the record's hints. Undefined without the mark. */
  countsByHints({ mark, arrivals = 0, lineOut = 0 }: KeyRecord): { arrivals: number; inLine: number } | undefined {
    return mark && { arrivals, inLine: arrivals - lineOut };
  }

  correctLineOut(arrivals: number, inLine: number): Promise<unknown> {
    return correctLineOut(this.#dependencies, { key: this.#grantRequest.key, arrivals, inLine }, this.#call);
  }

  /** The error for a request whose grant has other terms than this call asks for. */
  otherTerms(record: KeyRecord): HoldfastError | undefined {
    const own = this.#entry(record);
    return own && (otherWeightError(this.#grantRequest, own) ?? otherTermsError(own, this.#grantRequest));
  }

  measureHandOff(grant: Grant): void {
    measureHandOff(grant, this.#dependencies.clock.now(), this.#call);
  }

  /**
   * A text that changes if a grant ends, expires or is made, or if a waiter joins. As long as it stays, another
   * hand-off would find the same.
   */
  fingerprintOf({ used, mark, fence, entries }: KeyRecord): string {
    const cut = this.#dependencies.clock.now() - this.#dependencies.clockSkewMs;
    const expired = entries.filter(({ expiresAt }) => expiresAt < cut).length;
    return JSON.stringify([used, mark, fence, expired]);
  }

  /**
   * Raises the mark for a task, unless its request has or had a grant.
   * @param expired the current record, if it shows an expired grant of the request: the mark can be raised
   * @returns `isRuined`: a third-party client has overwritten the grant, so the mark can never be raised
   */
  async raiseMarkForTask(ticket: string, expired?: KeyRecord): Promise<MarkUpdated & { isRuined: boolean }> {
    const { key, name } = this.#grantRequest;
    const before = expired && this.#entry(expired);
    const mayRaise = before ? isEntryAsSeen(before) : all(hasNoEntry(name), isNotRemembered(name));
    const { won, record } = await this.#replacing(ticket, (replacing) => {
      const condition = replacing ? all(mayRaise, replacing.condition) : mayRaise;
      const arrival = {
        key,
        condition,
        ticket,
        left: Number(replacing?.replaces ?? false),
        addedParts: replacing?.addedParts,
      };
      return writeMark(this.#dependencies, arrival, this.#call);
    });
    const isRuined = !won && before === undefined && this.ownGrant(record) === undefined;
    return { ...markedBy(won, record), isRuined };
  }

  async passTo(record: KeyRecord, waiter: WaitingTask): Promise<RecordUpdated> {
    const entry = this.#entry(record);
    if (!entry) return { won: false, record };
    const { key } = this.#grantRequest;
    const { won, record: current } = await passToTask(this.#dependencies, { key, entry, waiter }, this.#call);
    return { won, record: current };
  }

  /**
   * Notifies the task of the grant that this call has just passed to it.
   * @param message `repeated`: whether the request had the grant before. `before`: the record before this call
   */
  async notify(
    record: KeyRecord,
    { task: waiter, repeated, before }: { task: WaitingTask; repeated: boolean; before: KeyRecord },
  ): Promise<Notified> {
    const entry = this.#entry(record);
    if (!entry) return { outcome: 'overtaken', record };
    const message = { waiter, record, entry, repeated, isWrittenHere: true, before: this.#entry(before) };
    return notifyHolder(this.#dependencies, message, this.#call);
  }

  /**
   * Ends a grant that reached no caller, because this call has passed it to a task that is gone. Deletes the row of the
   * task, and serves the next waiter.
   */
  async endNeverNotified(record: KeyRecord): Promise<void> {
    const entry = this.#entry(record);
    const toEnd = entry ? [{ entry, how: 'neverNotified' } as const] : [];
    const servedBefore = entry?.ticket === undefined ? [] : [entry.ticket];
    await handOff(this.#dependencies, { record, toEnd, servedBefore }, this.#call);
  }

  /** Sends a delayed repair for a task that has just parked, unless the next waiter has sent one. */
  async sendDelayedRepair(record: KeyRecord, ticket: string): Promise<void> {
    // A caller that has not claimed its grant may have exited.
    if (record.entries.some(({ claimTtlMs }) => claimTtlMs !== undefined))
      return sendRepairAfterWindow(this.#dependencies, this.request.key, this.#call);
    if (!this.isNext(record, ticket)) return;
    await sendRepairAtRoom(this.#dependencies, { record, request: this.#grantRequest }, this.#call);
  }
}

export interface LockCall {
  dependencies: LeaseDependencies;
  lock: Lock;
  call: Call;
  /** Whether the caller has slept, and so has a place beside its row. */
  hasPlace?: boolean;
}
