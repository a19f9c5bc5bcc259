import { roomUnder } from '../../../shared/locks/record/cap-rules.ts';
import { heldText } from '../../../shared/locks/record/held-text.ts';
import type { components } from './contract.ts';
import type { LossReason } from './errors.ts';
import type { HoldfastError } from './index.ts';
import {
  type Acquired,
  type AcquireRequest,
  type Cap,
  cappedFields,
  capView,
  endOf,
  type Grant,
  grantView,
  holderOf,
  instant,
  isExclusive,
  limitOf,
  type ProblemOf,
  previousOf,
  problemsOf,
  timesOf,
  type Waiter,
  waiterView,
  weightOf,
} from './memory-grants.ts';
import { MemoryReplace } from './memory-replace.ts';
import { interruptible, type Surroundings } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

type Schemas = components['schemas'];

/** The ttl of the grants of other holders in a test, in seconds. */
export const YEAR_SECONDS = 365 * 86_400;

/** One key of the service in memory: its grants and its line. */
export class MemoryKey {
  readonly key: string;
  readonly #surroundings: Surroundings;
  readonly #problem: ProblemOf;
  readonly #idPrefix: string;
  #grants: Grant[] = [];
  #line: Waiter[] = [];
  #fence = 0;
  #tickets = 0;
  #previous: Acquired['previous'] = null;
  #last: Grant | undefined;
  /** The last grant that named a limit. */
  #limited: Grant | undefined;
  /** How each grant ended, by its lease id and by its request id. */
  readonly #ended = new Map<string, 'released' | LossReason>();
  readonly #replace: MemoryReplace;
  #cancelTimer = () => {};
  #cap: Cap | undefined;
  /** When the cap was last changed. Each change has a later instant, by which readers tell caps apart. */
  #cappedAt = 0;
  /** The ticket that an operator has made next. */
  #moved: string | undefined;

  /** @param idPrefix what each lease id begins with */
  constructor(key: string, surroundings: Surroundings, idPrefix = '') {
    this.key = key;
    this.#surroundings = surroundings;
    this.#problem = problemsOf(key, surroundings);
    this.#replace = new MemoryReplace(this.#problem);
    this.#idPrefix = idPrefix;
  }

