import { NOW, sleep, TRUE_TIME, ticketName } from '../engine/common.ts';
import { addTask, failTaskOfCrashed, isExpected, type TaskWish, threeTimes } from '../engine/parties.ts';
import { Broken, type Config, type Item, type Op, Refused, type Self, type Steps, type Task } from '../engine/types.ts';
import type { Scenario, World } from '../engine/world.ts';
import { wantsPermit } from '../line/kinds.ts';
import { acquireOrWait, heartbeat } from './calls.ts';
import type { Answer } from './common.ts';
import { breakAndWait, breakPermit, release } from './ends.ts';
import { cancel, park } from './queue.ts';
import type { PoolWorld } from './world.ts';
import { type Asked, EXCLUSIVE_WEIGHT, entryOf, holdersOf, mark } from './writes.ts';

/** How a caller behaves. Times are in units of the model. */
export interface CallerWish {
  limit?: number;
  weight?: number;
  exclusive?: boolean;
  ttl?: number;
  hold?: number;
  after?: number;
  rounds?: number;
  tries?: number;
  beats?: number;
  /** How long it works after its last beat. */
  lingers?: number;
  /** How long it waits for a permit, in line. */
  wait?: number;
  /** It looks and races instead. */
  races?: boolean;
  /** Asks again by its ticket, so long after LeaseHeld. */
  again?: number | undefined;
  /** Never gives it back. */
  abandons?: boolean;
  /** Its first call must get one. */
  served?: boolean;
}

function requestOf(name: string, round: number, { limit = 1, weight = 1, exclusive, ttl = 6 }: CallerWish): Asked {
  const asked = { key: 'k', name: `${name}r${round}`, holder: name, ttl };
  if (exclusive) return { ...asked, limit: 1, weight: EXCLUSIVE_WEIGHT, room: 0 };
  return { ...asked, limit, weight, room: limit - weight };
}

interface Running {
  config: Config;
  self: Self;
}

/** A caller. It asks, and asks again by the same request where it does not know the outcome. It works, extends its permit perhaps, and gives it back. */
function* caller(world: PoolWorld, name: string, wish: CallerWish, running: Running): Steps<void> {
  const { config } = running;
  for (let round = 0; round < (wish.rounds ?? 1); round++) {
    if (wish.after) yield sleep(wish.after);
    const asked = requestOf(name, round, wish);
    const answer = yield* asking(world, asked, wish, running);
    if (!answer) continue;
    yield sleep(wish.hold ?? 1);
    for (let beats = 0; beats < (wish.beats ?? 0); beats++) {
      yield* beat(world, asked, answer, config);
      yield sleep(wish.hold ?? 1);
    }
    if (wish.lingers) yield sleep(wish.lingers);
    if (!wish.abandons) yield* giveBack(world, asked, answer, config);
  }
}

function* asking(world: PoolWorld, asked: Asked, wish: CallerWish, running: Running): Steps<Answer | undefined> {
  const { config, self } = running;
  let before: string | undefined;
  for (let tries = 0; tries < (wish.tries ?? 3); tries++) {
    const from: number = yield TRUE_TIME;
    delete self.row;
    Object.assign(self, { startedAt: world.seq, wantsPermit: true });
    try {
      const { wait = 0, races = wait === 0 } = wish;
      const answer = yield* acquireOrWait(asked, { wait, races, before }, config, self);
      world.told(asked, answer, from);
      world.checkClaim(asked, answer);
      if (self.row !== undefined) {
        world.toldTo.add(self.row);
        world.checkCancelled(self.row);
      }
      return answer;
    } catch (error) {
      if (!isExpected(error)) throw error;
      if (!(error instanceof Refused)) continue;
      world.onRefused(error, self);
      world.note(`  ${asked.name} is refused: ${error.code} ${error.reason ?? ''}`);
      const own = entryOf(world.item ?? {}, asked.name);
      const stands = error.reason !== 'cancelled' && own !== undefined && own.e > world.time + config.skew;
      if (stands && !world.faulted && !world.stalled)
        throw new Broken(`${asked.name} is refused, and its own grant stands`);
      if (wish.served) throw new Broken(`${asked.name} is refused, and there was room`);
      if (error.code === 'LeaseLost') return undefined;
      before = error.ticket;
      if (wish.wait && !wish.races && wish.again === undefined) return undefined;
      if (wish.again !== undefined) yield sleep(wish.again);
    }
  }
  return undefined;
}

function* beat(world: PoolWorld, asked: Asked, { proof }: Answer, config: Config): Steps<void> {
  const from: number = yield TRUE_TIME;
  try {
    world.told(asked, yield* heartbeat(proof, config), from);
  } catch (error) {
    if (!isExpected(error)) throw error;
    if (error instanceof Refused) world.stopped.add(proof.leaseId);
  }
}

