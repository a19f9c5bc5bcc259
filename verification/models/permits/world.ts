import { Broken, type Config, type Item, type Op, type Party, type Steps, type Task } from '../engine/types.ts';
import { World } from '../engine/world.ts';
import { repairKey } from '../keys/repair.ts';
import { isPool, OURS, wantsPermit } from '../line/kinds.ts';
import { acquire } from './calls.ts';
import type { Answer } from './common.ts';
import { type Asked, EXCLUSIVE_WEIGHT, ending, holdersOf, weightOf } from './writes.ts';

/** A party that has heard that it holds a permit. */
interface Believer {
  holder: string;
  weight: number;
  limit: number;
  until: number;
}

// biome-ignore lint/suspicious/noExplicitAny: TypeScript asks for it of a mixin
type Base = abstract new (...args: any[]) => World;

/** What must hold of the permits of a key. */
export function withPermits<B extends Base>(Worlds: B) {
  abstract class WithPermits extends Worlds {
    /** What its holders rely on, by lease id. */
    readonly holds = new Map<string, Believer>();
    /** Requests whose release was answered. */
    readonly released = new Set<string>();
    /** Lease ids on which no holder relies any more: their holders have set out to release them, or an operator to break them. */
    readonly stopped = new Set<string>();
    /** Requests that have been granted a permit. */
    readonly grantedTo = new Set<string>();
    /** Tickets that an operator took out of the line, and those whose calls were answered with a permit. */
    readonly cancelled = new Set<string>();
    readonly toldTo = new Set<string>();
    /** What tasks ask for, by the names of their requests. */
    isRingLost = false;
    readonly askedBy = new Map<string, Asked & { beats: number }>();

    /** Does not hold where something went wrong, so that a request was sent again. */
    checkCancelled(ticket: string): void {
      if (this.faulted || this.stalled || !this.cancelled.has(ticket) || !this.toldTo.has(ticket)) return;
      throw new Broken(`the call of ${ticket} is answered with a permit, and was cancelled`);
    }

    protected override checked(): unknown[] {
      const line = [[...this.joined.keys()], [...this.grantedTo], this.granted];
      return [...super.checked(), this.highest, [...this.holds], [...this.released], [...this.stopped], line];
    }

    protected override onTold(op: Op, task: Task): void {
      if (!op.cancelled) super.onTold(op, task);
    }

    protected override onWrite(before: Item | undefined, party: Party): void {
      super.onWrite(before, party);
      const record = this.item ?? {};
      const isSamePool = before?.used !== undefined && record.used !== undefined;
      if (before?.used !== undefined && !isSamePool) this.isRingLost = true;
      const holders = holdersOf(record);
      const isOfLease = record.lease_id !== undefined || record.waiters !== undefined;
      if (isPool(record) && isOfLease) throw new Broken('a record of both kinds');
      if (holders.length > 0 && record.lease_version !== OURS)
        throw new Broken('permits, and third-party clients find the key free');
      if ((record.used ?? 0) !== weightOf(holders))
        throw new Broken(`${record.used} are said to be in use, and ${weightOf(holders)} are`);
      for (const { name, i, fence, e, h, k, c } of holders.sort((one, other) => one.fence - other.fence)) {
        const was = before?.[`h:${name}`];
        if (was?.i === i && was.s !== undefined && e > was.e) throw new Broken(`${name} is extended, and was broken`);
        if (was?.i === i && was.c !== undefined && c === undefined) this.#onClaim(i);
        if (was?.i === i) continue;
        this.note(`  ${name} is granted a permit, fence ${fence}, until ${e}, by ${party.name}: ${record.used} in use`);
        if (fence <= this.highest) throw new Broken(`fence ${fence} after ${this.highest}`);
        this.highest = fence;
        // A change of kind keeps no ring, so a second row of the request is granted a permit that its task does not take.
        const isOfRow = this.isRingLost && k !== undefined && this.rows.has(k);
        if (this.released.has(name) && !isOfRow)
          throw new Broken(`${name} is granted a second permit after it gave its own back`);
        for (const row of this.rows.values()) this.#mayGoBefore(row, { name, k }, party);
        this.grantedTo.add(name);
        const task = k !== undefined && this.rows.get(k)?.token !== undefined;
        const held = !task && c === undefined;
        this.granted.push({ leaseId: i, fence, holder: h, requestId: name, held, ticket: k, task });
      }
      // Others came after it. A change of kind keeps no ring, and no late try gets into the next pool.
      if (isSamePool)
        for (const name of this.released)
          if (ending(before ?? {}, name) && !ending(record, name)) this.released.delete(name);
    }

    #onClaim(leaseId: string): void {
      const grant = this.granted.find((one) => one.leaseId === leaseId);
      if (grant) grant.claimedSeq = this.seq;
    }

    /** A call answers with more than half of the ttl, unless all stood still after its claim. */
    checkClaim(asked: Asked, { proof, remaining, claimed }: Answer): void {
      const claimedSeq = this.granted.find(({ leaseId }) => leaseId === proof.leaseId)?.claimedSeq ?? -1;
      if (claimed && claimedSeq > this.stalledSeq && remaining * 2 <= asked.ttl)
        throw new Broken(`${asked.name} is answered with a permit that is nearly over`);
    }

    /** No ticket is granted a permit before one that came earlier, and no call without a ticket before one that waits. */
    #mayGoBefore(row: Item, { name, k }: { name: string; k: string | undefined }, party: Party): void {
      if (this.foreign || this.vanished || !wantsPermit(row)) return;
      if (row.ticket === k || row.name === name || row.cancelled_at !== undefined || this.grantedTo.has(row.name))
        return;
      const clock = (party.readAt ?? this.time) + party.offset;
      if (row.deadline <= Math.max(clock, this.time) + this.config.skew) return;
      if (k === undefined) {
        if (this.joined.has(row.ticket)) throw new Broken(`${name} came in before ${row.name}, which waited`);
        return;
      }
      const wasThere = Number(this.put.get(row.ticket)) < party.queried;
      if (row.ticket < k && wasThere) throw new Broken(`${name} goes before ${row.name} in line`);
    }

    /** A party hears that it holds. @param from true time before it sent its call */
    told(asked: Asked, { proof, waited, remaining }: Answer, from: number): void {
      const until = from + Math.max(0, waited) + remaining;
      const known = this.holds.get(proof.leaseId);
      this.note(`  ${asked.name} believes until ${until}`);
      const { holder, weight, limit } = asked;
      const believer = { holder, weight, limit, until: Math.max(until, known?.until ?? 0) };
      this.holds.set(proof.leaseId, believer);
      const isHolding = ([id, one]: [string, Believer]) => !this.stopped.has(id) && one.until > this.time;
      if (!isHolding([proof.leaseId, believer])) return;
      const beside = [...this.holds].filter((one) => one[1] !== believer && isHolding(one)).map(([, one]) => one);
      const all = [believer, ...beside];
      const heavy = all.reduce((sum, one) => sum + one.weight, 0) > Math.max(...all.map((one) => one.limit));
      const isExclusive = all.some((one) => one.weight >= EXCLUSIVE_WEIGHT);
      if (isExclusive ? beside.length > 0 : heavy)
        throw new Broken(
          `${holder} holds ${weight} of ${limit} beside ${beside.map((one) => `${one.holder} (${one.weight})`)}`,
        );
    }
  }
  return WithPermits;
}

/** One history of a pool. */
export class PoolWorld extends withPermits(World) {
  override repair(key: string, config: Config): Steps<void> {
    return repairKey(key, config);
  }

  override acquireLast(config: Config): Steps<Answer> {
    const alone = { limit: 1, weight: EXCLUSIVE_WEIGHT, room: 0 };
    return acquire({ key: 'k', name: 'last', holder: 'last', ttl: 6, ...alone }, config);
  }
}
