import { rest } from '../leases/explore.ts';
import {
  Broken,
  type Config,
  type Item,
  type Op,
  type Party,
  Refused,
  type Steps,
  type Task,
} from '../leases/types.ts';
import { World } from '../leases/world.ts';
import { isCall } from '../leases/writes.ts';
import { acquire } from './calls.ts';
import type { Answer } from './common.ts';
import { repairPool } from './queue.ts';
import { type Asked, EXCLUSIVE_WEIGHT, ending, holdersOf, weightOf } from './writes.ts';

/** A party that has heard that it holds a permit. */
interface Believer {
  holder: string;
  weight: number;
  limit: number;
  until: number;
}

/** One history of a pool: the queue's world with a record of another kind, and what must hold of it. */
export class PoolWorld extends World {
  // Not initialised where they are declared: the parties start while the world is built.
  declare holding: Map<string, Believer> | undefined;
  declare ended: Set<string> | undefined;
  declare over: Set<string> | undefined;
  declare names: Set<string> | undefined;
  declare gone: Set<string> | undefined;
  declare heard: Set<string> | undefined;
  declare requests: Map<string, Asked & { beats: number }> | undefined;

  get holds(): Map<string, Believer> {
    this.holding ??= new Map();
    return this.holding;
  }

  /** Requests whose release was answered. */
  get released(): Set<string> {
    this.ended ??= new Set();
    return this.ended;
  }

  /** Lease ids on which no holder relies any more: their holders have set out to release them, or an operator to break them. */
  get stopped(): Set<string> {
    this.over ??= new Set();
    return this.over;
  }

  /** Requests that have been granted a permit. */
  get grantedTo(): Set<string> {
    this.names ??= new Set();
    return this.names;
  }

  /** Requests whose tickets an operator took out of the line, and those that heard of a permit. */
  get cancelled(): Set<string> {
    this.gone ??= new Set();
    return this.gone;
  }
  get toldTo(): Set<string> {
    this.heard ??= new Set();
    return this.heard;
  }

  /** Does not hold where something went wrong, so that a request was sent again. */
  checkCancelled(name: string): void {
    if (this.faulted || this.stalled || !this.cancelled.has(name) || !this.toldTo.has(name)) return;
    throw new Broken(`${name} is told of a permit, and was cancelled`);
  }

  /** What tasks ask for, by the names of their requests. */
  get askedBy(): Map<string, Asked & { beats: number }> {
    this.requests ??= new Map();
    return this.requests;
  }

  override checked(): unknown[] {
    const line = [[...this.joined.keys()], [...this.grantedTo], this.granted];
    return [this.highest, [...this.holds], [...this.released], [...this.stopped], line];
  }

  override repair(key: string, config: Config): Steps<void> {
    return repairPool(key, config);
  }

  override onTold(op: Op, task: Task): void {
    if (!op.cancelled) super.onTold(op, task);
  }

  protected override mayVanish({ ttl_at }: Item): boolean {
    return ttl_at < this.time;
  }

  override onWrite(before: Item | undefined, party: Party): void {
    const record = this.item ?? {};
    const holders = holdersOf(record);
    if ((record.used ?? 0) !== weightOf(holders))
      throw new Broken(`${record.used} are said to be in use, and ${weightOf(holders)} are`);
    for (const { name, i, fence, e, h, k, c } of holders.sort((one, other) => one.fence - other.fence)) {
      const was = before?.[`h:${name}`];
      if (was?.i === i && was.s !== undefined && e > was.e) throw new Broken(`${name} is extended, and was broken`);
      if (was?.i === i) continue;
      this.note(`  ${name} is granted a permit, fence ${fence}, until ${e}, by ${party.name}: ${record.used} in use`);
      if (fence <= this.highest) throw new Broken(`fence ${fence} after ${this.highest}`);
      this.highest = fence;
      if (this.released.has(name)) throw new Broken(`${name} is granted a second permit after it gave its own back`);
      for (const row of this.rows.values()) this.#mayGoBefore(row, { name, k }, party);
      this.grantedTo.add(name);
      const task = k !== undefined && this.rows.get(k)?.token !== undefined;
      const held = !task && c === undefined;
      this.granted.push({ leaseId: i, fence, holder: h, requestId: name, held, ticket: k, task });
    }
    for (const name of this.released) if (!ending(record, name)) this.released.delete(name); // others came after it
  }

  /** No ticket is granted a permit before one that came earlier, and no call without a ticket before one that waits. */
  #mayGoBefore(row: Item, { name, k }: { name: string; k: string | undefined }, party: Party): void {
    if (row.ticket === k || row.name === name || row.cancelled_at !== undefined || this.grantedTo.has(row.name)) return;
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
    this.toldTo.add(asked.name);
    this.checkCancelled(asked.name);
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

/** When the faults have stopped: no party waits for ever, no row is left, and a request for the key alone is granted. */
export function settle(world: World): void {
  const { faulted, stalled, vanished } = world;
  const { needsRepair, unaided } = world.scenario;
  const isQuiet = unaided || !(faulted || stalled || vanished || needsRepair);
  world.calm();
  rest(world);
  const waiting = () => [...world.tasks.values()].filter(({ alive, state }) => alive && state === 'waiting');
  const names = () => waiting().map(({ token }) => token);
  if (isQuiet && waiting().length > 0) throw new Broken(`${names()} wait for ever, and nothing had gone wrong`);
  for (let minutes = 0; minutes < 14 && (waiting().length > 0 || world.rows.size > 0); minutes++) {
    world.time += 9;
    world.spawn('schedule', (config) => world.repair('k', config));
    rest(world);
  }
  if (waiting().length > 0) throw new Broken(`${names()} wait for ever`);
  if ([...world.rows.values()].some(isCall)) throw new Broken(`rows are left: ${[...world.rows.keys()]}`);
  world.time += 60;
  let isHad = false;
  const asked = { key: 'k', name: 'last', holder: 'last', ttl: 6, limit: 1, weight: EXCLUSIVE_WEIGHT, room: 0 };
  world.spawn('last', function* (config) {
    try {
      yield* acquire(asked, config);
      isHad = true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  });
  rest(world);
  if (!isHad) throw new Broken('an expired permit is not had by the first caller');
}
