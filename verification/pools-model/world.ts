import { rest } from '../queue-model/explore.ts';
import { Broken, type Item, type Party, Refused } from '../queue-model/types.ts';
import { World } from '../queue-model/world.ts';
import { type Answer, acquire } from './calls.ts';
import { type Asked, EXCLUSIVE_WEIGHT, ending, holdersOf, weightOf } from './writes.ts';

/** Somebody who was told that it holds a permit. */
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

  get holds(): Map<string, Believer> {
    this.holding ??= new Map();
    return this.holding;
  }

  /** Requests whose release was answered. */
  get released(): Set<string> {
    this.ended ??= new Set();
    return this.ended;
  }

  /** Lease ids that nobody relies on any more: their holders have set out to release them, or an operator to break them. */
  get stopped(): Set<string> {
    this.over ??= new Set();
    return this.over;
  }

  override checked(): unknown[] {
    return [this.highest, [...this.holds], [...this.released], [...this.stopped]];
  }

  protected override mayVanish({ ttl_at }: Item): boolean {
    return ttl_at < this.time;
  }

  override onWrite(before: Item | undefined, party: Party): void {
    const record = this.item ?? {};
    const holders = holdersOf(record);
    if ((record.used ?? 0) !== weightOf(holders))
      throw new Broken(`${record.used} are said to be in use, and ${weightOf(holders)} are`);
    for (const { name, i, fence, e } of holders) {
      if (before?.[`h:${name}`]?.i === i) continue;
      this.note(`  ${name} is granted a permit, fence ${fence}, until ${e}, by ${party.name}: ${record.used} in use`);
      if (fence <= this.highest) throw new Broken(`fence ${fence} after ${this.highest}`);
      this.highest = fence;
      if (this.released.has(name)) throw new Broken(`${name} is granted a second permit after it gave its own back`);
    }
    for (const name of this.released) if (!ending(record, name)) this.released.delete(name); // others came after it
  }

  /** Somebody is told that it holds. @param from true time before it sent its call */
  told(asked: Asked, { proof, remaining }: Answer, from: number): void {
    const until = from + remaining;
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

/** When the faults have stopped: everybody comes to an end, and one who wants the key alone can have it. */
export function settle(world: World): void {
  world.calm();
  rest(world);
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
