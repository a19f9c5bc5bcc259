import { seededIds, seededRandom } from '../../test/support/chance/seed.ts';
import { type Answer, get, lambdaContext, post, throughTask } from '../../test/support/stack/adapters.ts';
import type { MachineClock } from './clocks.ts';
import { type FaultCounts, FaultSource, type RequestFault, type Script, ScriptedFaults } from './faults.ts';
import type { Entry, Instant } from './history.ts';
import type { FaultyService, Machine } from './service.ts';
import type { Simulation } from './simulation.ts';
import type { Sender } from './wire.ts';

/** What all callers of a world have in common. */
export interface CallerWorld {
  simulation: Simulation;
  service: FaultyService;
  /** The machines that functions run on. */
  clocks: MachineClock[];
  /** Clocks of third-party clients. */
  foreignClock: MachineClock;
  entries: Entry[];
  counts: FaultCounts;
  /** The prefix of each key and path. */
  prefix: string;
  /** The prefix of each alias. It differs in each run, because DynamoDB remembers the requests that made an alias even when the table is gone. */
  unique: string;
  facts: WorldFacts;
  /** Whether all faults have stopped. */
  calm: boolean;
}

/** What a checker must know of the world that a history comes from. */
export interface WorldFacts {
  /** Whether the clocks of the service agreed within CLOCK_SKEW_MS all the time. */
  withinBound: boolean;
  /** The furthest that any two clocks stood apart. */
  spreadMs: number;
  protocol: 'dynamo' | 'native';
  /** Whether a client of the Rust crate uses the keys of `leases`, `queue` and `permits`. */
  foreignLeases: boolean;
  foreignCommits: boolean;
  /** Whether writers of the Rust crate send an unanswered PUT again. That is their default, and a known risk. */
  foreignRetries: boolean;
  /** Whether expired records are cleaned up, with jumps of time that let them expire. */
  sweeps: boolean;
}

/** One step of a caller, and how often faults strike in it. */
export interface Step {
  id: number;
  actor: number;
  capability: string;
  seed: number;
  /** How many of its requests are struck, 0 to 1. */
  faultRate: number;
  /** The fault that strikes most of them. Undefined if all kinds are alike. */
  mostly?: RequestFault | undefined;
}

const READS = new Set(['readLeases', 'readCommit', 'readNames', 'readExpired', 'readOnce', 'readRates']);

/** The functions that the schedule and the event bus call, and not HTTP. */
const EVENTS = new Set(['repairQueues', 'executionEnded']);

/**
 * The remaining time that a function sees when it sets its timer, which runs in real time. The requests of a function end at its deadline in simulated
 * time (wire.ts), however slow the machine is.
 */
const REAL_TIMEOUT_MS = 3_600_000;

/** How long an HTTP API waits for a function. */
const GATEWAY_TIMEOUT_MS = 30_000;

/** A user of the service: through its real handlers or, as a third-party client, through the stores. */
export class Caller {
  readonly name: string;
  readonly world: CallerWorld;
  /** The numbers of the present step. */
  random: () => number = Math.random;
  #faults: FaultSource;
  #memories = new Map<string, object>();

  constructor(name: string, world: CallerWorld) {
    this.name = name;
    this.world = world;
    this.#faults = new FaultSource(seededRandom(0), 0, world.counts);
  }

  begin({ seed, faultRate, mostly }: Pick<Step, 'seed' | 'faultRate' | 'mostly'>): void {
    this.random = seededRandom(seed);
    this.#mostly = mostly;
    this.#faults = new FaultSource(seededRandom(seed ^ 0x5bd1e995), faultRate, this.world.counts, mostly);
  }
  #mostly: RequestFault | undefined;

  /** From now on, the script decides which requests of this caller are struck. */
  suffers(script: Script): void {
    this.#faults = new ScriptedFaults(seededRandom(Math.floor(this.random() * 2 ** 31)), this.world.counts, script);
  }

