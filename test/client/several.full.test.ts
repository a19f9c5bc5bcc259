import { expect, it } from 'vitest';
import { Holdfast, HoldfastError, type HoldfastEvent, type Transport } from '../../client/src/index.ts';
import { HoldfastError as DomainError } from '../../shared/errors.ts';
import { acquire } from '../../shared/locks/acquire.ts';
import { heartbeat } from '../../shared/locks/heartbeat.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { release } from '../../shared/locks/release.ts';
import { type Clock, systemClock } from '../../shared/surroundings/clock.ts';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { call } from '../support/emulators/aws.ts';
import { IdleTime } from '../support/time/clock.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const TENANTS = 20;
/** The default is 400 jobs in all, as in CI. JOBS=2000 takes four minutes. */
const JOBS_OF_EACH = Number(process.env.JOBS ?? 400) / TENANTS;
/** How many callers of a tenant ask at once: twice as many as may work. */
const CALLERS_OF_EACH = 10;
const LIMIT_OF_EACH = 5;
const LIMIT = 20;
/** How long a job takes: half of it to one and a half. */
const JOB_MS = 1000;
/** How long a request to DynamoDB takes. */
const REQUEST_MS = 4;

/** How many there are, the most that there ever were, and their sum over time. */
class Count {
  now = 0;
  most = 0;
  #sum = 0;
  #changedAt: number;
  readonly #time: IdleTime;

  constructor(time: IdleTime) {
    this.#time = time;
    this.#changedAt = time.now();
  }

  change(by: 1 | -1): void {
    this.#sum = this.sum;
    this.#changedAt = this.#time.now();
    this.now += by;
    this.most = Math.max(this.most, this.now);
  }

  get sum(): number {
    return this.#sum + this.now * (this.#time.now() - this.#changedAt);
  }
}

/** The calls of the functions over an emulator, in requests that take some time of the clock. */
async function service(clock: Clock & Partial<Pick<IdleTime, 'during'>>): Promise<Transport> {
  const { dynamodb, dependencies } = await leaseWorld({ clock, ids: seededIds(testSeed()) });
  dynamodb.middlewareStack.add(
    (next) => async (args) => {
      await clock.sleep(REQUEST_MS / 2);
      const answer = await (clock.during ? clock.during(next(args)) : next(args));
      await clock.sleep(REQUEST_MS / 2);
      return answer;
    },
    { step: 'deserialize', priority: 'low', name: 'takes a while' },
  );
  const input = acquireInput();
  const calls: Record<string, (payload: never) => Promise<unknown>> = {
    acquire: (payload) => acquire(dependencies)(input.parse(JSON.parse(JSON.stringify(payload))), call()),
    heartbeat: (payload) => heartbeat(dependencies)(payload, call()),
    release: (payload) => release(dependencies)(payload, call()),
  };
  return async (operation, payload) => {
    const act = calls[operation];
    if (!act) throw new Error(`this service has no ${operation}`);
    return act(payload as never).catch((error) => {
      throw error instanceof DomainError ? new HoldfastError(error.problem('')) : error;
    });
  };
}

/** Code is loaded at the first calls in real time, in which a clock of the test would go on. */
async function loadCode(): Promise<void> {
  const holdfast = new Holdfast({ transport: await service(systemClock), holder: 'first' });
  const refused = () => holdfast.acquire('key', { limit: 1, waitMs: 1000 }).catch((error: unknown) => error);
  await holdfast.withLease('key', { limit: 1 }, refused);
  await Promise.all([1, 2].map(() => holdfast.withLeases([{ key: 'key', limit: 1 }], { waitMs: 5000 }, () => {})));
}

it('Jobs of 20 tenants keep both limits at every moment, use the total, and treat the tenants alike', async () => {
  await loadCode();
  const time = new IdleTime(seededRandom(testSeed()));
  const transport = await service(time);
  const [total, inUse] = [new Count(time), new Count(time)];
  const tenants = Array.from({ length: TENANTS }, () => new Count(time));
  const waits = tenants.map((): number[] => []);
  const finishedAt = tenants.map(() => 0);
  const startedAt = time.now();
  let used = 0;
  const onEvent = ({ key, type }: HoldfastEvent) => {
    if (key === 'api' && type === 'acquired') inUse.change(1);
    if (key === 'api' && type === 'released') inUse.change(-1);
    // Afterwards there are no longer enough callers.
    if (waits.flat().length < 0.9 * TENANTS * JOBS_OF_EACH) used = inUse.sum / (LIMIT * (time.now() - startedAt));
  };
  const caller = async (tenant: number, nth: number) => {
    const holdfast = new Holdfast({ transport, surroundings: time, holder: `${tenant}/${nth}`, onEvent });
    const own = { key: `api/tenant-${tenant}`, limit: LIMIT_OF_EACH };
    const all = { key: 'api', limit: LIMIT };
    // Callers name their keys in any order.
    const entries = nth % 2 ? [own, all] : [all, own];
    const counts = [total, tenants[tenant] as Count];
    for (let job = 0; job < JOBS_OF_EACH / CALLERS_OF_EACH; job++) {
      const askedAt = time.now();
      await holdfast.withLeases(entries, { waitMs: Number.POSITIVE_INFINITY }, async () => {
        waits[tenant]?.push(time.now() - askedAt);
        for (const count of counts) count.change(1);
        await time.sleep(JOB_MS * (0.5 + time.random()));
        for (const count of counts) count.change(-1);
      });
      finishedAt[tenant] = time.now() - startedAt;
    }
  };
  await Promise.all(
    tenants.flatMap((_, tenant) => Array.from({ length: CALLERS_OF_EACH }, (__, nth) => caller(tenant, nth))),
  );
  const [mean, slowest] = [finishedAt.reduce((sum, ms) => sum + ms) / TENANTS, Math.max(...finishedAt)];
  const context =
    `seed ${testSeed()}: ${used.toFixed(3)} of the total in use, the slowest tenant took ${(slowest / mean).toFixed(2)} of the mean, ` +
    `the longest wait ${Math.max(...waits.flat())} ms`;
  console.log(context);
  expect(waits.map(({ length }) => length)).toEqual(tenants.map(() => JOBS_OF_EACH));
  expect(Math.max(...tenants.map(({ most }) => most)), context).toBeLessThanOrEqual(LIMIT_OF_EACH);
  expect(total.most, context).toBe(LIMIT);
  expect(used, context).toBeGreaterThan(0.9);
  expect(slowest / mean, context).toBeLessThan(1.2);
}, 1_800_000);
