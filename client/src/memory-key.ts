import type { components } from './contract.ts';
import type { LossReason } from './errors.ts';
import { HoldfastError } from './index.ts';
import {
  type Acquired,
  type AcquireRequest,
  EXCLUSIVE_WEIGHT,
  type Grant,
  instant,
  kindOf,
  MOST_PERMITS,
  type Waiter,
  waiterView,
  weightOf,
} from './memory-grants.ts';
import { interruptible, type Surroundings } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

type Schemas = components['schemas'];

/** The ttl of a grant that a test gives to another holder, in seconds. */
export const YEAR_SECONDS = 365 * 86_400;

/** One key of the service in memory: its grants and its line. Exported for `MemoryService` alone. */
export class MemoryKey {
  readonly key: string;
  kind: 'lease' | 'pool' = 'lease';
  readonly #by: Surroundings;
  readonly #idPrefix: string;
  #grants: Grant[] = [];
  #line: Waiter[] = [];
  #fence = 0;
  #tickets = 0;
  #previous: Acquired['previous'] = null;
  /** The last grant that named a limit. */
  #limited: Grant | undefined;
  /** How each grant ended, by its lease id and by its request id. */
  readonly #ended = new Map<string, 'released' | LossReason>();
  #lastEnded: string | undefined;
  #cancelTimer = () => {};

  /** @param idPrefix begins each lease id */
  constructor(key: string, by: Surroundings, idPrefix = '') {
    this.key = key;
    this.#by = by;
    this.#idPrefix = idPrefix;
  }

