import { NOW, sleep, TRUE_TIME } from '../engine/common.ts';
import { addTask, failTaskOfCrashed, isExpected, type TaskWish, threeTimes } from '../engine/parties.ts';
import { Broken, type Config, Refused, type Request, type Self, type Steps, type Task } from '../engine/types.ts';
import type { Scenario } from '../engine/world.ts';
import { acquire } from './acquire.ts';
import { withdraw } from './cancel.ts';
import type { Answer } from './common.ts';
import { heartbeat, release } from './release.ts';
import { park } from './tasks.ts';
import type { LeaseWorld } from './world.ts';

/** How a caller behaves. Times are in units of the model. */
interface CallerWish {
  wait?: number;
  ttl?: number;
  hold?: number;
  rounds?: number;
  after?: number;
  tries?: number;
  /** Asks again by the same request and its ticket, so long after LeaseHeld. */
  again?: number | undefined;
  /** Asks again without the ticket. */
  forgets?: boolean;
  beats?: number;
  /** Never gives the key back. */
  abandons?: boolean;
  /** Two callers of this name send one request. */
  twin?: boolean;
  /** No fault strikes it. */
  spared?: boolean;
  /** It must get the key; by this time. */
  served?: boolean;
  servedBy?: (world: LeaseWorld) => number;
}

const requestOf = (name: string, round: number, { ttl = 8, wait = 0 }: CallerWish = {}): Request => ({
  key: 'k',
  requestId: `${name}r${round}`,
  holder: name,
  ttl,
  wait,
});

function* giveBack(world: LeaseWorld, leaseId: string, config: Config): Steps<void> {
  world.stops(leaseId);
  world.gaveBack.add(leaseId);
  yield* threeTimes(function* () {
    if ((yield* release('k', leaseId, config)).released) world.endedOk.add(leaseId);
  });
}

/** A caller, waiting or not: acquires, asks again, works, gives back. */
function* caller(world: LeaseWorld, name: string, wish: CallerWish, config: Config, self: Self): Steps<void> {
  for (let round = 0; round < (wish.rounds ?? 1); round++) {
    if (wish.after) yield sleep(wish.after);
    const request = requestOf(name, round, wish);
    const got = yield* asking(world, { name, wish, request }, config, self);
    if (!got) continue;
    const { answer, from } = got;
    if (wish.servedBy) {
      const at: number = yield TRUE_TIME;
      if (at > wish.servedBy(world))
        throw new Broken(`${name} has waited until ${at}, and not only until ${wish.servedBy(world)}`);
    }
    const claimed = world.granted.find(({ leaseId }) => leaseId === answer.leaseId)?.claimedSeq ?? -1;
    if (answer.claimed && claimed > world.stalledSeq && answer.remaining * 2 <= request.ttl)
      throw new Broken(`${name} is told of a grant that is nearly over`);
    const id = world.believe(name, answer, from, request.requestId);
    if (wish.beats) yield* beat(world, { name, answer, requestId: request.requestId }, config);
    yield sleep(wish.hold ?? 1);
    if (wish.abandons) {
      world.faulted = true;
      continue;
    }
    world.releasedAt = world.time;
    yield* giveBack(world, id, config);
  }
}

function* beat(
  world: LeaseWorld,
  { name, answer, requestId }: { name: string; answer: Answer; requestId: string },
  config: Config,
): Steps<void> {
  const at: number = yield TRUE_TIME;
  try {
    const view = yield* heartbeat('k', answer.leaseId, config);
    world.believe(name, { ...view, waited: 0, repeated: true, previous: undefined, claimed: false }, at, requestId);
  } catch (error) {
    if (!isExpected(error)) throw error;
    if (error instanceof Refused) world.stops(answer.leaseId);
  }
}

interface Asking {
  name: string;
  wish: CallerWish;
  request: Request;
}