  /** @throws HoldfastError LeaseHeld, LeaseLost, Superseded */
  acquire(request: AcquireRequest): Acquired {
    const { requestId = this.#surroundings.uuid(), holder } = request;
    const grant = this.#grants.find((one) => one.request.requestId === requestId && one.request.holder === holder);
    if (grant && !grant.ending && grant.endsAt > this.#now) return this.#answer(grant, { repeated: true, waitedMs: 0 });
    const ended = this.#ended.get(requestId);
    if (ended || grant?.ending) throw this.#lost(ended ?? 'broken');
    if (this.#line.length > 0 || !this.#hasRoom(request)) throw this.#held(request);
    return this.#answer(this.#grant(request), { repeated: false, waitedMs: 0 });
  }

  /** Acquires, or waits in line for up to `waitSeconds`. @throws the errors of `acquire` */
  async wait(request: AcquireRequest, signal: AbortSignal): Promise<Acquired> {
    if (request.replace) this.#replace.join(request, { line: this.#line, grants: this.#grants, ended: this.#ended });
    const { ticket: prior } = request;
    const isNext = prior !== undefined && (prior === this.#moved || this.#line.every(({ ticket }) => ticket > prior));
    if (isNext && this.#hasRoom(request)) return this.#answer(this.#grant(request), { repeated: false, waitedMs: 0 });
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
      this.#sort();
      this.#arm();
      const waitMs = (request.waitSeconds ?? 0) * 1000;
      return this.#surroundings.after(waitMs, () => reject(this.#held(request, ticket)), true);
    }).finally(() => {
      this.#line = this.#line.filter((one) => one !== waiter);
      this.#serve();
    });
  }

  heartbeat(leaseId: string, ttlSeconds?: number): AnswerOf<'heartbeat'> {
    const grant = this.#grants.find((one) => one.leaseId === leaseId);
    if (!grant || grant.ending) throw this.#lost(grant ? endOf(grant) : (this.#ended.get(leaseId) ?? 'unknown'));
    grant.request.ttlSeconds = ttlSeconds ?? grant.request.ttlSeconds ?? 60;
    grant.version = this.#surroundings.uuid();
    grant.endsAt = this.#now + grant.request.ttlSeconds * 1000;
    return this.#grantFields(grant);
  }

  /** Ends a grant whose work is done, even if it has expired, unless another caller has taken the key. @returns false if the grant has ended */
  finish(leaseId: string): boolean {
    const grant = this.#grants.find((one) => one.leaseId === leaseId);
    if (grant) this.#end(grant, 'released');
    return grant !== undefined;
  }

  release(leaseId: string): AnswerOf<'release'> {
    const { key } = this;
    const grant = this.#grants.find((one) => one.leaseId === leaseId);
    if (grant) this.#end(grant, endOf(grant));
    const reason = this.#ended.get(leaseId) ?? 'unknown';
    if (grant || reason === 'released') return { key, released: true };
    const isShown = reason === 'taken' || reason === 'broken' || reason === 'superseded';
    return { key, released: false, reason: isShown ? reason : 'unknown' };
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
    this.#replace.leave({ requestId });
    return { key, requestId, cancelled: true };
  }

  /** @throws HoldfastError NotFound if no grant has this fence; Conflict if an exclusive holder has another fence */
  break({ fence, wait = false }: RequestOf<'breakLease'>): AnswerOf<'breakLease'> {
    const { key } = this;
    const grant = this.#grants.find((one) => one.fence === fence);
    if (!grant && this.#grants.length > 0 && this.#lastExclusive) {
      const { holders, used, limit, cap, waiting, ...actual } = this.row();
      throw this.#problem('Conflict', 409, `the lease of ${key} has another fence`, { actual });
    }
    if (!grant) throw this.#problem('NotFound', 404, `no grant of ${key} has the fence ${fence}`);
    const { holder } = grant.request;
    if (wait) grant.ending = true;
    else this.#end(grant, 'broken');
    const holderUntil = instant(grant.endsAt);
    return { key, fence, holder, broken: true, ended: !wait, holderUntil, lastHeartbeatAt: null };
  }

  /** Caps what all holders may weigh, or lifts the cap. An undefined limit does not change the cap. */
  capBy({ limit, reason = '', forSeconds }: RequestOf<'capKey'>): AnswerOf<'capKey'> {
    const { key } = this;
    const before = this.#cap;
    if (limit !== undefined) {
      this.#cappedAt = Math.max(this.#now, this.#cappedAt + 1);
      const until = this.#now + (forSeconds ?? Number.POSITIVE_INFINITY) * 1000;
      this.#cap = limit === null ? undefined : { limit, reason, since: this.#cappedAt, until };
    }
    const [cap, former] = [this.#cap, before].map((one) => (one ? capView(one) : null));
    const answer = { key, cap: cap ?? null, before: former ?? null, used: this.#used, waiting: this.#line.length };
    this.#serve();
    return answer;
  }

  /** Makes a waiter next. */
  runNext({ ticket }: RequestOf<'runNext'>): AnswerOf<'runNext'> {
    const { key } = this;
    if (!this.#line.some((one) => one.ticket === ticket)) {
      const isGranted = this.#grants.some(({ request }) => request.ticket === ticket);
      return { key, ticket, moved: false, reason: isGranted ? 'granted' : 'unknown' };
    }
    const before = this.#moved === ticket ? undefined : this.#moved;
    this.#moved = ticket;
    this.#sort();
    this.#serve();
    return { key, ticket, moved: true, before: before ?? null };
  }

  /** Ends every grant. With `taken`, another holder then has the key, even if waiters are in line. */
  lose(reason: 'taken' | 'broken' | 'unknown'): void {
    for (const grant of this.#grants) this.#note(grant, reason);
    this.#grants = [];
    if (reason === 'taken') this.#grant({ key: this.key, holder: 'another', ttlSeconds: YEAR_SECONDS });
    this.#serve();
  }

  /** True if the key was ever granted or capped, so that the service has a record of it. */
  get hasRecord(): boolean {
    return this.#fence > 0 || this.#cappedAt > 0;
  }

  /** The answer of `readLeases` for the key. @param withWaiters whether the answer lists the line */
  view(withWaiters = false): Schemas['Key'] {
    const { hasRecord } = this;
    const holders = this.#grants.map((grant) => grantView(grant, this.#now));
    const limitBy = (this.#limit !== null && this.#limited?.request.holder) || null;
    const waiters = withWaiters && { waiters: this.#line.map((one) => waiterView(one, one.ticket === this.#moved)) };
    return { ...this.row(), holders, limitBy, previous: null, hasRecord, ...waiters };
  }

  /** The key's row in a list. @param holder the holder whose grant the row shows */
  row(holder?: string): Schemas['ListedKey'] {
    const { key } = this;
    const use = { holders: this.#grants.length, used: this.#used, limit: this.#limit };
    const common = { key, waiting: this.#line.length, ...use, ...(this.#capNow && { cap: capView(this.#capNow) }) };
    const grants = this.#grants.filter(({ request }) => holder === undefined || request.holder === holder);
    const expiredRank = ({ endsAt }: Grant) => Number(endsAt <= this.#now);
    const [grant] = grants.sort((left, right) => expiredRank(left) - expiredRank(right) || left.endsAt - right.endsAt);
    if (grant) {
      const { mode, weight, ...shown } = grantView(grant, this.#now);
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
    return this.#surroundings.wall();
  }

  get #lastExclusive(): Grant | undefined {
    return this.#last && isExclusive(this.#last.request) ? this.#last : undefined;
  }

  /** The cap, unless it has ended. */
  get #capNow(): Cap | undefined {
    return this.#cap && this.#cap.until > this.#now ? this.#cap : undefined;
  }

  get #live(): Grant[] {
    return this.#grants.filter(({ endsAt }) => endsAt > this.#now);
  }

  get #used(): number {
    return sumOf(this.#grants);
  }

  /** The limit that was named last. Null if the last grant was exclusive. */
  get #limit(): number | null {
    return this.#lastExclusive ? null : (this.#limited?.request.limit ?? null);
  }

  #hasRoom(request: AcquireRequest): boolean {
    return sumOf(this.#live) <= roomUnder(this.#capNow, this.#weighed(request));
  }

  /** The weight of a request, and how much all other holders may weigh. */
  #weighed(request: AcquireRequest) {
    const limit = limitOf(request);
    if (limit === null) return { weight: Number.POSITIVE_INFINITY, room: 0 };
    const { weight = 1 } = request;
    return { weight, room: this.#lastExclusive ? 0 : limit - weight };
  }

  #sort(): void {
    const moveRank = ({ ticket }: Waiter) => Number(ticket !== this.#moved);
    this.#line.sort((left, right) => moveRank(left) - moveRank(right) || (left.ticket < right.ticket ? -1 : 1));
  }

  #grant(request: AcquireRequest): Grant {
    for (const grant of this.#grants) if (grant.endsAt <= this.#now) this.#note(grant, 'taken');
    this.#grants = this.#grants.filter(({ leaseId }) => !this.#ended.has(leaseId));
    const { limit, ttlSeconds = 60, requestId } = request;
    if (requestId !== undefined) this.#ended.delete(requestId); // the request itself may have had one of the expired grants
    const before = this.#limited?.request.limit;
    const grant: Grant = {
      request,
      ...{ leaseId: this.#idPrefix + this.#surroundings.uuid(), version: this.#surroundings.uuid() },
      fence: ++this.#fence,
      acquiredAt: this.#now,
      endsAt: this.#now + ttlSeconds * 1000,
      previous: this.#previous,
      limitChanged: limit && before && limit !== before ? { from: before, to: limit } : undefined,
      ending: false,
    };
    const last = this.#lastExclusive;
    // The service remembers how an exclusive grant ended only until the next grant.
    if (last && this.#ended.get(last.leaseId) === 'released') this.#ended.set(last.leaseId, 'taken');
    if (limit !== undefined) this.#limited = grant;
    if (request.ticket === this.#moved) this.#moved = undefined;
    this.#replace.leave(request);
    this.#last = grant;
    this.#grants.push(grant);
    return grant;
  }

  /** Records how a grant ended, for its holder and for the next one. */
  #note(grant: Grant, reason: 'released' | LossReason): void {
    this.#ended.set(grant.leaseId, reason);
    if (grant.request.requestId !== undefined) this.#ended.set(grant.request.requestId, reason);
    this.#previous = previousOf(grant, reason, this.#now);
  }

  #end(grant: Grant, reason: 'released' | LossReason): void {
    this.#note(grant, reason);
    this.#grants = this.#grants.filter((one) => one !== grant);
    this.#serve();
  }

  /** Serves the waiters in order, and sets a timer for the moment when a grant or the cap ends. */
  #serve(): void {
    for (let next = this.#line[0]; next && this.#hasRoom(next.request); next = this.#line[0]) {
      this.#line.shift();
      const grant = this.#grant({ ...next.request, ticket: next.ticket });
      next.resolve(this.#answer(grant, { repeated: false, waitedMs: this.#now - next.since }));
    }
    this.#arm();
  }

  /** Sets the timer that serves the line when the next grant or the cap ends. */
  #arm(): void {
    this.#cancelTimer();
    const end = Math.min(...this.#live.map(({ endsAt }) => endsAt), this.#capNow?.until ?? Number.POSITIVE_INFINITY);
    if (this.#line.length === 0 || end === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#surroundings.after(end - this.#now, () => this.#serve(), true);
  }

  #held(request: AcquireRequest, ticket?: string): HoldfastError {
    const fields = this.refusal();
    const askedLimit = limitOf(request);
    const limit = askedLimit ?? fields.limit;
    const cap = this.#capNow;
    const isCapped = cap && cap.limit < (askedLimit ?? 1);
    const refusedDespiteRoom = this.#hasRoom(request) ? 'line' : undefined;
    const why = { cap: isCapped ? cap : undefined, askedLimit, isBound: false, refusedDespiteRoom } as const;
    const place = this.#line.findIndex((one) => one.ticket === ticket) + 1;
    return this.#problem('LeaseHeld', 409, heldText({ key: this.key, ...fields, ...why }), {
      ...fields,
      limit,
      ...(isCapped && cappedFields(cap, fields, this.#now)),
      ...(place > 0 && {
        ...{ place, waiting: this.#line.length - 1, comeBackMs: 0, keptMs: 5000 },
        retryWith: { ticket },
      }),
    });
  }

  /** The fields of a refusal: the grant that ends first, and all holders. */
  refusal() {
    const live = this.#live.sort((one, other) => one.endsAt - other.endsAt);
    const [soonest] = live;
    return {
      holder: soonest?.request.holder ?? null,
      fence: soonest?.fence ?? null,
      expiresAt: soonest ? instant(soonest.endsAt) : null,
      retryAfterMs: soonest ? soonest.endsAt - this.#now : 1000,
      used: this.#used,
      limit: this.#limit,
      holders: live.slice(0, 10).map((one) => holderOf(one)),
    };
  }

  #lost(reason: 'released' | LossReason): HoldfastError {
    const holder = this.#grants[0]?.request.holder ?? null;
    return this.#problem('LeaseLost', 412, `the lease of ${this.key} is lost: ${reason}`, { reason, holder });
  }

  #grantFields(grant: Grant): Schemas['Grant'] {
    const { leaseId, version, fence } = grant;
    const { holder, data } = grant.request;
    return {
      key: this.key,
      holder,
      leaseId,
      version,
      fence,
      ...timesOf(grant, this.#now),
      ...(data !== undefined && { data }),
    };
  }

  #answer(grant: Grant, how: { repeated: boolean; waitedMs: number }): Acquired {
    const { previous, limitChanged, request } = grant;
    const { mode, weight } = holderOf(grant);
    const terms = { mode, limit: limitOf(request), weight, used: this.#used };
    const permit = mode === 'shared' && { ...terms, ...(limitChanged && { limitChanged }) };
    return { ...this.#grantFields(grant), ...how, previous, ...permit };
  }
}

const sumOf = (grants: Grant[]): number => grants.reduce((sum, grant) => sum + weightOf(grant), 0);
