import { isCall } from './rows.ts';
import { Broken } from './types.ts';
import type { Chooser, Scenario, World } from './world.ts';

/** When the faults have stopped: no party waits without end, no row is left, and the key can be had. */
function settle(world: World): void {
  const { faulted, stalled, foreign, vanished } = world;
  const { needsRepair, unaided } = world.scenario;
  const isQuiet = unaided || !(faulted || stalled || foreign || vanished || needsRepair);
  world.calm();
  rest(world);
  const waiting = () =>
    [...world.tasks.values()].filter((task) => task.alive && task.state === 'waiting' && !task.unreachable);
  const names = () => waiting().map(({ token }) => token);
  if (isQuiet && waiting().length > 0) throw new Broken(`${names()} wait without end, and nothing had gone wrong`);
  for (let minutes = 0; minutes < 14 && (waiting().length > 0 || world.rows.size > 0); minutes++) {
    world.time += 9;
    world.spawn('schedule', (config) => world.repair('k', config));
    rest(world);
  }
  if (waiting().length > 0) throw new Broken(`${names()} wait without end`);
  if ([...world.rows.values()].some(isCall)) throw new Broken(`rows are left: ${[...world.rows.keys()]}`);
  world.time += 60;
  let isHad = false;
  world.spawn('last', function* (config) {
    yield* world.acquireLast(config);
    isHad = true;
  });
  rest(world);
  if (!isHad) throw new Broken('the key is stuck');
}

/** Lets everybody finish. @throws Broken where that takes without end */
function rest(world: World): void {
  for (let steps = 0; steps < 6000; steps++) {
    const [party] = world.ready();
    if (party) world.act({ kind: 'step', party });
    else if (!world.deliverLate() && !world.sleepOn()) return;
  }
  throw new Broken('never comes to rest');
}

/** mulberry32 */
class Random implements Chooser {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  choose(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * n);
  }
}

/** Goes a given way, and then always the first. */
class Script implements Chooser {
  readonly replays = true;
  readonly taken: number[] = [];
  readonly widths: number[] = [];
  readonly #prefix: readonly number[];

  constructor(prefix: readonly number[]) {
    this.#prefix = prefix;
  }

  get isBeyond(): boolean {
    return this.taken.length >= this.#prefix.length;
  }

  choose(n: number): number {
    const choice = this.#prefix[this.taken.length] ?? 0;
    this.taken.push(choice);
    this.widths.push(n);
    return choice;
  }

  /** The next way, depth first; undefined where all were gone. */
  next(): number[] | undefined {
    let at = this.taken.length - 1;
    while (at >= 0 && Number(this.taken[at]) + 1 >= Number(this.widths[at])) at--;
    return at < 0 ? undefined : [...this.taken.slice(0, at), Number(this.taken[at]) + 1];
  }
}

const isFinding = (error: unknown): error is Error =>
  error instanceof Broken || (error instanceof Error && error.message.includes('Validation'));

const MOST_STEPS = 1500;

export interface Walked {
  world?: World | undefined;
  broken?: string;
}

/** What is played: each protocol has a world of its own. */
export type Game = new (scenario: Scenario, chooser: Chooser) => World;

/** One history of the scenario, by chance. */
export function walk(make: (chooser: Chooser) => Scenario, seed: number, game: Game): Walked {
  const chooser = new Random(seed);
  const scenario = make(chooser);
  const sparse = 1 + 5 * chooser.choose(3);
  let world: World | undefined;
  try {
    world = new game({ ...scenario, sparse }, chooser);
    scenario.start(world);
    for (let steps = 0; steps < MOST_STEPS && world.step(); ) steps++;
    settle(world);
    return { world };
  } catch (error) {
    if (!isFinding(error)) throw error;
    return { world, broken: error.message };
  }
}

export interface Exhausted extends Walked {
  states: number;
  histories: number;
  complete: boolean;
}

/** Every history of the scenario, depth first. States met before are not gone through again. */
export function exhaust(make: () => Scenario, seconds: number, game: Game): Exhausted {
  const seen = new Set<string>();
  const endsAt = Date.now() + seconds * 1000;
  let histories = 0;
  for (let prefix: number[] | undefined = []; prefix; ) {
    const chooser: Script = new Script(prefix);
    let world: World | undefined;
    try {
      world = new game(make(), chooser);
      world.scenario.start(world);
      if (!goesOn(world, chooser, seen)) {
        histories++;
        settle(world);
      }
    } catch (error) {
      if (!isFinding(error)) throw error;
      return { world, broken: error.message, states: seen.size, histories, complete: false };
    }
    prefix = chooser.next();
    if (Date.now() > endsAt && prefix) return { states: seen.size, histories, complete: false };
  }
  return { states: seen.size, histories, complete: true };
}

/** @returns whether it came to a state that was met before */
function goesOn(world: World, chooser: Script, seen: Set<string>): boolean {
  do {
    if (!chooser.isBeyond) continue;
    const hash = world.hash();
    if (seen.has(hash)) return true;
    seen.add(hash);
  } while (world.step());
  return false;
}
