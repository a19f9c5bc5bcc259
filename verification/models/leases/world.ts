import { Broken, type Config, type Item, type Party, Refused, type Steps } from '../engine/types.ts';
import { World } from '../engine/world.ts';
import { repairKey } from '../keys/repair.ts';
import { isPool, wantsPermit } from '../line/kinds.ts';
import { acquire } from './acquire.ts';
import type { Answer } from './common.ts';

interface Believer {
  id: string;
  name: string;
  requestId: string;
  until: number;
  over: boolean;
}

/** One history of a lease, and what must hold after each write and each answer. */
export class LeaseWorld extends World {
  readonly believers = new Map<string, Believer>();
  /** Lease ids that their holders have set out to release, and whose release was answered. */
  readonly gaveBack = new Set<string>();
  readonly endedOk = new Set<string>();
  /** Requests that a caller has set out to withdraw, and those of which that was answered. */
  readonly asked = new Set<string>();
  readonly withdrawn = new Set<string>();
  releasedAt: number | undefined;
  /** A pool remembers no holder, and an operator breaks a lease that its holder is about to release. */
  isPreviousUnchecked = false;

  override repair(key: string, config: Config): Steps<void> {
    return repairKey(key, config);
  }

  override *acquireLast(config: Config): Steps<void> {
    const request = { key: 'k', requestId: 'last', holder: 'last', ttl: 8, wait: 0 };
    for (let tries = 1; ; tries++)
      try {
        yield* acquire(request, config);
        return;
      } catch (error) {
        if (!(error instanceof Refused) || tries === 3) throw error;
      }
  }

  protected override checked(): unknown[] {
    const { highest, granted } = this;
    return [
      ...super.checked(),
      [...this.joined.keys()],
      [...this.believers.values()],
      highest,
      [...this.gaveBack],
      [...this.withdrawn],
      granted,
    ];
  }

  /** Another client writes no fence, so that the next one rises only as far as clocks agree. */
  protected override onForeign(): void {
    super.onForeign();
    this.highest -= this.config.skew + 1;
  }

  protected override onWrite(before: Item | undefined, party: Party): void {
    const now = this.item;
    if (now && isPool(now)) this.isPreviousUnchecked = true;
    if (now?.lease_version === undefined || isPool(now)) return;
    if (now.lease_id !== before?.lease_id) {
      this.#onGrant(now, before, party);
      return;
    }
    if (before?.claim_ttl_ms === undefined || now.claim_ttl_ms !== undefined) return;
    const grant = this.granted.find(({ leaseId }) => leaseId === now.lease_id);
    if (grant) Object.assign(grant, { held: true, claimedSeq: this.seq });
    this.note(`  claimed by ${now.holder} until ${now.expires_at}`);
  }

