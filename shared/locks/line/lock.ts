import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { HoldfastError } from '../../errors.ts';
import { endGrant, handOffToLine } from '../calls/release.ts';
import type { EndedGrant } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { isDue, LOOK_PATIENCE_MS } from '../executions/questions.ts';
import { hasNoEntry, isNotRemembered, isStill } from '../record/conditions.ts';
import { ALONE } from '../record/identity.ts';
import { correctLineOut, mark, markJoined, type Replacing } from '../record/mark.ts';
import { ending, entryOf, type HolderEntry, isAloneIn, isBound, type KeyRecord } from '../record/record.ts';
import { leaseHeld, leaseLost } from '../record/refusals.ts';
import { readKey, type Written as WrittenKey } from '../record/requests.ts';
import { type GrantRequest, otherWeight, roomAt } from '../record/room.ts';
import { notifyHolder, otherTerms, passToTask, recordAnswer, renew } from '../record/versions.ts';
import { sendRepairAfterWindow, sendRepairAtRoom } from './delayed-repair.ts';
import { handOff } from './hand-off.ts';
import { measureHandOff, type Notified } from './notify.ts';
import { hintsAfter, meanOf, patienceInLineMs, pauseInLineMs } from './pace.ts';
import { refusalOf } from './superseded.ts';
import type { Waiter, WaiterRequest, WaitingTask } from './waiters.ts';

// A plain acquire that needs this loads it from here: a chunk of its own would make each bundle larger.
export { raiseFence } from '../record/versions.ts';
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
  /** The holder before, if the record names that holder. */
  previous?: EndedGrant | undefined;
}

/** The outcome of a write on a grant. `record` is the current record, whether the write was won or lost. */
export interface GrantWritten {
  won: boolean;
  record: KeyRecord;
}

/** The outcome of a write that raises the mark. */
export interface MarkWritten extends GrantWritten {
  /** The number of waiters that have joined so far, by the mark. `lineOut`: how many of these waiters have left, if the record has that hint. */
  arrivals: number;
  lineOut?: number | undefined;
}

export interface LineHandedOff {
  /** The waiters that received grants. */
  served: readonly string[];
  /**
   * `served`: a waiter has received a grant. `empty`: no waiter is left, and the mark is gone. `waits`: the next waiter cannot be served yet.
   * `left`: this call has stopped early, and waiters are left.
   */
  end: 'served' | 'empty' | 'waits' | 'left';
  record: KeyRecord;
  /** The served tasks that may not have been notified. */
  unnotified?: ReadonlySet<string>;
  /** The version of a full grant that this call has written for itself. */
  ownVersion?: string | undefined;
}

/** What a call in line sees when it looks. */
export interface Sight {
  record: KeyRecord;
  ticket: string;
  /** How long requests of this call take. Undefined before the first measured request. */
  requestMs: number | undefined;
}

/** A write of the mark, as the line sees it. */
const markedBy = (won: boolean, record: KeyRecord): MarkWritten => ({
  won,
  record,
  arrivals: record.arrivals ?? Number.NaN,
  lineOut: record.lineOut,
});

/** A key for one call of one request that waits, or whose grant came from the line. Each method that sends a request throws Throttled, Unavailable or OutcomeUnknown. */
export class Lock {
  readonly asked: WaiterRequest;
  readonly #dependencies: LeaseDependencies;
  readonly #request: GrantRequest;
  readonly #call: Call;
  /** How long this call leaves the question about bound holders to the next waiter. */
  #patienceMs: number | undefined;
  /** How many holders this call has seen at a time. */
  #holders: number | undefined;
  /** The number of arrivals when this call joined, including this call. Undefined if the number is not known. */
  #arrival: number | undefined;

  constructor(dependencies: LeaseDependencies, request: GrantRequest, call: Call) {
    const { key, holder, ttlMs, requestId, principal, data, limit, weight } = request;
    const { execution, target, graceMs = 0, bound, replace } = request;
    const permit = isAloneIn(request) ? undefined : { limit, weight };
    const terms = { data, execution, target, graceSeconds: graceMs / 1000, bound, permit, replace };
    this.asked = { key: key, holder, ttlSeconds: ttlMs / 1000, requestId, principal, ...terms };
    this.#dependencies = dependencies;
    this.#request = request;
    this.#call = call;
  }

