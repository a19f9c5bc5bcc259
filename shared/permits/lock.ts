import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isDue, LOOK_PATIENCE_MS } from '../line/executions/bound-grant.ts';
import type { Asked, Grant, HandedOff, Marked, Pace, ParkingLock, Written } from '../line/lock.ts';
import type { Notified } from '../line/notify.ts';
import { meanOf, paceAfter } from '../line/patience.ts';
import { repairLater } from '../line/repair/later.ts';
import type { WaitingTask } from '../line/waiters.ts';
import { otherTerms, setting } from './bound.ts';
import { hasNoEntry, isNotRemembered, isStill } from './conditions.ts';
import { extend, notifyPermit, passToTask } from './deliver.ts';
import { isHandedOff } from './freed.ts';
import { handOff, repairAtRoom } from './hand-off.ts';
import { correctLineOut, mark, markJoined } from './marks.ts';
import { poolPatienceMs, poolPauseMs } from './pace.ts';
import { otherWeight, type PermitRequest } from './permit-request.ts';
import { locationOf, readPool } from './read.ts';
import { ending, entryOf, isBound, type PoolEntry, type PoolRecord } from './record.ts';
import { endPermit, handOffToLine } from './release.ts';
import { roomAt } from './room.ts';
import { permitLost, poolHeld } from './views.ts';
import { updatePool } from './write.ts';

/** A write of the mark, as the line sees it. */
const markedBy = (won: boolean, record: PoolRecord): Marked<PoolRecord> => ({
  won,
  record,
  arrivals: record.arrivals ?? Number.NaN,
  lineOut: record.lineOut,
});

/** The permits of a pool as a lock, for one request. */
export const permitLock = (
  dependencies: LeaseDependencies,
  request: PermitRequest,
  call: Call,
): ParkingLock<PoolRecord> => new PermitLock(dependencies, request, call);

class PermitLock implements ParkingLock<PoolRecord> {
  readonly asked: Asked;
  readonly where;
  readonly #dependencies: LeaseDependencies;
  readonly #request: PermitRequest;
  readonly #call: Call;
  /** How long this call leaves the question about bound holders to the next waiter. */
  #patienceMs: number | undefined;
  /** The record as the mark of this call has left it. */
  #marked: PoolRecord | undefined;
  /** How many holders this call has seen at a time. */
  #holders: number | undefined;
  /** The number of arrivals when this call joined, including this call. Undefined if the number is not known. */
  #arrival: number | undefined;

  constructor(dependencies: LeaseDependencies, request: PermitRequest, call: Call) {
    const { key, holder, ttlMs, requestId, principal, data, limit, weight } = request;
    const { execution, target, graceMs = 0, bound } = request;
    const terms = { data, execution, target, graceSeconds: graceMs / 1000, bound, permit: { limit, weight } };
    this.asked = { key: key, holder, ttlSeconds: ttlMs / 1000, requestId, principal, ...terms };
    this.where = locationOf(dependencies, key);
    this.#dependencies = dependencies;
    this.#request = request;
    this.#call = call;
  }