  #onGrant(now: Item, before: Item | undefined, party: Party): void {
    const { holder, fence, ticket } = now;
    const unclaimed = now.claim_ttl_ms !== undefined;
    this.note(
      `  granted to ${holder}, fence ${fence}, until ${now.expires_at}${unclaimed ? ', unclaimed' : ''}, by ${party.name}`,
    );
    if (fence <= this.highest) throw new Broken(`fence ${fence} after ${this.highest}`);
    this.highest = fence;
    const task = ticket !== undefined && this.ofTasks.has(ticket);
    const last = this.granted.at(-1);
    const isSecond =
      last?.requestId === now.request_id && last?.holder === holder && last?.held && this.gaveBack.has(last.leaseId);
    // A second task of the request may have the key once a grant has expired that its holder was about to give back.
    const isExpired = before?.lease_version !== undefined && before.expires_at < this.time;
    if (isSecond && !(task && isExpired) && !this.foreign && !this.vanished)
      throw new Broken(`${now.request_id} is granted a second time`);
    const isAgain = this.granted.some((one) => one.ticket === ticket && !(one.held && this.faulted));
    if (ticket !== undefined && !task && !this.foreign && isAgain)
      throw new Broken(`${holder} is granted twice by one ticket`);
    const held = ticket === undefined || (!task && !unclaimed);
    const claimedSeq = held ? this.seq : -1;
    this.granted.push({
      leaseId: now.lease_id,
      fence,
      holder,
      requestId: now.request_id,
      held,
      claimedSeq,
      ticket,
      task,
    });
    if (!this.foreign && !this.vanished)
      for (const row of this.rows.values()) this.#mayGoBefore(row, now, before, party);
  }

  /** Nobody is granted the key before a row that came earlier, and nobody without a row before one that waits. */
  #mayGoBefore(row: Item, now: Item, before: Item | undefined, party: Party): void {
    if (
      wantsPermit(row) ||
      row.ticket === now.ticket ||
      row.ticket === before?.ticket ||
      row.cancelled_at !== undefined
    )
      return;
    if (before?.request_id === row.request_id && before?.holder === row.holder) return;
    const clock = (party.readAt ?? this.time) + party.offset;
    if (row.deadline <= Math.max(clock, this.time) + this.config.skew) return;
    if (now.ticket !== undefined) {
      const wasThere = Number(this.put.get(row.ticket)) < party.queried;
      if (row.ticket < now.ticket && wasThere) throw new Broken(`${now.holder} goes before ${row.holder} in line`);
    } else if (this.joined.has(row.ticket) && !this.granted.some(({ ticket }) => ticket === row.ticket))
      throw new Broken(`${now.holder} came in before ${row.holder}, which waited`);
  }

  /** A caller was told that it holds. @param from true time before it sent its call. @returns the lease id */
  believe(name: string, answer: Answer, from: number, requestId: string): string {
    const { leaseId: id, fence, previous } = answer;
    const until = from + answer.waited + answer.remaining;
    this.note(`  ${name} believes until ${until} (fence ${fence}, previous ${previous?.holder} ${previous?.ended})`);
    const stands = this.item?.lease_id === id && this.item.lease_version !== undefined;
    if (this.withdrawn.has(requestId) && until > this.time && stands)
      throw new Broken(`${name} holds, and had been withdrawn`);
    if (this.asked.has(requestId)) return id; // a caller that withdraws does not work with what it is answered afterwards
    for (const other of this.believers.values()) {
      const isOther = other.id !== id || other.requestId !== requestId;
      if (isOther && !other.over && other.until > this.time && until > this.time)
        throw new Broken(`${name} holds with ${other.name}`);
    }
    const known = this.believers.get(id);
    this.believers.set(id, {
      id,
      name,
      requestId,
      until: Math.max(until, known?.until ?? 0),
      over: known?.over ?? false,
    });
    this.#checkPrevious(name, answer);
    return id;
  }

  #checkPrevious(name: string, { fence, previous, repeated }: Answer): void {
    if (this.foreign || this.vanished || this.isPreviousUnchecked) return;
    if (!previous) {
      const quiet = !repeated && !this.faulted && !this.stalled;
      const hadOne = this.granted.some((one) => one.fence < fence && one.held && !one.task);
      if (quiet && hadOne) throw new Broken(`${name} learns nothing of the holder before`);
      return;
    }
    const earlier = this.granted.filter((one) => one.fence < fence).reverse();
    const told = earlier.find((one) => one.fence === previous.fence || one.held);
    const didEnd =
      told &&
      (previous.ended === 'released'
        ? this.gaveBack.has(told.leaseId) || this.asked.has(told.requestId)
        : !this.endedOk.has(told.leaseId));
    const hadIt = told && (told.ticket === undefined || told.task || told.held);
    if (told?.fence !== previous.fence || !didEnd || !hadIt)
      throw new Broken(
        `${name} is told that ${previous.holder} (${previous.fence}) ${previous.ended} before it, which is not so`,
      );
  }

  /** A third-party client relies on its lease until then, by its own clock. */
  foreignHas(_name: string, _until: number): void {}

  stops(leaseId: string): void {
    const believer = this.believers.get(leaseId);
    if (believer) believer.over = true;
  }
}
