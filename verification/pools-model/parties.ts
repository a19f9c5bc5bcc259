import { Broken, type Config, type Op, Refused, type Steps } from '../queue-model/types.ts';
import { type Scenario, UNKNOWN, type World } from '../queue-model/world.ts';
import { type Answer, acquire, breakPermit, heartbeat, release, wait } from './calls.ts';
import type { PoolWorld } from './world.ts';
import { type Asked, EXCLUSIVE_WEIGHT, entryOf, holdersOf } from './writes.ts';

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
  /** How long it waits for a permit. */
  wait?: number;
  /** Never gives it back. */
  abandons?: boolean;
  /** Its first call must get one. */
  served?: boolean;
}

const TRUE_TIME: Op = { op: 'true' };
const sleep = (ms: number): Op => ({ op: 'sleep', ms });
const isExpected = (error: unknown): boolean => error === UNKNOWN || error instanceof Refused;

function requestOf(name: string, round: number, { limit = 1, weight = 1, exclusive, ttl = 6 }: CallerWish): Asked {
  const asked = { key: 'k', name: `${name}r${round}`, holder: name, ttl };
  if (exclusive) return { ...asked, limit: 1, weight: EXCLUSIVE_WEIGHT, room: 0 };
  return { ...asked, limit, weight, room: limit - weight };
}

/** A caller: asks, and again by the same request where it does not know, works, extends perhaps, gives back. */
function* caller(world: PoolWorld, name: string, wish: CallerWish, config: Config): Steps<void> {
  for (let round = 0; round < (wish.rounds ?? 1); round++) {
    if (wish.after) yield sleep(wish.after);
    const asked = requestOf(name, round, wish);
    const answer = yield* asking(world, asked, wish, config);
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

function* asking(world: PoolWorld, asked: Asked, wish: CallerWish, config: Config): Steps<Answer | undefined> {
  for (let tries = 0; tries < (wish.tries ?? 3); tries++) {
    const from: number = yield TRUE_TIME;
    try {
      const until = from + (wish.wait ?? 0);
      const answer = yield* wish.wait ? wait(asked, until, config) : acquire(asked, config);
      world.told(asked, answer, from);
      return answer;
    } catch (error) {
      if (!isExpected(error)) throw error;
      if (!(error instanceof Refused)) continue;
      world.note(`  ${asked.name} is refused: ${error.code} ${error.reason ?? ''}`);
      const own = entryOf(world.item ?? {}, asked.name);
      const stands = own !== undefined && own.e > world.time + config.skew;
      if (stands && !world.faulted && !world.stalled)
        throw new Broken(`${asked.name} is refused, and its own grant stands`);
      if (wish.served) throw new Broken(`${asked.name} is refused, and there was room`);
      if (error.code === 'LeaseLost') return undefined;
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
  for (let tries = 0; tries < 3; tries++)
    try {
      if (yield* release(proof, config)) world.released.add(asked.name);
      return;
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
}

/** Breaks the permit that came first; whoever has it goes on, and only its fence stops it. */
function* operator(world: PoolWorld, after: number, config: Config): Steps<void> {
  yield sleep(after);
  const [first] = holdersOf(world.item ?? {}).sort((one, other) => one.fence - other.fence);
  if (!first) return;
  for (let tries = 0; tries < 3; tries++)
    try {
      world.stopped.add(first.i);
      yield* breakPermit('k', first.fence, config);
      return;
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
}

/** Names a permit by guessing: it must not end. */
function* guesser(name: string, config: Config): Steps<void> {
  yield sleep(1);
  for (const slot of [1, 2]) yield* release({ key: 'k', name, leaseId: 'guessed', slot }, config);
}

type Named<T> = readonly [string, T];

interface Cast extends Partial<Omit<Scenario, 'start'>> {
  callers?: readonly Named<CallerWish>[];
  /** When operators break what they see. */
  breaks?: readonly number[];
  /** The requests whose permits are guessed at. */
  guessed?: readonly string[];
}

export const scenario = ({ callers = [], breaks = [], guessed = [], ...rest }: Cast): Scenario => ({
  fates: ['lostRequest', 'lostReply', 'unknown', 'crash', 'crashAfter', 'dup', 'stale'],
  jumps: [9],
  repairs: 0,
  start(world: World) {
    for (const [name, wish] of callers) world.spawn(name, (config) => caller(world as PoolWorld, name, wish, config));
    for (const after of breaks) world.spawn('operator', (config) => operator(world as PoolWorld, after, config));
    for (const name of guessed) world.spawn('guesser', (config) => guesser(name, config));
  },
  notified() {},
  crashed() {},
  ...rest,
});
