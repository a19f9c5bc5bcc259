import { AsyncLocalStorage } from 'node:async_hooks';
import { seededRandom } from '../../test/support/chance/seed.ts';

/**
 * One course of asynchronous work in a simulation: a caller, an invocation of a function, a request that is late. It
 * runs until it waits for simulated time or for another thread, and only when all threads wait does time go on.
 */
export class Thread {
  readonly simulation: Simulation;
  readonly name: string;
  /** What the thread carries for each call in it. */
  readonly locals: object;
  /** How many things it waits for. */
  waits = 0;
  /** Calls of an SDK under way in it: it may have several at once, each of which waits, or is about to go on. */
  #operations = 0;
  ended = false;
  onDeath: () => void = () => {};
  #dead = false;

  constructor(simulation: Simulation, name: string, locals: object) {
    this.simulation = simulation;
    this.name = name;
    this.locals = locals;
  }

  /** A function that has failed may have sent requests beside the one that failed, and the SDK still goes on with those. */
  get isBusy(): boolean {
    return !this.#dead && ((!this.ended && this.waits === 0) || this.waits < this.#operations);
  }

  /** Nothing of it is left to be done. */
  get isOver(): boolean {
    return this.#dead || (this.ended && this.#operations === 0);
  }

  /** Nobody else goes on while the operation does: between two tries, the SDK waits for a timer of its own. */
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

  /** It will never go on. */
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
 * A world's time and turns: discrete events in simulated milliseconds, one at a time, in an order that the seed decides
 * where two are due at once. What a thread does between two waits, requests to the emulators included, takes no simulated
 * time and is done before anybody else goes on, so that a seed is an interleaving and gives the same one again.
 */
export class Simulation {
  /** Milliseconds since the beginning. */
  now = 0;
  /** A number for every moment that a history tells of: two of the same millisecond have an order, too. */
  moment = 0;
  readonly #random: () => number;
  readonly #threads = new Set<Thread>();
  readonly #plans: Planned[] = [];
  #changed = false;
  /** Requests under way to an emulator: a thread may have several, and wait for time in another of its branches. */
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

  /** Time waits for it again, if it had seemed to be over. */
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
   * Lets the current thread wait until `resume` is called, with what it is called with. A thread that died
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

  /** Time stands still until it is done. */
  async busily<T>(act: () => Promise<T>): Promise<T> {
    this.#requests++;
    try {
      return await act();
    } finally {
      this.#requests--;
      this.changed();
    }
  }

  /** Resolves when nothing is left to be done; rejects with what went wrong in a thread. */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#whenOver = { resolve, reject };
      this.changed();
    });
  }

  /** Not at once: what becomes of a promise that was just kept shows only after the microtasks. */
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
