import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import { isOwnOf } from '../line/acquisition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isDue, LOOK_PATIENCE_MS } from '../line/executions/bound-grant.ts';
import type { Asked, Grant, HandedOff, Marked, Pace, ParkingLock, Sight, Written } from '../line/lock.ts';
import type { Notified } from '../line/notify.ts';
import { measureHandOff } from '../line/notify.ts';
import type { WaitingTask } from '../line/waiters.ts';
import { otherTerms } from './bound.ts';
import { grantUnchanged, isHeldByAnother, isOfAnother } from './conditions.ts';
import { notifyLease } from './deliver.ts';
import type { GrantRequest } from './grant.ts';
import { handOff } from './hand-off.ts';
import { answer, claimFull, correctLineOut, mark, markAgain, passToTask, renew } from './marks.ts';
import { leasePatienceMs, pauseMs } from './pace.ts';
import { locationOf, readRecord } from './read-record.ts';
import type { Leased, LeaseRecord } from './record.ts';
import { releaseLease } from './release.ts';
import { endReason, endsAt, grantedIn, isBound, isLeased, isOver, takeoverAt } from './rules.ts';
import { leaseHeld, leaseLost } from './views.ts';
import { repairAtTheEnd } from './watch.ts';

// A plain acquire that needs this loads it from here: a chunk of its own would make each bundle larger.
export { raiseFence } from './marks.ts';

/** If the record was deleted with its mark, many calls may see this at the same time. A random pause up to this long separates them: one hand-off is enough. */
const CROWD_MS = 25;

/** A lease as a lock, for one request. */
export const leaseLock = (
  dependencies: LeaseDependencies,
  request: GrantRequest,
  call: Call,
): ParkingLock<LeaseRecord> => new LeaseLock(dependencies, request, call);

class LeaseLock implements ParkingLock<LeaseRecord> {
  readonly asked: Asked;
  readonly where;
  readonly #dependencies: LeaseDependencies;
  readonly #request: GrantRequest;
  readonly #call: Call;
  /** The number of arrivals when this call joined, including this call. Undefined if the number is not known. */
  #arrival: number | undefined;
  /** How long this call leaves the question about a bound holder to the next waiter. */
  #patienceMs: number | undefined;
  /** True if the mark counts this call. False if there was no record when the call joined. */
  #isCounted = true;

  constructor(dependencies: LeaseDependencies, request: GrantRequest, call: Call) {
    const { key, holder, ttlSeconds, requestId, principal, execution, target, graceSeconds, bound, data } = request;
    this.asked = { key, holder, ttlSeconds, requestId, principal, execution, target, graceSeconds, bound, data };
    this.where = locationOf(dependencies, key);
    this.#dependencies = dependencies;
    this.#request = request;
    this.#call = call;
  }

