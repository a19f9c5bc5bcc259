import {
  Broken,
  type Config,
  type Item,
  type Op,
  type Party,
  type Refused,
  type Self,
  type Steps,
  type Task,
} from '../engine/types.ts';
import { acquire } from '../leases/acquire.ts';
import type { Answer as LeaseAnswer } from '../leases/common.ts';
import { release } from '../leases/release.ts';
import { LeaseWorld } from '../leases/world.ts';
import { endsAt } from '../leases/writes.ts';
import { isPool } from '../line/kinds.ts';
import { acquire as acquirePermit } from '../permits/calls.ts';
import type { Answer } from '../permits/common.ts';
import { release as releasePermit } from '../permits/ends.ts';
import { withPermits } from '../permits/world.ts';
import { type Asked, EXCLUSIVE_WEIGHT, holdersOf, isThirdParty } from '../permits/writes.ts';
import { repairKey } from './repair.ts';

type Kind = 'lease' | 'pool';

/** One history of a key that is a lease and a pool in turn. */
export class KeyWorld extends withPermits(LeaseWorld) {
  /** When a caller last had the key as a lease, and as a pool. */
  readonly #heldAt: Record<Kind, number> = { lease: -1, pool: -1 };
  #foreignUntil = 0;
  /** Lease ids of leases that an operator broke. Their holders are stopped by the fence alone. */
  readonly broken = new Set<string>();

  override act(action: Parameters<LeaseWorld['act']>[0]): void {
    super.act(action);
    this.#noteHeld();
  }

  /** By the clock that is furthest behind. */
  #noteHeld(): void {
    const record = this.item;
    if (!record) return;
    const late = this.time - 2 * this.config.skew - 2;
    if (isPool(record)) {
      const isForeign = isThirdParty(record) && endsAt(record, this.config) >= late;
      if (isForeign || holdersOf(record).some(({ e }) => e >= late)) this.#heldAt.pool = this.seq;
    } else if (record.lease_version !== undefined && endsAt(record, this.config) >= late) this.#heldAt.lease = this.seq;
  }

  protected override checked(): unknown[] {
    return [...super.checked(), this.#heldAt, this.#foreignUntil];
  }

  override repair(key: string, config: Config): Steps<void> {
    return repairKey(key, config);
  }

  /** Both kinds of acquire win, in either order. */
  override *acquireLast(config: Config): Steps<void> {
    const plainFirst = this.item !== undefined && isPool(this.item);
    if (plainFirst) yield* this.#plainLast('last', config);
    const asked = { key: 'k', name: 'last', holder: 'last', ttl: 6, limit: 1, weight: EXCLUSIVE_WEIGHT, room: 0 };
    const { proof } = yield* acquirePermit(asked, config);
    yield* releasePermit(proof, config);
    if (!plainFirst) yield* this.#plainLast('last', config);
  }

  *#plainLast(name: string, config: Config): Steps<void> {
    const request = { key: 'k', requestId: name, holder: name, ttl: 8, wait: 0 };
    for (let tries = 1; ; tries++)
      try {
        const { leaseId } = yield* acquire(request, config);
        yield* release('k', leaseId, config);
        return;
      } catch (error) {
        if (tries === 3) throw error;
      }
  }

  protected override onWrite(before: Item | undefined, party: Party): void {
    const wasPool = before !== undefined && isPool(before);
    const pool = this.item !== undefined && isPool(this.item);
    if (before && this.item && wasPool !== pool) this.note(`  the key becomes a ${pool ? 'pool' : 'lease'}`);
    this.#noteHeld();
    if (this.item?.broken_at !== undefined && this.item.lease_id === before?.lease_id) {
      this.broken.add(this.item.lease_id);
      this.stops(this.item.lease_id);
    }
    super.onWrite(before, party);
  }

  protected override onTold(op: Op, task: Task): void {
    super.onTold(op, task);
    if (op.error !== 'WrongKind') return;
    const kind: Kind = this.askedBy.has(task.request.requestId) ? 'lease' : 'pool';
    if (this.#heldAt[kind] < Number(this.put.get(op.ticket)))
      throw new Broken(`${op.token} is told WrongKind, and no caller has had the key since its row was put`);
  }

  override onRefused(error: Refused, self: Self): void {
    if (error.code !== 'WrongKind') return;
    const kind: Kind = self.wantsPermit ? 'lease' : 'pool';
    if (this.#heldAt[kind] < self.startedAt) throw new Broken('WrongKind, and no caller has the key');
  }

  override believe(name: string, answer: LeaseAnswer, from: number, requestId: string): string {
    if (this.broken.has(answer.leaseId)) return answer.leaseId;
    const id = super.believe(name, answer, from, requestId);
    if (from + answer.waited + answer.remaining > this.time && !this.asked.has(requestId)) this.#checkBeside(name);
    return id;
  }

  override told(asked: Asked, answer: Answer, from: number): void {
    super.told(asked, answer, from);
    this.#checkBeside(asked.name);
  }

  override foreignHas(name: string, until: number): void {
    this.#foreignUntil = until;
    this.note(`  ${name} believes until ${until}`);
    this.#checkBeside(name);
  }

  /** No lease is believed in beside a permit. */
  #checkBeside(name: string): void {
    const leases = [...this.believers.values()].filter(({ over, until }) => !over && until > this.time);
    const permits = [...this.holds].filter(([id, { until }]) => !this.stopped.has(id) && until > this.time);
    const foreign = this.#foreignUntil > this.time ? ['a third-party client'] : [];
    const [lease] = [...leases.map((one) => one.name), ...foreign];
    const [permit] = permits;
    if (lease !== undefined && permit)
      throw new Broken(`${lease} has the lease beside the permit of ${permit[1].holder} (seen by ${name})`);
  }
}