  read(): Promise<PoolRecord> {
    return readPool(this.#dependencies, this.#request.key, this.#call);
  }

  own(record: PoolRecord): Grant | 'released' | 'broken' | undefined {
    const entry = this.#entry(record);
    if (!entry || entry.isEnding) return ending(record, this.#request.name);
    const { version, ticket, claimTtlMs, ttlMs, expiresAt, previous } = entry;
    return { version, ticket, claimTtlMs, ttlMs, expiresAt, previous };
  }

  #entry(record: PoolRecord): PoolEntry | undefined {
    return entryOf(record, this.#request.name);
  }

  freeAt(record: PoolRecord): number {
    return roomAt(record, this.#request, this.#dependencies.clockSkewMs);
  }

  mayServe(record: PoolRecord): boolean {
    return this.isMarked(record);
  }

  isMarked({ mark }: PoolRecord): boolean {
    return mark !== undefined;
  }

  async mark(ticket: string, how: 'first' | 'again'): Promise<Marked<PoolRecord>> {
    const { key, name } = this.#request;
    const isAgain = how === 'again';
    const { won, record } = await markJoined(this.#dependencies, { key, name, ticket, isAgain }, this.#call);
    this.#marked = record;
    if (won) this.#arrival = isAgain ? undefined : record.arrivals;
    return markedBy(won, record);
  }

  missingMark(record: PoolRecord): 'lost' | undefined {
    return this.isMarked(record) ? undefined : 'lost';
  }

  async markBack({ key }: PoolRecord, ticket: string): Promise<Marked<PoolRecord>> {
    const joining = { key, name: this.#request.name, ticket, isBack: true };
    const { won, record } = await markJoined(this.#dependencies, joining, this.#call);
    this.#marked = record;
    return markedBy(won, record);
  }

  isNext({ nextTicket }: PoolRecord, ticket: string): boolean {
    return nextTicket === ticket;
  }

  /** The release that has made room hands off by itself, if this call had raised its mark before. An expiry makes room without a call. */
  isLeftToRelease(record: PoolRecord): boolean {
    const isFreed = record !== this.#marked && this.freeAt(record) === Number.NEGATIVE_INFINITY;
    return isFreed && isHandedOff(record, this.#dependencies.clock.now());
  }

  async handOff(record: PoolRecord): Promise<HandedOff<PoolRecord>> {
    const unnotified = new Set<string>();
    const { end, granted, record: current } = await handOff(this.#dependencies, { record, unnotified }, this.#call);
    return { end: granted.length > 0 ? 'served' : end, served: granted, unnotified, record: current };
  }

  async write(record: PoolRecord, how: 'claim' | 'answer' | 'renew'): Promise<Written<PoolRecord>> {
    const entry = this.#entry(record);
    if (!entry) return { won: false, record };
    if (how === 'answer') return this.#answer(entry);
    const { key, ttlMs } = this.#request;
    const extending = {
      key,
      entry,
      ...(how === 'claim' && { claim: { ttlMs, paceMs: paceAfter({ ...record, waiters: record.mark }) } }),
    };
    const { won, record: current } = await extend(this.#dependencies, extending, this.#call);
    return { won, record: current };
  }

  /** Does not extend the permit. The new version keeps each call that saw an earlier version from handing the permit off. */
  async #answer(entry: PoolEntry): Promise<Written<PoolRecord>> {
    const { clock, ids } = this.#dependencies;
    const [now, version] = [clock.now(), ids.uuid()];
    const parts = setting({ v: text(version), r: integer(now) });
    const update = { key: this.#request.key, now, ...parts, remove: [], condition: isStill(entry) };
    const { won, record } = await updatePool(this.#dependencies, update, this.#call);
    // An earlier try of the SDK may have won before the try that lost.
    return { won: won || this.#entry(record)?.version === version, record };
  }

  async giveUp(record: PoolRecord): Promise<void> {
    const entry = this.#entry(record);
    if (!entry) return;
    const { name, id } = entry;
    const giving = { key: this.#request.key, proof: { name, id } };
    const { record: current } = await endPermit(this.#dependencies, giving, this.#call);
    // The hand-off also follows a lost write: an earlier try whose response was lost may have ended the permit.
    await handOffToLine(this.#dependencies, { record: current }, this.#call);
  }

  readonly pace: Pace<PoolRecord> = {
    pauseMs: (sight) => {
      const { clock, ids } = this.#dependencies;
      const now = clock.now();
      const toRoomMs = this.freeAt(sight.record) - now;
      this.#holders = meanOf(this.#holders, sight.record.entries.length);
      return poolPauseMs({ ...sight, arrival: this.#arrival, holders: this.#holders, now, toRoomMs }, ids);
    },
    patienceMs: (sight) => poolPatienceMs({ ...sight, arrival: this.#arrival }, this.#dependencies.ids),
  };

  held(record: PoolRecord): HoldfastError {
    const { clock, clockSkewMs } = this.#dependencies;
    return poolHeld(record, { asked: this.#request, now: clock.now(), clockSkewMs });
  }

  lost(reason: 'released' | 'broken' | 'unknown'): HoldfastError {
    return permitLost(this.#request.key, reason);
  }

  granted({ entries }: PoolRecord): ReadonlySet<string | undefined> {
    return new Set(entries.map(({ ticket }) => ticket));
  }

  async lookAtHolders(record: PoolRecord, isNext: boolean): Promise<void> {
    if (!record.entries.some(isBound)) return;
    const { clock, ids } = this.#dependencies;
    this.#patienceMs ??= LOOK_PATIENCE_MS * ids.random();
    if (!isDue(record, clock.now() - (isNext ? 0 : this.#patienceMs))) return;
    const { lookAtPermits } = await import('./holder-look.ts');
    await lookAtPermits(this.#dependencies, { record }, this.#call);
  }

  counted({ mark, arrivals = 0, lineOut = 0 }: PoolRecord): { arrivals: number; inLine: number } | undefined {
    return mark && { arrivals, inLine: arrivals - lineOut };
  }

  correct(arrivals: number, inLine: number): Promise<unknown> {
    return correctLineOut(this.#dependencies, { key: this.#request.key, arrivals, inLine }, this.#call);
  }

  otherTerms(record: PoolRecord): HoldfastError | undefined {
    const own = this.#entry(record);
    return own && (otherWeight(this.#request, own) ?? otherTerms(own, this.#request));
  }

  /** Changes if a permit ends or expires, or if the mark changes: by an arrival or by a grant. */
  state({ used, mark, fence, entries }: PoolRecord): string {
    const cut = this.#dependencies.clock.now() - this.#dependencies.clockSkewMs;
    const expired = entries.filter(({ expiresAt }) => expiresAt < cut).length;
    return JSON.stringify([used, mark, fence, expired]);
  }

  async markTask(ticket: string, over?: PoolRecord): Promise<Marked<PoolRecord> & { isRuined: boolean }> {
    const { key, name } = this.#request;
    const before = over && this.#entry(over);
    const condition = before ? isStill(before) : all(hasNoEntry(name, 0), isNotRemembered(name));
    const { won, record } = await mark(this.#dependencies, { key, condition, ticket }, this.#call);
    const isRuined = !won && before === undefined && this.own(record) === undefined;
    return { ...markedBy(won, record), isRuined };
  }

  async passTo(record: PoolRecord, waiter: WaitingTask): Promise<Written<PoolRecord>> {
    const entry = this.#entry(record);
    if (!entry) return { won: false, record };
    const { key } = this.#request;
    const { won, record: current } = await passToTask(this.#dependencies, { key, entry, waiter }, this.#call);
    return { won, record: current };
  }

  async notify(
    record: PoolRecord,
    { task: waiter, repeated }: { task: WaitingTask; repeated: boolean },
  ): Promise<Notified<PoolRecord>> {
    const entry = this.#entry(record);
    if (!entry) return { outcome: 'overtaken', record };
    return notifyPermit(this.#dependencies, { waiter, record, entry, repeated, isOurs: true }, this.#call);
  }

  async undelivered(record: PoolRecord): Promise<void> {
    const entry = this.#entry(record);
    const ending = entry ? [{ entry, how: 'undelivered' } as const] : [];
    await handOff(this.#dependencies, { record, ending }, this.#call);
  }

  async watch(record: PoolRecord, ticket: string): Promise<void> {
    // A caller that has not claimed its permit may have exited.
    if (record.entries.some(({ claimTtlMs }) => claimTtlMs !== undefined))
      return repairLater(this.#dependencies, this.asked.key, this.#call);
    if (!this.isNext(record, ticket)) return; // the next waiter sends the message for all waiters
    await repairAtRoom(this.#dependencies, { record, asked: this.#request }, this.#call);
  }
}