function* asking(
  world: LeaseWorld,
  { name, wish, request }: Asking,
  config: Config,
  self: Self,
): Steps<{ answer: Answer; from: number } | undefined> {
  let ticket: string | undefined;
  for (let tries = 0; tries < (wish.tries ?? 3); tries++) {
    if (world.asked.has(request.requestId)) return undefined; // a caller that has withdrawn it does not ask again
    const from: number = yield TRUE_TIME;
    self.startedAt = world.seq;
    self.asking = world.time;
    const kept = ticket;
    try {
      return { answer: yield* acquire({ ...request, ticket }, config, self), from };
    } catch (error) {
      if (!isExpected(error)) throw error;
      if (!(error instanceof Refused)) continue;
      world.onRefused(error, self);
      const at: number = yield TRUE_TIME;
      world.note(`  ${name} is refused: ${error.code} ${error.reason ?? ''}`);
      checkRefusal(world, { name, wish, request, error, waited: at - from });
      if (error.code === 'LeaseLost') return undefined;
      if (wish.served) throw new Broken(`${name} waits without effect`);
      const quiet = !world.faulted && !world.stalled && !world.foreign;
      const inTime =
        kept !== undefined && wish.again !== undefined && wish.again < config.keep - 1 && self.asking === from;
      const lostPlace =
        self.row !== undefined && self.row !== kept && !world.granted.some((one) => one.ticket === kept);
      if (quiet && inTime && lostPlace) throw new Broken(`${name} has lost its place`);
      if (error.ticket === undefined) continue;
      ticket = wish.forgets ? undefined : error.ticket;
      if (wish.again === undefined) return undefined;
      yield sleep(wish.again);
    }
  }
  return undefined;
}

function checkRefusal(
  world: LeaseWorld,
  { name, wish, request, error, waited }: Asking & { error: Refused; waited: number },
): void {
  const { code, reason } = error;
  const quiet = !world.stalled && !world.faulted;
  const { requestId } = request;
  const standing = world.item;
  const isOwn =
    standing?.request_id === requestId &&
    standing.holder === name &&
    standing.expires_at > world.time + world.config.skew;
  if (code === 'LeaseHeld' && isOwn && quiet && !wish.twin)
    throw new Broken(`${name} is refused, and its own grant stands`);
  if (wish.wait && quiet && waited > wish.wait + 2) throw new Broken(`${name} is refused so late: ${waited}`);
  const wasTold = world.granted.some((one) => one.requestId === requestId && one.held);
  const wasWithdrawn = world.withdrawn.has(requestId) || world.asked.has(requestId);
  if (code === 'LeaseLost' && reason === 'released' && !wasWithdrawn && !wasTold)
    throw new Broken(`${name} is told LeaseLost of a grant that nobody had`);
}

