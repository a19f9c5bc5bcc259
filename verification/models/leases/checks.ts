import type { Answer } from './common.ts';
import { Broken, type Config, type Item, type Op, type Party, type Task } from './types.ts';

interface KnownGrant {
  leaseId: string;
  fence: number;
  holder: string;
  requestId: string;
  ticket: string | undefined;
  task: boolean;
  /** Whether anybody was told that it holds. */
  held: boolean;
  claimedSeq?: number;
}

interface Believer {
  id: string;
  name: string;
  requestId: string;
  until: number;
  over: boolean;
}

/** The tables as they stand, and what must hold after each write and each answer. */
export abstract class Checks {
  readonly config: Config;
  time = 1000;
  seq = 0;
  item: Item | undefined;
  readonly rows = new Map<string, Item>();
  /** When a row was put, and when its mark was answered. */
  readonly put = new Map<string, number>();
  readonly joined = new Map<string, number>();
  /** The rows of tasks, also where they are gone. */
  readonly ofTasks = new Set<string>();
  readonly tasks = new Map<string, Task>();
  readonly granted: KnownGrant[] = [];
  readonly believers = new Map<string, Believer>();
  /** Lease ids that their holders have set out to release, and whose release was answered. */
  readonly gaveBack = new Set<string>();
  readonly endedOk = new Set<string>();
  /** Requests that somebody has set out to withdraw, and those of which that was answered. */
  readonly asked = new Set<string>();
  readonly withdrawn = new Set<string>();
  highest = -1;
  faulted = false;
  stalled = false;
  stalledSeq = -1;
  foreign = false;
  vanished = false;
  crashes = 0;
  releasedAt: number | undefined;

  constructor(config: Config) {
    this.config = config;
  }

  abstract note(text: string): void;

  checked(): unknown[] {
    const { highest, granted } = this;
    return [
      [...this.joined.keys()],
      [...this.believers.values()],
      highest,
      [...this.gaveBack],
      [...this.withdrawn],
      granted,
    ];
  }

  /** Another client writes no fence, so that the next one rises only as far as clocks agree. */
  onForeign(): void {
    this.foreign = true;
    this.highest -= this.config.skew + 1;
  }

  onWrite(before: Item | undefined, party: Party): void {
    const now = this.item;
    if (now?.lease_version === undefined) return;
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
    if (isSecond && !task && !this.foreign && !this.vanished)
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
    if (row.ticket === now.ticket || row.ticket === before?.ticket || row.cancelled_at !== undefined) return;
    if (before?.request_id === row.request_id && before?.holder === row.holder) return;
    const clock = (party.readAt ?? this.time) + party.offset;
    if (row.deadline <= Math.max(clock, this.time) + this.config.skew) return;
    if (now.ticket !== undefined) {
      const wasThere = Number(this.put.get(row.ticket)) < party.queried;
      if (row.ticket < now.ticket && wasThere) throw new Broken(`${now.holder} goes before ${row.holder} in line`);
    } else if (this.joined.has(row.ticket) && !this.granted.some(({ ticket }) => ticket === row.ticket))
      throw new Broken(`${now.holder} came in before ${row.holder}, which waited`);
  }

  onTold(op: Op, task: Task): void {
    if (!op.error) {
      if (op.grant.remaining < op.whole - this.config.fresh)
        throw new Broken(`${op.token} is told of ${op.grant.remaining} of ${op.whole}`);
      const grant = this.granted.find(({ leaseId }) => leaseId === op.grant.leaseId);
      if (grant) grant.held = true;
      return;
    }
    const had = this.granted.some(({ requestId, held }) => requestId === task.request.requestId && held);
    if (op.error === 'LeaseLost' && !task.retried && !had)
      throw new Broken(`${op.token} is told LeaseLost of a grant that nobody had`);
  }

  /** Somebody was told that it holds. @param from true time before it sent its call. @returns the lease id */
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
    if (this.foreign || this.vanished) return;
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

  stops(leaseId: string): void {
    const believer = this.believers.get(leaseId);
    if (believer) believer.over = true;
  }
}