  /** @throws HoldfastError LeaseHeld, WrongKind, LeaseLost */
  acquire(request: AcquireRequest): Acquired {
    const { requestId = this.#by.uuid(), holder } = request;
    const own = this.#grants.find((one) => one.request.requestId === requestId && one.request.holder === holder);
    if (own && !own.ending && own.endsAt > this.#now) return this.#answer(own, { repeated: true, waitedMs: 0 });
    const ended = this.#ended.get(requestId);
    if (ended || own?.ending) throw this.#lost(ended ?? 'broken');
    if (kindOf(request) !== this.kind) this.#changeKind(request);
    if (this.#line.length > 0 || !this.#hasRoom(request)) throw this.#held(request);
    return this.#answer(this.#grant(request), { repeated: false, waitedMs: 0 });
  }

  /** Acquires, or waits in line for up to `waitSeconds`. @throws the errors of `acquire` */
  async wait(request: AcquireRequest, signal: AbortSignal): Promise<Acquired> {
    const first = request.ticket !== undefined && this.#line.every(({ ticket }) => ticket > (request.ticket ?? ''));
    if (first && this.#hasRoom(request)) return this.#answer(this.#grant(request), { repeated: false, waitedMs: 0 });
    try {
      return this.acquire(request);
    } catch (error) {
      if ((error as HoldfastError).code !== 'LeaseHeld') throw error;
    }
    const ticket = request.ticket ?? String(++this.#tickets).padStart(12, '0');
    let waiter: Waiter | undefined;
    return interruptible<Acquired>(signal, (resolve, reject) => {
      waiter = { request, ticket, since: this.#now, resolve, reject };
      this.#line.push(waiter);
      this.#line.sort((left, right) => (left.ticket < right.ticket ? -1 : 1));
      this.#arm();
      return this.#by.after((request.waitSeconds ?? 0) * 1000, () => reject(this.#held(request, ticket)), true);
    }).finally(() => {
      this.#line = this.#line.filter((one) => one !== waiter);
      this.#serve();
    });
  }

  heartbeat(leaseId: string, ttlSeconds?: number): AnswerOf<'heartbeat'> {
    const grant = this.#grants.find((one) => one.leaseId === leaseId);
    if (!grant || grant.ending) throw this.#lost(grant ? 'broken' : this.#reasonOf(leaseId));
    grant.request.ttlSeconds = ttlSeconds ?? grant.request.ttlSeconds ?? 60;
    grant.version = this.#by.uuid();
    grant.endsAt = this.#now + grant.request.ttlSeconds * 1000;
    return this.#bare(grant);
  }

  /** Ends a grant whose work is done. An expired grant that no caller has taken is still there. @returns false if the grant has ended */
  finish(leaseId: string): boolean {
    const grant = this.#grants.find((one) => one.leaseId === leaseId);
    if (grant) this.#end(grant, 'released');
    return grant !== undefined;
  }

  release(leaseId: string): AnswerOf<'release'> {
    const { key } = this;
    const grant = this.#grants.find((one) => one.leaseId === leaseId);
    if (grant) this.#end(grant, grant.ending ? 'broken' : 'released');
    const reason = this.#reasonOf(leaseId);
    if (grant || reason === 'released') return { key, released: true };
    return { key, released: false, reason: reason === 'taken' || reason === 'broken' ? reason : 'unknown' };
  }

  withdraw({ requestId, holder }: RequestOf<'withdraw'>): AnswerOf<'withdraw'> {
    const isOwn = ({ request }: Grant | Waiter) => request.requestId === requestId && request.holder === holder;
    const waiters = this.#line.filter(isOwn);
    const grants = this.#grants.filter(isOwn);
    for (const { reject } of waiters) reject(this.#lost('released'));
    this.#line = this.#line.filter((one) => !waiters.includes(one));
    for (const grant of grants) this.#end(grant, 'released');
    const { key } = this;
    if (waiters.length + grants.length === 0) return { key, requestId, cancelled: false, reason: 'unknown' };
    this.#ended.set(requestId, 'released');
    return { key, requestId, cancelled: true };
  }

  /** @throws HoldfastError NotFound if no grant has this fence; Conflict if the lease has another fence */
  break({ fence, wait = false }: RequestOf<'breakLease'>): AnswerOf<'breakLease'> {
    const { key } = this;
    const grant = this.#grants.find((one) => one.fence === fence);
    if (!grant && this.kind === 'lease' && this.#grants.length > 0) {
      const { kind, holders, used, limit, waiting, ...actual } = this.row();
      throw this.#problem('Conflict', 409, `the lease of ${key} has another fence`, { actual });
    }
    if (!grant) throw this.#problem('NotFound', 404, `no grant of ${key} has the fence ${fence}`, {});
    const { holder } = grant.request;
    if (wait) grant.ending = true;
    else this.#end(grant, 'broken');
    const holderUntil = instant(grant.endsAt);
    return { key, fence, holder, broken: true, ended: !wait, holderUntil, lastHeartbeatAt: null };
  }

  /** Ends every grant. With `taken`, another holder then has the key, even if waiters are in line. */
  lose(reason: 'taken' | 'broken' | 'unknown'): void {
    for (const grant of this.#grants) this.#note(grant, reason);
    this.#grants = [];
    const permit = this.kind === 'pool' && { mode: 'exclusive' as const };
    if (reason === 'taken') this.#grant({ key: this.key, holder: 'another', ttlSeconds: YEAR_SECONDS, ...permit });
    this.#serve();
  }

  /** True if the key was ever granted. */
  get hasRecord(): boolean {
    return this.#fence > 0;
  }

  /** The response of `readLeases` for the key. @param withWaiters whether the line is in the response */
  view(withWaiters = false): Schemas['LeaseWithQueue'] | Schemas['Pool'] {
    const { key, hasRecord } = this;
    const waiting = this.#line.length;
    const waiters = withWaiters && { waiters: this.#line.map(waiterView) };
    if (this.kind === 'lease') {
      const { kind, holders, used, limit, ...lease } = this.row();
      return { ...lease, kind: 'lease', waiting, hasRecord, previous: null, ...waiters };
    }
    const holders = this.#grants.map((grant) => ({ ...this.#viewOf(grant), ...this.#holderOf(grant) }));
    const { limit } = this.#limited?.request ?? {};
    const limitBy = this.#limited?.request.holder ?? null;
    return { key, kind: 'pool', holders, used: this.#used, limit: limit ?? null, limitBy, waiting, ...waiters };
  }

  /** The key's row in a list. @param holder of a pool, the holder whose permit the row shows */
  row(holder?: string): Schemas['ListedKey'] {
    const { key, kind } = this;
    const grant = this.#grants
      .filter(({ request }) => holder === undefined || request.holder === holder)
      .sort((left, right) => left.endsAt - right.endsAt)[0];
    const common = { key, kind, waiting: this.#line.length };
    const pool = kind === 'pool' && {
      holders: this.#grants.length,
      used: this.#used,
      limit: this.#limited?.request.limit ?? null,
    };
    if (grant) return { ...this.#viewOf(grant), ...common, ...pool };
    const { holder: before = null, fence = null } = (kind === 'lease' && this.#previous) || {};
    const never = { acquiredAt: null, expiresAt: null, remainingMs: null, ttlSeconds: null };
    const empty = { ...never, execution: null, data: null, brokenAt: null, brokenBy: null };
    return {
      ...empty,
      ...common,
      ...pool,
      holder: before,
      fence,
      state: fence === null ? 'free' : 'released',
      ending: false,
      bound: false,
      inGrace: false,
    };
  }

  /** How a grant ended, as far as the record of the service says: after the next grant, a release is forgotten. */
  #reasonOf(leaseId: string): 'released' | LossReason {
    const before = this.kind === 'lease' && this.hasRecord ? 'taken' : 'unknown';
    const reason = this.#ended.get(leaseId) ?? before;
    const isLast = this.#lastEnded === leaseId && this.#grants.length === 0;
    return reason === 'released' && this.kind === 'lease' && !isLast ? 'taken' : reason;
  }

  get #now(): number {
    return this.#by.wall();
  }

  get #live(): Grant[] {
    return this.#grants.filter(({ endsAt }) => endsAt > this.#now);
  }

  get #used(): number {
    return this.#grants.reduce((sum, { weight }) => sum + weight, 0);
  }

  #hasRoom(request: AcquireRequest): boolean {
    const live = this.#live;
    if (this.kind === 'lease' || request.mode === 'exclusive') return live.length === 0;
    const used = live.reduce((sum, { weight }) => sum + weight, 0);
    return used + weightOf(request) <= (request.limit ?? MOST_PERMITS);
  }

  #grant(request: AcquireRequest): Grant {
    for (const grant of this.#grants) if (grant.endsAt <= this.#now) this.#note(grant, 'taken');
    this.#grants = this.#grants.filter(({ leaseId }) => !this.#ended.has(leaseId));
    const { limit, ttlSeconds = 60 } = request;
    const before = this.#limited?.request.limit;
    const grant: Grant = {
      request,
      leaseId: this.#idPrefix + this.#by.uuid(),
      version: this.#by.uuid(),
      fence: ++this.#fence,
      weight: weightOf(request),
      acquiredAt: this.#now,
      endsAt: this.#now + ttlSeconds * 1000,
      previous: this.#previous,
      limitChanged: limit && before && limit !== before ? { from: before, to: limit } : undefined,
      ending: false,
    };
    if (limit !== undefined) this.#limited = grant;
    this.#grants.push(grant);
    return grant;
  }

  /** Notes how a grant ended, for its holder and for the next one. */
  #note({ request, leaseId, fence }: Grant, reason: 'released' | LossReason): void {
    this.#ended.set(leaseId, reason);
    this.#lastEnded = leaseId;
    if (request.requestId !== undefined) this.#ended.set(request.requestId, reason);
    const ended = reason === 'released' || reason === 'broken' ? reason : 'expired';
    this.#previous = { holder: request.holder, fence, ended, at: instant(this.#now) };
  }

  #end(grant: Grant, reason: 'released' | LossReason): void {
    this.#note(grant, reason);
    this.#grants = this.#grants.filter((one) => one !== grant);
    this.#serve();
  }

  /** Grants to the waiters in order, and sets a timer for the expiry of the next grant. */
  #serve(): void {
    for (let next = this.#line[0]; next && this.#hasRoom(next.request); next = this.#line[0]) {
      this.#line.shift();
      next.resolve(this.#answer(this.#grant(next.request), { repeated: false, waitedMs: this.#now - next.since }));
    }
    this.#arm();
  }

  #arm(): void {
    this.#cancelTimer();
    const ends = this.#grants.map(({ endsAt }) => endsAt).filter((endsAt) => endsAt > this.#now);
    if (this.#line.length === 0 || ends.length === 0) return;
    this.#cancelTimer = this.#by.after(Math.min(...ends) - this.#now, () => this.#serve(), true);
  }

  /** @throws HoldfastError WrongKind if the key has a grant or a waiter */
  #changeKind(request: AcquireRequest): void {
    const { key, kind } = this;
    if (this.#live.length > 0 || this.#line.length > 0) {
      const pool = kind === 'pool' && { limit: this.#limited?.request.limit ?? null };
      throw this.#problem('WrongKind', 409, `${key} is used as a ${kind}`, { ...this.#refusalOf(), ...pool, kind });
    }
    for (const grant of this.#grants) this.#note(grant, 'taken');
    this.#grants = [];
    this.kind = kindOf(request);
  }

  #held(request: AcquireRequest, ticket?: string): HoldfastError {
    const fields = this.#refusalOf();
    const limit = request.mode === 'exclusive' ? null : (request.limit ?? MOST_PERMITS);
    const place = this.#line.findIndex((one) => one.ticket === ticket) + 1;
    return this.#problem('LeaseHeld', 409, `${this.key} is held by ${fields.holder ?? 'another caller'}`, {
      ...fields,
      ...(this.kind === 'pool' && { limit }),
      ...(place > 0 && { place, waiting: this.#line.length - 1, retryWith: { ticket } }),
    });
  }

  /** The fields of a refusal: the grant that ends first, and for a pool its use and its holders. */
  #refusalOf() {
    const live = this.#live.sort((one, other) => one.endsAt - other.endsAt);
    const [first] = live;
    return {
      holder: first?.request.holder ?? null,
      fence: first?.fence ?? null,
      expiresAt: first ? instant(first.endsAt) : null,
      retryAfterMs: first ? first.endsAt - this.#now : 1000,
      ...(this.kind === 'pool' && { used: this.#used, holders: live.slice(0, 10).map((one) => this.#holderOf(one)) }),
    };
  }

  #lost(reason: 'released' | LossReason): HoldfastError {
    const holder = this.#grants[0]?.request.holder ?? null;
    return this.#problem('LeaseLost', 412, `the lease of ${this.key} is lost: ${reason}`, { reason, holder });
  }

  #problem(code: string, status: number, detail: string, fields: object): HoldfastError {
    const problem = { type: `urn:holdfast:error:${code}`, title: code, status, code, detail, traceId: this.#by.uuid() };
    return new HoldfastError(Object.assign({ key: this.key }, fields, problem));
  }

  #holderOf({ request, fence, weight, endsAt }: Grant): Schemas['PermitHolder'] {
    const mode = weight === EXCLUSIVE_WEIGHT ? 'exclusive' : 'shared';
    return { holder: request.holder, fence, mode, weight, expiresAt: instant(endsAt) };
  }

  #timesOf({ acquiredAt, endsAt }: Grant) {
    return {
      acquiredAt: instant(acquiredAt),
      expiresAt: instant(endsAt),
      remainingMs: Math.max(0, endsAt - this.#now),
    };
  }

  /** The fields of a grant that every reader may see. */
  #viewOf(grant: Grant) {
    const { request, fence, ending } = grant;
    const { holder, ttlSeconds = 60, data = null } = request;
    const state = grant.endsAt > this.#now ? ('held' as const) : ('expired' as const);
    return {
      ...this.#timesOf(grant),
      holder,
      fence,
      ttlSeconds,
      data,
      state,
      ending,
      brokenAt: null,
      brokenBy: null,
      execution: null,
      bound: false,
      inGrace: false,
    };
  }

  #bare(grant: Grant): Schemas['Grant'] {
    const { leaseId, version, fence } = grant;
    const { holder, data } = grant.request;
    return {
      key: this.key,
      holder,
      leaseId,
      version,
      fence,
      ...this.#timesOf(grant),
      ...(data !== undefined && { data }),
    };
  }

  #answer(grant: Grant, how: { repeated: boolean; waitedMs: number }): Acquired {
    const { previous, limitChanged, weight, request } = grant;
    const { mode } = this.#holderOf(grant);
    const limit = mode === 'exclusive' ? null : (request.limit ?? MOST_PERMITS);
    const permit = this.kind === 'pool' && {
      mode,
      limit,
      weight,
      used: this.#used,
      ...(limitChanged && { limitChanged }),
    };
    return { ...this.#bare(grant), ...how, previous, ...permit };
  }
}