  read(): Promise<LeaseRecord> {
    return readRecord(this.#dependencies, this.#request.key, this.#call);
  }

  own(record: LeaseRecord): Grant | 'released' | 'broken' | undefined {
    if (!isOwnOf(record, this.#request)) return undefined;
    if (!isLeased(record) || isOver(record)) return endReason(record);
    const { version, ticket, claimTtlMs, ttlMs, previous } = record;
    return { version, ticket, claimTtlMs, ttlMs, previous, expiresAt: endsAt(record) };
  }

  freeAt(record: LeaseRecord): number {
    return isLeased(record) ? takeoverAt(record, this.#dependencies.clockSkewMs) : Number.NEGATIVE_INFINITY;
  }

  mayServe(record: LeaseRecord): boolean {
    return !isLeased(record) && this.isMarked(record);
  }

  isMarked({ waiters }: LeaseRecord): boolean {
    return waiters !== undefined;
  }

  async mark(ticket: string, how: 'first' | 'again'): Promise<Marked<LeaseRecord>> {
    const { key } = this.#request;
    const raising = { key, condition: isOfAnother(this.#request), ticket, again: how === 'again' };
    const { won, record } = await mark(this.#dependencies, raising, this.#call);
    const arrivals = Number(record.waiters?.N);
    this.#isCounted = won;
    this.#arrival = won && how === 'first' ? arrivals : undefined;
    return { won, record, arrivals, lineOut: record.lineOut ?? 0 };
  }

  missingMark(record: LeaseRecord): 'first' | 'lost' | undefined {
    const isFree = this.freeAt(record) <= this.#dependencies.clock.now();
    if (isFree || isOwnOf(record, this.#request)) return undefined;
    if (!this.#isCounted) return 'first';
    return this.isMarked(record) ? undefined : 'lost';
  }

  async markBack(record: LeaseRecord, ticket: string): Promise<Marked<LeaseRecord>> {
    if (!this.#isCounted) return this.mark(ticket, 'first');
    const { won, record: current } = await markAgain(this.#dependencies, { record, ticket }, this.#call);
    return { won, record: current, arrivals: Number(current.waiters?.N) };
  }

  /** If the record names no next waiter, a third-party client has deleted the record, and each call acts at once. */
  isNext(record: LeaseRecord, ticket: string): boolean {
    const { nextTicket } = record;
    return (isLeased(record) || this.isMarked(record)) && (nextTicket === undefined || nextTicket === ticket);
  }

  async handOff(record: LeaseRecord, alive?: string): Promise<HandedOff<LeaseRecord>> {
    const ending = isLeased(record) ? 'expired' : 'free';
    const unnotified = new Set<string>();
    const passing = { record, ending, unnotified, ...(alive !== undefined && { own: alive }) } as const;
    const { end, moved, record: current, hasGoneOn } = await handOff(this.#dependencies, passing, this.#call);
    const isOwn = alive !== undefined && moved.includes(alive) && !hasGoneOn;
    const handed = { end: end === 'granted' ? 'served' : end, served: moved, unnotified, record: current } as const;
    return { ...handed, ...(isOwn && { ownVersion: current.version }) };
  }

  async write(record: LeaseRecord, how: 'claim' | 'answer' | 'renew'): Promise<Written<LeaseRecord>> {
    if (!isLeased(record)) return { won: false, record };
    const { won, record: current } =
      how === 'claim'
        ? await claimFull(this.#dependencies, { record, request: this.#request }, this.#call)
        : how === 'answer'
          ? await answer(this.#dependencies, record, this.#call)
          : await renew(this.#dependencies, { record }, this.#call);
    return { won, record: current };
  }

  async giveUp({ key, leaseId = '' }: LeaseRecord): Promise<void> {
    await releaseLease(this.#dependencies)({ key, leaseId }, this.#call);
  }

  readonly pace: Pace<LeaseRecord> = {
    pauseMs: (sight) => {
      const { clock, ids } = this.#dependencies;
      const now = clock.now();
      const toTakeoverMs = takeoverAt(sight.record, this.#dependencies.clockSkewMs) - now;
      return pauseMs({ ...sight, arrival: this.#arrival, now, toTakeoverMs }, ids);
    },
    patienceMs: (sight: Sight<LeaseRecord>) => {
      const { ids } = this.#dependencies;
      const { record } = sight;
      return isLeased(record) || this.isMarked(record)
        ? leasePatienceMs({ ...sight, arrival: this.#arrival }, ids)
        : CROWD_MS * ids.random();
    },
  };

  held(record: LeaseRecord): HoldfastError {
    const { clock, clockSkewMs } = this.#dependencies;
    return leaseHeld(record, clock.now(), clockSkewMs);
  }

  lost(reason: 'released' | 'broken' | 'unknown'): HoldfastError {
    return leaseLost(this.#request.key, reason, undefined);
  }

  granted(record: LeaseRecord): ReadonlySet<string | undefined> {
    return grantedIn(record);
  }

  /** The next waiter hands off an expired lease without another look, because the write requires the version that the waiter saw last. */
  skipsLook(record: LeaseRecord, ticket: string): boolean {
    if (record.nextTicket !== ticket || !isLeased(record) || isOwnOf(record, this.#request)) return false;
    return this.freeAt(record) <= this.#dependencies.clock.now();
  }

  async lookAtHolders(record: LeaseRecord, isNext: boolean): Promise<void> {
    if (!isBound(record)) return;
    const { clock, ids } = this.#dependencies;
    this.#patienceMs ??= LOOK_PATIENCE_MS * ids.random();
    if (!isDue(record, clock.now() - (isNext ? 0 : this.#patienceMs))) return;
    const { look } = await import('./holder-look.ts');
    await look(this.#dependencies, record, this.#call);
  }

  counted({ waiters, lineOut = 0 }: LeaseRecord): { arrivals: number; inLine: number } | undefined {
    return waiters && { arrivals: Number(waiters.N), inLine: Number(waiters.N) - lineOut };
  }

  correct(arrivals: number, inLine: number): Promise<unknown> {
    return correctLineOut(this.#dependencies, { key: this.#request.key, arrivals, inLine }, this.#call);
  }

  received(grant: Grant): void {
    measureHandOff(grant, this.#dependencies.clock.now(), this.#call);
  }

  otherTerms(record: LeaseRecord): HoldfastError | undefined {
    return isLeased(record) ? otherTerms(record, this.#request) : undefined;
  }

  async markTask(ticket: string, over?: LeaseRecord): Promise<Marked<LeaseRecord>> {
    const condition = over ? grantUnchanged(over) : isHeldByAnother(this.#request);
    const raising = { key: this.#request.key, condition, ticket };
    const { won, record } = await mark(this.#dependencies, raising, this.#call);
    return { won, record, arrivals: Number(record.waiters?.N), lineOut: record.lineOut };
  }

  async passTo(record: LeaseRecord, waiter: WaitingTask): Promise<Written<LeaseRecord>> {
    const { won, record: current } = await passToTask(
      this.#dependencies,
      { record: record as Leased, waiter },
      this.#call,
    );
    return { won, record: current };
  }

  notify(
    record: LeaseRecord,
    { task: waiter, repeated }: { task: WaitingTask; repeated: boolean },
  ): Promise<Notified<LeaseRecord>> {
    const message = { waiter, record: record as Leased, repeated, isOurs: true };
    return notifyLease(this.#dependencies, message, this.#call);
  }

  async undelivered(record: LeaseRecord): Promise<void> {
    await handOff(this.#dependencies, { record, ending: 'undelivered' }, this.#call);
  }

  /** The first in line sends the message for all waiters, and a task that parks behind an unclaimed grant sends its own message. */
  async watch(record: LeaseRecord): Promise<void> {
    const isFirst = Number(record.waiters?.N) === 1;
    if (isFirst || record.claimTtlMs !== undefined)
      await repairAtTheEnd(this.#dependencies, record, { call: this.#call });
  }
}
