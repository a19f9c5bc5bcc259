import { AsyncLocalStorage } from 'node:async_hooks';
import { seededRandom } from '../../test/support/chance/seed.ts';

/**
 * Asynchronous work in a simulation, such as a caller, an invocation of a function, or a late request. It
 * runs until it waits for simulated time or for another thread. Time goes on only when all threads wait.
 */
export class Thread {
  readonly simulation: Simulation;
  readonly name: string;
  /** Values that each call in the thread can read. */
  readonly locals: object;
  /** How many waits of the thread are open. */
  waits = 0;
  /** How many calls of an SDK are under way. A thread may have several at once, each of which waits or is about to go on. */
  #operations = 0;
  ended = false;
  onDeath: () => void = () => {};
  #dead = false;

  constructor(simulation: Simulation, name: string, locals: object) {
    this.simulation = simulation;
    this.name = name;
    this.locals = locals;
  }

  /** Whether code of the thread runs. Even after a function has failed, the SDK goes on with the other requests of the function. */
  get isBusy(): boolean {
    return !this.#dead && ((!this.ended && this.waits === 0) || this.waits < this.#operations);
  }

  /** Whether nothing of the thread is left to do. */
  get isOver(): boolean {
    return this.#dead || (this.ended && this.#operations === 0);
  }

  /** Runs a call of the SDK. No other thread goes on during the call, because the SDK waits for its own timer between two tries. */
  async operation<T>(act: () => Promise<T>): Promise<T> {
    this.#operations++;
    this.simulation.keep(this);
    try {
      return await act();
    } finally {
      this.#operations--;
      this.simulation.changed();
    }
  }

  /** Stops the thread for good. */
  die(): void {
    this.#dead = true;
    this.onDeath();
    this.simulation.changed();
  }

  get isDead(): boolean {
    return this.#dead;
  }
}

interface Planned {
  at: number;
  order: number;
  act: () => void;
}

/**
 * The time of a world: events in simulated milliseconds, one at a time. The seed decides the order of events that are
 * due at once. What a thread does between two waits, even a request to an emulator, takes no simulated
 * time and is done before another thread goes on, so that a seed is an interleaving and gives the same one again.
 */
export class Simulation {
  /** Milliseconds since the beginning. */
  now = 0;
  /** Numbers the moments of a history, so that two in the same millisecond have an order too. */
  moment = 0;
  readonly #random: () => number;
  readonly #threads = new Set<Thread>();
  readonly #plans: Planned[] = [];
  #changed = false;
  /** How many requests to emulators are under way. A thread may have several, and wait for time in another branch. */
  #requests = 0;
  #whenOver: { resolve: () => void; reject: (error: unknown) => void } | undefined;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** Starts a thread. Its failure is the failure of the whole simulation. */
  spawn(name: string, locals: object, work: () => Promise<void>): Thread {
    const thread = new Thread(this, name, locals);
    this.#threads.add(thread);
    threads.run(thread, work).then(
      () => this.#end(thread),
      (error) => this.#whenOver?.reject(error),
    );
    return thread;
  }

  #end(thread: Thread): void {
    thread.ended = true;
    this.changed();
  }

  /** Makes time wait for a thread again that seemed to be over. */
  keep(thread: Thread): void {
    this.#threads.add(thread);
  }

  sleep(ms: number): Promise<void> {
    return this.wait<void>((resume) => this.at(this.now + Math.max(0, ms), resume));
  }

  at(at: number, act: () => void): void {
    const planned = { at, order: this.#random(), act };
    let place = this.#plans.length;
    while (place > 0 && isBefore(planned, this.#plans[place - 1])) place--;
    this.#plans.splice(place, 0, planned);
    this.changed();
  }

  /**
   * Lets the current thread wait until `resume` is called. @returns the value that `resume` receives. A thread that has crashed
   * during the wait never continues.
   */
  wait<T>(begin: (resume: (value: T) => void) => void): Promise<T> {
    const thread = currentThread();
    if (!thread || thread.simulation !== this) throw new Error('only a thread of the simulation can wait in it');
    return new Promise((resolve) => {
      thread.waits++;
      let resumed = false;
      const resume = (value: T) => {
        if (resumed || thread.isDead) return;
        resumed = true;
        thread.waits--;
        resolve(value);
      };
      begin(resume);
      this.changed();
    });
  }

  /** Runs a request while time stands still. */
  async busily<T>(act: () => Promise<T>): Promise<T> {
    this.#requests++;
    try {
      return await act();
    } finally {
      this.#requests--;
      this.changed();
    }
  }

  /** Runs the world. Resolves when nothing is left to do, and rejects with the failure of a thread. */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#whenOver = { resolve, reject };
      this.changed();
    });
  }

  /** Goes on after the microtasks, because only then the code has run that waited for a promise. */
  changed(): void {
    if (this.#changed) return;
    this.#changed = true;
    setImmediate(() => {
      this.#changed = false;
      this.#goOn();
    });
  }

  #goOn(): void {
    if (this.#requests > 0) return;
    for (const thread of this.#threads) {
      if (thread.isOver) this.#threads.delete(thread);
      else if (thread.isBusy) return;
    }
    const next = this.#plans.shift();
    if (!next) {
      this.#whenOver?.resolve();
      return;
    }
    this.now = Math.max(this.now, next.at);
    next.act();
    this.changed();
  }
}

const isBefore = (a: Planned, b: Planned | undefined) =>
  b !== undefined && (a.at < b.at || (a.at === b.at && a.order < b.order));

const threads = new AsyncLocalStorage<Thread>();

/** The thread that the running code belongs to, if any. */
export const currentThread = (): Thread | undefined => threads.getStore();