/** Withdraws a caller's request. */
function* withdrawer(world: LeaseWorld, { of, after }: { of: string; after: number }, config: Config): Steps<void> {
  yield sleep(after);
  const request = requestOf(of, 0);
  const { requestId } = request;
  world.asked.add(requestId);
  for (const believer of world.believers.values()) if (believer.requestId === requestId) believer.over = true;
  for (let tries = 0; tries < 3; tries++)
    try {
      const began = world.seq;
      const had = world.granted.filter((one) => one.requestId === requestId).map(({ leaseId }) => leaseId);
      const { cancelled } = yield* withdraw(request, config);
      world.note(`  withdrawal of ${requestId}: ${cancelled}`);
      const stands = world.item?.lease_version !== undefined && had.includes(world.item.lease_id);
      if (!world.faulted && !world.stalled && stands)
        throw new Broken(`the grant of ${requestId} stands after its withdrawal`);
      if (!cancelled) return;
      if (!world.parties.some((party) => isOnItsWay(world, party, of, began))) world.withdrawn.add(requestId);
      for (const one of world.granted)
        if (one.requestId === requestId) {
          world.gaveBack.add(one.leaseId);
          world.stops(one.leaseId);
        }
      return;
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
}

/** A call that has no row yet is not stopped. */
function isOnItsWay(
  world: LeaseWorld,
  { alive, name, self }: { alive: boolean; name: string; self: Self },
  of: string,
  began: number,
): boolean {
  if (!alive || name !== of) return false;
  const { row } = self;
  if (row === undefined) return true;
  const put = Number(world.put.get(row));
  const wasGranted = world.granted.some(({ ticket }) => ticket === row);
  return !wasGranted && (!(put <= began) || self.startedAt > put);
}

function* worker(world: LeaseWorld, task: Task, answer: Answer, config: Config): Steps<void> {
  const id = world.believe(task.token, answer, task.from, task.request.requestId);
  yield sleep(task.hold);
  yield* giveBack(world, id, config);
}

function addParked(world: LeaseWorld, name: string, wish: TaskWish): void {
  const request = { ...requestOf(name, 0, wish), execution: `x${name}` };
  const { parkMs = 10_000 } = wish;
  addTask(world, wish, request, (token, config, self) => park(request, { token, parkMs }, config, self));
}

/** Does what the Rust crate does: no mark, no fence, its own clock without a margin. */
function* foreign(
  world: LeaseWorld,
  name: string,
  { ttl = 4, after = 1, rounds = 1, beats = 0, hold = 1 }: CallerWish,
  config: Config,
): Steps<void> {
  for (let round = 0; round < rounds; round++) {
    yield sleep(after);
    const now: number = yield NOW;
    const from: number = yield TRUE_TIME;
    let version = config.uuid();
    const condition = 'attribute_not_exists(lease_version) OR lease_expiry < :now';
    const item = { key: 'k', lease_version: version, lease_expiry: now + ttl };
    const { won } = yield { op: 'put', key: 'k', foreign: true, item, condition, values: { ':now': now } };
    if (!won) continue;
    world.note(`  ${name} has it`);
    world.foreignHas(name, from + ttl);
    for (let beat = 0; beat < beats; beat++) {
      yield sleep(hold);
      const at: number = yield TRUE_TIME;
      const values = { ':v': version, ':next': config.uuid(), ':expiry': (yield NOW) + ttl };
      const update = 'SET lease_version = :next, lease_expiry = :expiry';
      const beaten = yield { op: 'update', key: 'k', foreign: true, update, condition: 'lease_version = :v', values };
      if (!beaten.won) break;
      version = values[':next'];
      world.foreignHas(name, at + ttl);
    }
    yield sleep(hold);
    world.foreignHas(name, 0);
    yield { op: 'delete', key: 'k', foreign: true, condition: 'lease_version = :v', values: { ':v': version } };
  }
}

type Named<T> = readonly [string, T];

export interface Cast extends Partial<Omit<Scenario, 'start'>> {
  callers?: readonly Named<CallerWish>[];
  tasks?: readonly Named<TaskWish>[];
  withdrawals?: readonly Named<{ of: string; after: number }>[];
  foreigners?: readonly Named<CallerWish>[];
}

export const scenario = ({ callers = [], tasks = [], withdrawals = [], foreigners = [], ...rest }: Cast): Scenario => ({
  fates: ['lostRequest', 'lostReply', 'unknown', 'crash', 'crashAfter', 'dup', 'stale'],
  jumps: [5],
  repairs: 0,
  start(world) {
    for (const [name, wish] of callers)
      world.spawn(name, (config, self, party) => {
        party.spared = wish.spared ?? false;
        return caller(world as LeaseWorld, name, wish, config, self);
      });
    for (const [name, wish] of tasks) addParked(world as LeaseWorld, name, wish);
    for (const [name, wish] of withdrawals)
      world.spawn(name, (config) => withdrawer(world as LeaseWorld, wish, config));
    for (const [name, wish] of foreigners)
      world.spawn(name, (config, _, party) => {
        party.spared = true;
        return foreign(world as LeaseWorld, name, wish, config);
      });
  },
  notified(world, op, task) {
    if (task.alive) world.spawn(`work ${task.token}`, (config) => worker(world as LeaseWorld, task, op.grant, config));
  },
  crashed: failTaskOfCrashed,
  ...rest,
});