  /**
   * What the caller remembers of a capability. It is made when it is first asked for. `previous` is what the caller knew
   * before it crashed and began again.
   */
  memory<Memory extends object>(capability: string, make: (previous?: Memory) => Memory): Memory {
    const memory = (this.#memories.get(capability) as Memory | undefined) ?? make(this.#lost.get(capability) as Memory);
    this.#memories.set(capability, memory);
    return memory;
  }
  #lost = new Map<string, object>();

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.random() * values.length)] as T;
  }

  sleep(ms: number): Promise<void> {
    return this.world.simulation.sleep(ms);
  }

  strikes(kind: Parameters<FaultSource['strikes']>[0], probability: number): boolean {
    return this.#faults.strikes(kind, probability);
  }

  /** Starts an actor in a thread of its own. Faults strike it as often as this caller. */
  start(name: string, work: (one: Caller) => Promise<void>): void {
    const one = new Caller(name, this.world);
    one.begin({ seed: Math.floor(this.random() * 2 ** 31), faultRate: this.#faults.rate, mostly: this.#mostly });
    this.world.simulation.spawn(name, {}, () => work(one));
  }

  /** Records an event of an actor that is not a call. It has no answer until `answer` gives it one. */
  note(
    call: string,
    input: Readonly<Record<string, unknown>>,
  ): { entry: Entry; answer(outcome: string, body: object): void } {
    const entry = this.#entry(call, input, false);
    return { entry, answer: (outcome, body) => this.#answered(entry, outcome, { ...body }) };
  }

  /**
   * Calls a function. @returns undefined if no answer came
   * @param known what the checker must know and the function must not
   */
  async call(
    functionName: string,
    input: Readonly<Record<string, unknown>>,
    known: object = {},
  ): Promise<Answer | undefined> {
    if (this.world.calm) this.#faults = new FaultSource(this.#faults.random, 0, this.world.counts);
    const entry = this.#entry(functionName, { ...input, ...known }, false);
    if (!READS.has(functionName) && this.strikes('callDuplicated', 0.03)) this.#duplicate(functionName, input, known);
    const dies = this.strikes('callerDeath', 0.02);
    const patienceMs = dies ? this.#faults.magnitude(1, 2000) : GATEWAY_TIMEOUT_MS;
    const answer = await this.#within<Answer>(patienceMs, (done) => this.#invoke(functionName, input, entry, done));
    if (dies) {
      this.#lost = this.#memories;
      this.#memories = new Map();
      entry.faults.push('caller died');
      return undefined;
    }
    if (answer) this.#answered(entry, answer.outcome, answer.body);
    if (this.strikes('callerFreeze', 0.02)) await this.sleep(this.#faults.magnitude(200, 60_000));
    return answer;
  }

  /**
   * Records what a third-party client does as an entry of the history. `work` may end with undefined if the client crashed in
   * the middle, and so may the whole.
   */
  async foreign<Result extends object>(
    call: string,
    input: Readonly<Record<string, unknown>>,
    work: () => Promise<Result>,
  ): Promise<Result | undefined> {
    const entry = this.#entry(call, input, true);
    const { simulation, foreignClock } = this.world;
    return simulation.wait<Result | undefined>((resume) => {
      const locals = this.#locals(entry, foreignClock, Number.POSITIVE_INFINITY);
      const thread = simulation.spawn(`${this.name} ${call}`, locals, async () => {
        const result = await work().catch((error: Error) => error);
        const failed = result instanceof Error;
        this.#answered(
          entry,
          failed ? 'Error' : 'ok',
          failed ? { message: result.message } : { ...(result as object) },
        );
        resume(failed ? undefined : result);
      });
      // After a client has crashed, its caller starts another one.
      thread.onDeath = () => simulation.at(simulation.now + 1000, () => resume(undefined));
    });
  }

  #within<T>(ms: number, begin: (done: (value: T) => void) => void): Promise<T | undefined> {
    const { simulation } = this.world;
    return simulation.wait<T | undefined>((resume) => {
      simulation.at(simulation.now + ms, () => resume(undefined));
      begin(resume);
    });
  }

  #duplicate(functionName: string, input: Readonly<Record<string, unknown>>, known: object): void {
    const { simulation } = this.world;
    const delay = this.#faults.magnitude(1, 20_000);
    simulation.spawn('duplicate', {}, async () => {
      await simulation.sleep(delay);
      const entry = this.#entry(functionName, { ...input, ...known }, false);
      entry.faults.push('a duplicate of the call');
      this.#invoke(functionName, input, entry, () => {});
    });
  }

  /** Invokes a function on one of the machines. The request and the answer take a few milliseconds each. */
  #invoke(
    functionName: string,
    input: Readonly<Record<string, unknown>>,
    entry: Entry,
    done: (answer: Answer) => void,
  ): void {
    const { simulation, service, clocks, facts } = this.world;
    const clock = clocks[Math.floor(this.#faults.random() * clocks.length)] as MachineClock;
    const natively = `${functionName}Natively`;
    const variant = entry.input.directly ? `${functionName}Directly` : functionName;
    const name = facts.protocol === 'native' && natively in service.handlers ? natively : variant;
    const handler = service.handlers[name];
    if (!handler) throw new Error(`there is no function ${name}`);
    const timeoutMs = (service.timeoutSeconds[functionName] ?? 10) * 1000;
    const locals = this.#locals(entry, clock, simulation.now + timeoutMs - 500);
    const [thereMs, backMs] = [this.#faults.between(1, 15), this.#faults.between(1, 15)];
    simulation.spawn(`${functionName} of ${this.name}`, locals, async () => {
      await simulation.sleep(thereMs);
      const endsAt = simulation.now + timeoutMs;
      locals.deadlineAt = endsAt - 500;
      let isAsked = false;
      const getRemainingTimeInMillis = () => {
        const leftMs = isAsked ? Math.max(0, endsAt - simulation.now) : REAL_TIMEOUT_MS;
        isAsked = true;
        return leftMs;
      };
      const context = { ...lambdaContext(timeoutMs), getRemainingTimeInMillis };
      const answer = EVENTS.has(functionName)
        ? await throughTask(handler, input, context)
        : READS.has(functionName)
          ? await get(handler, input as Record<string, string>, context)
          : await post(handler, input, context);
      await simulation.sleep(backMs);
      done(answer);
    });
  }

  #locals(entry: Entry, clock: MachineClock, deadlineAt: number): Machine & Sender {
    const ids = seededIds(Math.floor(this.#faults.random() * 2 ** 31));
    return { clock, ids, faults: this.#faults, entry, deadlineAt };
  }

  #entry(call: string, input: Readonly<Record<string, unknown>>, foreign: boolean): Entry {
    const { entries } = this.world;
    const entry: Entry = {
      id: entries.length + 1,
      actor: this.name,
      foreign,
      call,
      input,
      calledAt: this.#instant(),
      faults: [],
      strays: 0,
    };
    entries.push(entry);
    return entry;
  }

  #answered(entry: Entry, outcome: string, body: Record<string, unknown>): void {
    Object.assign(entry, { answeredAt: this.#instant(), outcome, body });
  }

  #instant(): Instant {
    const { simulation } = this.world;
    return { moment: ++simulation.moment, ms: simulation.now };
  }
}