  /** Whether the request wants the key alone. */
  get isAlone(): boolean {
    return isAloneIn(this.#request);
  }

  /** Whether a row of the waiters table is of this request, and asks for the same. */
  isOwnRow({ requestId, holder, principal, permit }: Waiter): boolean {
    const { asked } = this;
    const isOfIt = requestId === asked.requestId && holder === asked.holder && principal === asked.principal;
    return isOfIt && permit?.limit === asked.permit?.limit && permit?.weight === asked.permit?.weight;
  }

  /** A consistent read. */
  read(): Promise<KeyRecord> {
    return readKey(this.#dependencies, this.#request.key, this.#call);
  }

  /**
   * The grant of the request, even if it has expired, or how the grant ended. A grant that an operator broke and that is ending counts as `broken`, and one
   * that a newer request has asked to stop as `superseded`, like a request that a newer one has replaced.
   */
  own(record: KeyRecord): Grant | 'released' | 'broken' | 'superseded' | undefined {
    const entry = this.#entry(record);
    if (!entry || entry.isEnding) return ending(record, this.#request.name);
    const { version, ticket, claimTtlMs, ttlMs, expiresAt, previous } = entry;
    return { version, ticket, claimTtlMs, ttlMs, expiresAt, previous };
  }

  #entry(record: KeyRecord): HolderEntry | undefined {
    return entryOf(record, this.#request.name);
  }

  /** When the request could receive a grant, if its waiter were next. In the past if it could now, infinite if the time is not known. */
  freeAt(record: KeyRecord): number {
    return roomAt(record, this.#request, this.#dependencies.clockSkewMs);
  }

  isMarked({ mark }: KeyRecord): boolean {
    return mark !== undefined;
  }

  /**
   * Raises the mark for a waiter, unless the request has or had a grant.
   * @param how `again`: the mark has already counted the waiter
   * @param isMarked raises the mark only if the key has one already
   */
  async mark(
    ticket: string,
    how: 'first' | 'again',
    { isMarked, isAsleep }: { isMarked?: boolean; isAsleep?: boolean } = {},
  ): Promise<MarkWritten> {
    const { key, name } = this.#request;
    const isAgain = how === 'again';
    const joining = { key, name, ticket, isAgain, isMarked, isAsleep };
    const { won, record } = await this.#replacing(ticket, (replacing) =>
      markJoined(this.#dependencies, { ...joining, replacing }, this.#call),
    );
    if (won) this.#arrival = isAgain ? undefined : record.arrivals;
    return markedBy(won, record);
  }

  /** Raises the mark. If the request replaces older ones, it becomes the latest by the same write. */
  async #replacing(ticket: string, write: (how?: Replacing) => Promise<WrittenKey>): Promise<WrittenKey> {
    const { replace } = this.#request;
    if (replace === undefined) return write();
    const { markReplacing } = await import('./replace.ts');
    return markReplacing(this.#dependencies, { newcomer: { ...this.#request, ticket }, write }, this.#call);
  }

  /** Puts back a mark that a third-party client or TTL has removed. */
  async markBack({ key }: KeyRecord, ticket: string): Promise<MarkWritten> {
    const joining = { key, name: this.#request.name, ticket, isBack: true };
    const { won, record } = await markJoined(this.#dependencies, joining, this.#call);
    return markedBy(won, record);
  }

  /** True if the waiter may hand off at once. All other waiters hand off after their patience. */
  isNext({ nextTicket }: KeyRecord, ticket: string): boolean {
    return nextTicket === ticket;
  }

  /** Serves the next waiters. @param own the waiter of the call that hands off */
  async handOff(record: KeyRecord, own?: string): Promise<LineHandedOff> {
    const unnotified = new Set<string>();
    // The call is alive, so its exclusive grant is a full one at once.
    const alive = this.isAlone ? own : undefined;
    const handed = await handOff(this.#dependencies, { record, unnotified, own: alive }, this.#call);
    const { end, granted, record: current, ownVersion } = handed;
    return { end: granted.length > 0 ? 'served' : end, served: granted, unnotified, record: current, ownVersion };
  }

  /**
   * Writes a new version of the request's grant, if the grant still has the version that was seen. `claim`: makes the grant a full grant. `answer`: keeps
   * the expiry; the new version prevents a hand-off by another call. `renew`: starts the whole ttl again.
   */
  async write(record: KeyRecord, how: 'claim' | 'answer' | 'renew'): Promise<GrantWritten> {
    const entry = this.#entry(record);
    if (!entry) return { won: false, record };
    const { key, ttlMs } = this.#request;
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
    const giving = { key: this.#request.key, proof: entry };
    const { record: current, isHandedOff } = await endGrant(this.#dependencies, giving, this.#call);
    // The hand-off also follows a lost write: an earlier try whose response was lost may have ended the grant.
    if (!isHandedOff) await handOffToLine(this.#dependencies, { record: current }, this.#call);
  }

  /** How long the call pauses before it looks again, in milliseconds. No promise depends on it, only time. */
  pauseMs(sight: Sight): number {
    const { clock, ids } = this.#dependencies;
    const now = clock.now();
    const toRoomMs = this.freeAt(sight.record) - now;
    this.#holders = meanOf(this.#holders, sight.record.entries.length);
    const { weight } = this.#request;
    return pauseInLineMs({ ...sight, arrival: this.#arrival, holders: this.#holders, weight, now, toRoomMs }, ids);
  }

  /** How long a waiter that is not next leaves a free key to the waiters before it, in milliseconds. */
  patienceMs(sight: Sight): number {
    return patienceInLineMs({ ...sight, arrival: this.#arrival }, this.#dependencies.ids);
  }

  held(record: KeyRecord): HoldfastError {
    const { clock, clockSkewMs } = this.#dependencies;
    return leaseHeld(record, { asked: this.#request, now: clock.now(), clockSkewMs });
  }

  /** The error for a request whose grant has ended, or that was superseded. @param record shows how */
  lost(reason: 'released' | 'broken' | 'superseded' | 'unknown', record: KeyRecord): HoldfastError {
    if (reason === 'superseded') return refusalOf(record, this.#request.name) ?? this.held(record);
    return leaseLost(this.#request.key, reason);
  }

  /** The waiters that have their grants already. Lists and positions leave them out. */
  granted({ entries }: KeyRecord): ReadonlySet<string | undefined> {
    return new Set(entries.map(({ ticket }) => ticket));
  }

  /** The next waiter hands off the expired grant of an exclusive holder without another look, because the write requires the fence that the waiter saw last. */
  skipsPoll(record: KeyRecord, ticket: string): boolean {
    const [holder] = record.entries;
    if (!this.isNext(record, ticket) || holder?.path !== ALONE || this.#entry(record)) return false;
    return this.freeAt(record) <= this.#dependencies.clock.now();
  }

  /**
   * Asks about the executions of bound holders, unless a call has asked in the last 30 seconds. A wait does not wait for the answer.
   * @param isNext false for a call that leaves the question to the next waiter for up to 15 seconds
   */
  async lookAtHolders(record: KeyRecord, isNext: boolean): Promise<void> {
    if (!record.entries.some(isBound)) return;
    const { clock, ids } = this.#dependencies;
    this.#patienceMs ??= LOOK_PATIENCE_MS * ids.random();
    if (!isDue(record, clock.now() - (isNext ? 0 : this.#patienceMs))) return;
    const { lookAtGrants } = await import('../executions/look.ts');
    await lookAtGrants(this.#dependencies, { record }, this.#call);
  }

  /** By the hints of the record: how many have arrived, and how many of them are still in line. Undefined without the mark. */
  counted({ mark, arrivals = 0, lineOut = 0 }: KeyRecord): { arrivals: number; inLine: number } | undefined {
    return mark && { arrivals, inLine: arrivals - lineOut };
  }

  /** Corrects the hint of how many waiters have left. */
  correct(arrivals: number, inLine: number): Promise<unknown> {
    return correctLineOut(this.#dependencies, { key: this.#request.key, arrivals, inLine }, this.#call);
  }

  /** The error for a request whose grant has other terms than this call asks for. */
  otherTerms(record: KeyRecord): HoldfastError | undefined {
    const own = this.#entry(record);
    return own && (otherWeight(this.#request, own) ?? otherTerms(own, this.#request));
  }

  received(grant: Grant): void {
    measureHandOff(grant, this.#dependencies.clock.now(), this.#call);
  }

  /** Changes if a grant ends or expires, or if the mark changes: by an arrival or by a grant. */
  state({ used, mark, fence, entries }: KeyRecord): string {
    const cut = this.#dependencies.clock.now() - this.#dependencies.clockSkewMs;
    const expired = entries.filter(({ expiresAt }) => expiresAt < cut).length;
    return JSON.stringify([used, mark, fence, expired]);
  }

  /**
   * Raises the mark for a task, unless its request has or had a grant.
   * @param over the current record, if it shows an expired grant of the request: such a grant does not prevent the mark
   * @returns `isRuined`: a third-party client has overwritten the grant, so the mark can never be raised
   */
  async markTask(ticket: string, over?: KeyRecord): Promise<MarkWritten & { isRuined: boolean }> {
    const { key, name } = this.#request;
    const before = over && this.#entry(over);
    const first = before ? isStill(before) : all(hasNoEntry(name), isNotRemembered(name));
    const { won, record } = await this.#replacing(ticket, (replacing) => {
      const condition = replacing ? all(first, replacing.condition) : first;
      const arrival = { key, condition, ticket, left: Number(replacing?.replaces ?? false), also: replacing?.also };
      return mark(this.#dependencies, arrival, this.#call);
    });
    const isRuined = !won && before === undefined && this.own(record) === undefined;
    return { ...markedBy(won, record), isRuined };
  }

  /** Passes the current grant of the request to the task, as `passToTask` does. */
  async passTo(record: KeyRecord, waiter: WaitingTask): Promise<GrantWritten> {
    const entry = this.#entry(record);
    if (!entry) return { won: false, record };
    const { key } = this.#request;
    const { won, record: current } = await passToTask(this.#dependencies, { key, entry, waiter }, this.#call);
    return { won, record: current };
  }

  /**
   * Notifies the task of the grant that this call has just passed to it.
   * @param message `repeated`: true if the request had the grant before; `before`: the record before it was passed
   */
  async notify(
    record: KeyRecord,
    { task: waiter, repeated, before }: { task: WaitingTask; repeated: boolean; before: KeyRecord },
  ): Promise<Notified> {
    const entry = this.#entry(record);
    if (!entry) return { outcome: 'overtaken', record };
    const message = { waiter, record, entry, repeated, isOurs: true, before: this.#entry(before) };
    return notifyHolder(this.#dependencies, message, this.#call);
  }

  /** Ends a grant that this call has passed to a task that is gone, deletes its row, and serves the next waiter. No other call or task has had that grant. */
  async endNeverNotified(record: KeyRecord): Promise<void> {
    const entry = this.#entry(record);
    const ending = entry ? [{ entry, how: 'neverNotified' } as const] : [];
    const served = entry?.ticket === undefined ? [] : [entry.ticket];
    await handOff(this.#dependencies, { record, ending, served }, this.#call);
  }

  /** Sends a delayed repair for a task that has just parked, unless the next waiter has sent one. */
  async sendDelayedRepair(record: KeyRecord, ticket: string): Promise<void> {
    // A caller that has not claimed its grant may have exited.
    if (record.entries.some(({ claimTtlMs }) => claimTtlMs !== undefined))
      return sendRepairAfterWindow(this.#dependencies, this.asked.key, this.#call);
    if (!this.isNext(record, ticket)) return;
    await sendRepairAtRoom(this.#dependencies, { record, asked: this.#request }, this.#call);
  }
}

/** A call, and the key that the call asks for. */
export interface LockCall {
  dependencies: LeaseDependencies;
  lock: Lock;
  call: Call;
  /** Whether the caller has slept, and so has a place beside its row. */
  hasPlace?: boolean;
}
