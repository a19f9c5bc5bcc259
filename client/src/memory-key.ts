import type { components } from './contract.ts';
import type { LossReason } from './errors.ts';
import type { HoldfastError } from './index.ts';
import {
  type Acquired,
  type AcquireRequest,
  type Grant,
  instant,
  isExclusive,
  limitOf,
  type ProblemOf,
  problemsOf,
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
  readonly #by: Surroundings;
  readonly #problem: ProblemOf;
  readonly #idPrefix: string;
  #grants: Grant[] = [];
  #line: Waiter[] = [];
  #fence = 0;
  #tickets = 0;
  #previous: Acquired['previous'] = null;
  /** The last grant, and the last one that named a limit. */
  #last: Grant | undefined;
  #limited: Grant | undefined;
  /** How each grant ended, by its lease id and by its request id. */
  readonly #ended = new Map<string, 'released' | LossReason>();
  #cancelTimer = () => {};

  /** @param idPrefix begins each lease id */
  constructor(key: string, by: Surroundings, idPrefix = '') {
    this.key = key;
    this.#by = by;
    this.#problem = problemsOf(key, by);
    this.#idPrefix = idPrefix;
  }

  /** @throws HoldfastError LeaseHeld, LeaseLost */
  acquire(request: AcquireRequest): Acquired {
    const { requestId = this.#by.uuid(), holder } = request;
    const own = this.#grants.find((one) => one.request.requestId === requestId && one.request.holder === holder);
    if (own && !own.ending && own.endsAt > this.#now) return this.#answer(own, { repeated: true, waitedMs: 0 });
    const ended = this.#ended.get(requestId);
    if (ended || own?.ending) throw this.#lost(ended ?? 'broken');
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
    if (!grant || grant.ending) throw this.#lost(grant ? 'broken' : (this.#ended.get(leaseId) ?? 'unknown'));
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
    const reason = this.#ended.get(leaseId) ?? 'unknown';
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

  /** @throws HoldfastError NotFound if no grant has this fence; Conflict if an exclusive holder has another fence */
  break({ fence, wait = false }: RequestOf<'breakLease'>): AnswerOf<'breakLease'> {
    const { key } = this;
    const grant = this.#grants.find((one) => one.fence === fence);
    if (!grant && this.#grants.length > 0 && this.#lastExclusive) {
      const { holders, used, limit, waiting, ...actual } = this.row();
      throw this.#problem('Conflict', 409, `the lease of ${key} has another fence`, { actual });
    }
    if (!grant) throw this.#problem('NotFound', 404, `no grant of ${key} has the fence ${fence}`);
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
    if (reason === 'taken') this.#grant({ key: this.key, holder: 'another', ttlSeconds: YEAR_SECONDS });
    this.#serve();
  }

  /** True if the key was ever granted. */
  get hasRecord(): boolean {
    return this.#fence > 0;
  }

  /** The response of `readLeases` for the key. @param withWaiters whether the line is in the response */
  view(withWaiters = false): Schemas['Key'] {
    const { hasRecord } = this;
    const holders = this.#grants.map((grant) => this.#viewOf(grant));
    const limitBy = (this.#limit !== null && this.#limited?.request.holder) || null;
    const waiters = withWaiters && { waiters: this.#line.map(waiterView) };
    return { ...this.row(), holders, limitBy, previous: null, hasRecord, ...waiters };
  }

  /** The key's row in a list. @param holder the holder whose grant the row shows */
  row(holder?: string): Schemas['ListedKey'] {
    const { key } = this;
    const use = { holders: this.#grants.length, used: this.#used, limit: this.#limit };
    const common = { key, waiting: this.#line.length, ...use };
    const own = this.#grants.filter(({ request }) => holder === undefined || request.holder === holder);
    const [grant] = own.sort((left, right) => this.#isOver(left) - this.#isOver(right) || left.endsAt - right.endsAt);
    if (grant) {
      const { mode, weight, ...shown } = this.#viewOf(grant);
      return { ...shown, ...common };
    }
    const last = this.#lastExclusive;
    return {
      ...common,
      state: last ? 'released' : 'free',
      holder: last?.request.holder ?? null,
      fence: last?.fence ?? null,
      ...{ acquiredAt: null, expiresAt: null, remainingMs: null, ttlSeconds: null, execution: null },
      ...{ bound: false, inGrace: false, ending: false, brokenAt: null, brokenBy: null, data: null },
    };
  }

  get #now(): number {
    return this.#by.wall();
  }

  #isOver({ endsAt }: Grant): number {
    return Number(endsAt <= this.#now);
  }

  /** The last grant, if it was exclusive. */
  get #lastExclusive(): Grant | undefined {
    return this.#last && isExclusive(this.#last.request) ? this.#last : undefined;
  }

  get #live(): Grant[] {
    return this.#grants.filter((grant) => !this.#isOver(grant));
  }

  get #used(): number {
    return sumOf(this.#grants);
  }

  /** The limit that the last grants have named. Null if the last grant was exclusive. */
  get #limit(): number | null {
    return this.#lastExclusive ? null : (this.#limited?.request.limit ?? null);
  }

  #hasRoom(request: AcquireRequest): boolean {
    const live = this.#live;
    const limit = limitOf(request);
    if (limit === null || this.#lastExclusive) return live.length === 0;
    return sumOf(live) + (request.weight ?? 1) <= limit;
  }

  #grant(request: AcquireRequest): Grant {
    for (const grant of this.#grants) if (this.#isOver(grant)) this.#note(grant, 'taken');
    this.#grants = this.#grants.filter(({ leaseId }) => !this.#ended.has(leaseId));
    const { limit, ttlSeconds = 60 } = request;
    const before = this.#limited?.request.limit;
    const grant: Grant = {
      request,
      leaseId: this.#idPrefix + this.#by.uuid(),
      version: this.#by.uuid(),
      fence: ++this.#fence,
      acquiredAt: this.#now,
      endsAt: this.#now + ttlSeconds * 1000,
      previous: this.#previous,
      limitChanged: limit && before && limit !== before ? { from: before, to: limit } : undefined,
      ending: false,
    };
    const last = this.#lastExclusive;
    // The service remembers the end of an exclusive grant until the next grant.
    if (last && this.#ended.get(last.leaseId) === 'released') this.#ended.set(last.leaseId, 'taken');
    if (limit !== undefined) this.#limited = grant;
    this.#last = grant;
    this.#grants.push(grant);
    return grant;
  }

  /** Notes how a grant ended, for its holder and for the next one. */
  #note({ request, leaseId, fence }: Grant, reason: 'released' | LossReason): void {
    this.#ended.set(leaseId, reason);
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
    const ends = this.#live.map(({ endsAt }) => endsAt);
    if (this.#line.length === 0 || ends.length === 0) return;
    this.#cancelTimer = this.#by.after(Math.min(...ends) - this.#now, () => this.#serve(), true);
  }

  #held(request: AcquireRequest, ticket?: string): HoldfastError {
    const fields = this.refusal();
    const limit = limitOf(request) ?? fields.limit;
    const place = this.#line.findIndex((one) => one.ticket === ticket) + 1;
    return this.#problem('LeaseHeld', 409, `${this.key} is held by ${fields.holder ?? 'another caller'}`, {
      ...fields,
      limit,
      ...(place > 0 && {
        ...{ place, waiting: this.#line.length - 1, comeBackMs: 0, keptMs: 5000 },
        retryWith: { ticket },
      }),
    });
  }

  /** The fields of a refusal: the grant that ends first, and all holders. */
  refusal() {
    const live = this.#live.sort((one, other) => one.endsAt - other.endsAt);
    const [first] = live;
    return {
      holder: first?.request.holder ?? null,
      fence: first?.fence ?? null,
      expiresAt: first ? instant(first.endsAt) : null,
      retryAfterMs: first ? first.endsAt - this.#now : 1000,
      used: this.#used,
      limit: this.#limit,
      holders: live.slice(0, 10).map((one) => this.#holderOf(one)),
    };
  }

  #lost(reason: 'released' | LossReason): HoldfastError {
    const holder = this.#grants[0]?.request.holder ?? null;
    return this.#problem('LeaseLost', 412, `the lease of ${this.key} is lost: ${reason}`, { reason, holder });
  }

  #holderOf(grant: Grant): Schemas['Holder'] {
    const { request, fence, endsAt } = grant;
    const mode = isExclusive(request) ? 'exclusive' : 'shared';
    return { holder: request.holder, fence, mode, weight: weightOf(grant), expiresAt: instant(endsAt) };
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
    const { request, ending } = grant;
    const { ttlSeconds = 60, data = null } = request;
    return {
      ...this.#holderOf(grant),
      ...this.#timesOf(grant),
      state: this.#isOver(grant) ? ('expired' as const) : ('held' as const),
      ttlSeconds,
      data,
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
    const { previous, limitChanged, request } = grant;
    const { mode, weight } = this.#holderOf(grant);
    const terms = { mode, limit: limitOf(request), weight, used: this.#used };
    const permit = mode === 'shared' && { ...terms, ...(limitChanged && { limitChanged }) };
    return { ...this.#bare(grant), ...how, previous, ...permit };
  }
}

const sumOf = (grants: Grant[]): number => grants.reduce((sum, grant) => sum + weightOf(grant), 0);