function* giveBack(world: PoolWorld, asked: Asked, { proof }: Answer, config: Config): Steps<void> {
  world.stopped.add(proof.leaseId);
  yield* threeTimes(function* () {
    if (yield* release(proof, config)) world.released.add(asked.name);
  });
}

/** Breaks the permit that came first. Its holder goes on, and only the fence stops it, unless the operator `waits` for that holder. */
function* operator(world: PoolWorld, { after, waits }: { after: number; waits: boolean }, config: Config): Steps<void> {
  yield sleep(after);
  const [first] = holdersOf(world.item ?? {}).sort((one, other) => one.fence - other.fence);
  if (!first) return;
  if (!waits) world.stopped.add(first.i);
  yield* threeTimes(() => (waits ? breakAndWait : breakPermit)('k', first.fence, config));
}

/** Names a permit by guessing: it must not end. */
function* guesser(name: string, config: Config): Steps<void> {
  yield sleep(1);
  yield* release({ key: 'k', name, leaseId: 'guessed' }, config);
}

/** Comes to the line, and dies there. */
function* ghost(name: string, wish: CallerWish, config: Config): Steps<void> {
  yield sleep(wish.after ?? 0);
  const asked = requestOf(name, 0, wish);
  const now: number = yield NOW;
  const deadline = now + (wish.wait ?? 0);
  const row = { ...asked, ticket: ticketName(now, config.uuid()), deadline, keep_until: deadline + config.keep };
  yield { op: 'putRow', key: 'k', item: row };
  yield mark('k', asked.name, now, config);
}

/** Sees the line, and takes a ticket out of it. */
function* canceller(world: PoolWorld, after: number, config: Config): Steps<void> {
  yield sleep(after);
  const rows: Item[] = yield { op: 'query', key: 'k' };
  const first = rows.find(wantsPermit);
  if (!first || !(yield* cancel('k', first.ticket, config))) return;
  world.cancelled.add(first.ticket);
  world.checkCancelled(first.ticket);
}

type PoolTaskWish = TaskWish & Pick<CallerWish, 'limit' | 'weight' | 'exclusive' | 'beats'>;

function addParked(world: PoolWorld, name: string, wish: PoolTaskWish): void {
  const asked = requestOf(name, 0, wish);
  const { parkMs = 10_000, beats = 0 } = wish;
  world.askedBy.set(asked.name, { ...asked, beats });
  const request = { key: 'k', requestId: asked.name, holder: name, ttl: asked.ttl, wait: 0 };
  addTask(world, wish, request, (token, config, self) => park(asked, { token, parkMs }, config, self));
}

function* worker(world: PoolWorld, task: Task, op: Op, config: Config): Steps<void> {
  const permit = world.askedBy.get(task.request.requestId) as Asked & { beats: number };
  world.told(permit, op.grant, task.from);
  for (let beats = 0; beats < permit.beats; beats++) yield* beat(world, permit, op.grant, config);
  yield sleep(task.hold);
  yield* giveBack(world, permit, op.grant, config);
}

type Named<T> = readonly [string, T];

export interface Cast extends Partial<Omit<Scenario, 'start'>> {
  callers?: readonly Named<CallerWish>[];
  tasks?: readonly Named<PoolTaskWish>[];
  /** Callers that die in line. */
  ghosts?: readonly Named<CallerWish>[];
  /** When operators cancel the first ticket. */
  cancels?: readonly number[];
  /** When operators break what they see. */
  breaks?: readonly number[];
  /** When operators break what they see, and wait for its holder. */
  waitingBreaks?: readonly number[];
  /** The requests whose permits are guessed at. */
  guessed?: readonly string[];
}

export const scenario = ({
  callers = [],
  tasks = [],
  ghosts = [],
  cancels = [],
  breaks = [],
  waitingBreaks = [],
  guessed = [],
  ...rest
}: Cast): Scenario => ({
  fates: ['lostRequest', 'lostReply', 'unknown', 'crash', 'crashAfter', 'dup', 'stale'],
  jumps: [9],
  repairs: 0,
  start(world: World) {
    for (const [name, wish] of callers)
      world.spawn(name, (config, self) => caller(world as PoolWorld, name, wish, { config, self }));
    for (const [name, wish] of tasks) addParked(world as PoolWorld, name, wish);
    for (const [name, wish] of ghosts) world.spawn(name, (config) => ghost(name, wish, config));
    for (const after of cancels) world.spawn('operator', (config) => canceller(world as PoolWorld, after, config));
    for (const after of breaks)
      world.spawn('operator', (config) => operator(world as PoolWorld, { after, waits: false }, config));
    for (const after of waitingBreaks)
      world.spawn('operator', (config) => operator(world as PoolWorld, { after, waits: true }, config));
    for (const name of guessed) world.spawn('guesser', (config) => guesser(name, config));
  },
  notified(world, op, task) {
    if (!task.alive) return;
    world.spawn(`work ${task.token}`, (config) => worker(world as PoolWorld, task, op, config));
  },
  crashed: failTaskOfCrashed,
  ...rest,
});
