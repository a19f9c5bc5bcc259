import type { Answer } from '../../../test/support/stack/adapters.ts';
import type { Caller } from '../caller.ts';
import type { Capability } from '../capability.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { ask, hasPython, type Next, newSession, type Try, type Turn, type What } from '../python.ts';
import { beliefs } from './beliefs.ts';
import { actOn, brokenOfLeases, settleLeases } from './leases.ts';
import { operatorOn } from './operators.ts';

/** Keys that only this capability uses. */
const KEYS = ['y0', 'y1'];
const TTLS = [2, 3, 5, 10];

/** For how long clients wait for a grant, in seconds. */
const WAITS = [0, 0, 2, 8, 30];

/** The name of the entries that record whether the work finds its lease held. */
const HOLDS = 'holds';

/**
 * Callers with the Python client: its own code decides when to ask again, when to send a heartbeat, and whether the lease is held. The simulation
 * controls its clocks (one may be wrong), the network and the pauses of the process.
 */
export const clients: Capability = {
  name: 'clients',
  occasional: 0.15,

  act: (caller) => actOn(caller, KEYS),

  others: [
    { name: 'python client', steps: 6, act: use },
    { name: 'other python client', steps: 6, act: use },
    operatorOn('operator of clients', KEYS),
  ],

  settle: (caller) => settleLeases(caller, KEYS),

  check: (history, facts) => [...brokenOfLeases(history, facts, KEYS), ...heldWithoutGrant(history)],
};

async function use(caller: Caller): Promise<void> {
  if (hasPython) await new Process(caller).run();
}

/** A process with the Python client, from its request to the release, or to the end of the process. */
class Process {
  readonly #caller: Caller;
  readonly #key: string;
  readonly #session = newSession();
  /** How far the wall clock is off, and for how long the monotonic clock stood still, in milliseconds. In one history, only one of the clocks is wrong. */
  #wallOffMs = 0;
  #stoodStillMs = 0;
  readonly #setsWall: boolean;
  /** Forgotten with the process. */
  readonly #life: object;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#key = caller.world.prefix + caller.pick(KEYS);
    this.#setsWall = caller.random() < 0.5;
    this.#life = caller.memory<object>('clients', () => ({}));
  }

  async run(): Promise<void> {
    const caller = this.#caller;
    const { simulation } = caller.world;
    const id = Math.floor(caller.random() * 1e9);
    const wait = caller.pick(WAITS);
    const options = {
      ttl: caller.pick(TTLS),
      wait,
      timeout: caller.pick([3, 10, 30]),
      release_timeout: caller.pick([1, 5]),
      ...(caller.random() < 0.1 && { max_hold: 0.5 + caller.random() * 3 }),
      // The model of leases does not follow a racer that waits: it may end an expired lease for callers that sleep.
      ...(caller.random() < 0.1 && wait === 0 && { fair: false }),
    };
    const interruptAt = caller.random() < 0.15 ? simulation.now + caller.random() * 8000 : Number.POSITIVE_INFINITY;
    const holder = `${caller.name}/${id.toString(36)}`;
    const first = await this.#ask<Next>({ begin: { key: this.#key, holder, options, seed: id } });
    const end = await this.#play(first, { interruptAt });
    if (end && 'held' in end) await this.#hold(end.held.leaseId);
    await this.#ask<Next>({ do: 'forget' });
  }

  /** Plays a protocol to its end. @returns undefined if the process crashed */
  async #play(
    first: Next,
    { session = this.#session, interruptAt = Number.POSITIVE_INFINITY } = {},
  ): Promise<Next | undefined> {
    let next = first;
    let stopAt = interruptAt;
    for (;;) {
      if (this.#isDead()) return undefined;
      const now = this.#caller.world.simulation.now;
      if ('send' in next || 'sleep' in next) {
        const answer = 'send' in next ? this.#send(next.send, stopAt - now) : this.#sleep(next.sleep, stopAt - now);
        const got = await answer;
        if (this.#isDead()) return undefined;
        if (got === 'stopped') {
          stopAt = Number.POSITIVE_INFINITY;
          next = await this.#ask<Next>({ do: 'interrupt' }, session);
        } else if ('send' in next) {
          await this.#pause();
          next = await this.#ask<Next>({ answer: (got as Answer | undefined) ?? null }, session);
        } else next = await this.#ask<Next>({ do: 'sleepIsOver' }, session);
      } else return next;
    }
  }

  /** Works under a lease, notes before each piece whether it holds the lease, and usually releases at the end. */
  async #hold(leaseId: string): Promise<void> {
    const caller = this.#caller;
    const { simulation } = caller.world;
    const endsAt = simulation.now + caller.random() * caller.pick([500, 5000, 30_000]);
    let turn = await this.#ask<Turn>({ do: 'turn' });
    let arrived: { answer: Answer | undefined } | undefined;
    let wake = () => {};
    let beats = 0;
    while (turn.wait !== null && simulation.now < endsAt && !this.#isDead()) {
      this.#noteHeld(leaseId, turn);
      const sent = turn.send;
      const nth = sent ? ++beats : beats;
      if (sent)
        simulation.spawn(`${caller.name} beats`, {}, async () => {
          const answer = await caller.call(sent.operation, sent.request);
          if (!answer || nth !== beats) return; // the client waits only for its last heartbeat
          arrived = { answer };
          wake();
        });
      const restMs = Math.min(turn.wait * 1000, endsAt - simulation.now);
      await simulation.wait<void>((resume) => {
        wake = () => resume();
        simulation.at(simulation.now + restMs, () => resume());
        if (arrived) resume();
      });
      await this.#pause();
      const { answer } = arrived ?? {};
      arrived = undefined;
      turn = answer ? await this.#ask<Turn>({ beaten: answer }) : await this.#ask<Turn>({ do: 'turn' });
    }
    if (this.#isDead()) return;
    this.#noteHeld(leaseId, turn);
    if (caller.random() < 0.85) await this.#play(await this.#ask<Next>({ do: 'release' }));
  }

  #noteHeld(leaseId: string, { isHeld, reason }: Turn): void {
    this.#caller.note(HOLDS, { key: this.#key, lease: leaseId }).answer('ok', { isHeld, reason });
  }

  #isDead(): boolean {
    return this.#caller.memory<object>('clients', () => ({})) !== this.#life;
  }

  /** Now and then, stops the process or the whole machine for a while, or sets the wall clock. */
  async #pause(): Promise<void> {
    const caller = this.#caller;
    const dice = caller.random();
    if (caller.world.calm || dice > 0.12) return;
    if (dice < 0.04 && this.#setsWall) {
      this.#wallOffMs += (caller.random() - 0.5) * 40_000;
      return;
    }
    const ms = 20 * 500 ** caller.random();
    if (dice < 0.04) this.#stoodStillMs += ms;
    await caller.sleep(ms);
  }

  async #ask<Reply extends Next | Turn>(what: What, session = this.#session): Promise<Reply> {
    const { simulation } = this.#caller.world;
    const wall = (BEGIN + simulation.now + this.#wallOffMs) / 1000;
    const monotonic = (simulation.now - this.#stoodStillMs) / 1000;
    const command = { ...what, session, now: [wall, monotonic] as const };
    const reply = await simulation.busily(() => ask<Reply>(command));
    for (const [later, seconds] of reply.later)
      simulation.spawn(`${this.#caller.name} later`, {}, () => this.#later(later, seconds));
    return reply;
  }

  /** A withdrawal that comes when the lost request must have ended, unless the process has crashed. */
  async #later(session: number, seconds: number): Promise<void> {
    await this.#caller.sleep(seconds * 1000);
    const first = await this.#ask<Next>({ do: 'sleepIsOver' }, session);
    await this.#play(first, { session });
    await this.#ask<Next>({ do: 'forget' }, session);
  }

  /** One try of a call. The client waits only for a time, and the call goes on without it. */
  #send({ operation, request, seconds }: Try, stopMs: number): Promise<Answer | 'stopped' | undefined> {
    const { simulation } = this.#caller.world;
    return simulation.wait((resume) => {
      simulation.at(simulation.now + seconds * 1000, () => resume(undefined));
      if (Number.isFinite(stopMs)) simulation.at(simulation.now + Math.max(0, stopMs), () => resume('stopped'));
      simulation.spawn(`${this.#caller.name} ${operation}`, {}, async () => {
        const { holder, requestId } = request;
        // The checkers tell requests apart by their holders, and a client may ask again by another id.
        const named = requestId === undefined ? request : { ...request, holder: `${holder}/${requestId}` };
        const answer = await this.#caller.call(operation, named);
        if (answer) resume(answer);
      });
    });
  }

  #sleep(seconds: number, stopMs: number): Promise<'stopped' | undefined> {
    const { simulation } = this.#caller.world;
    return simulation.wait((resume) => {
      simulation.at(simulation.now + seconds * 1000, () => resume(undefined));
      if (Number.isFinite(stopMs)) simulation.at(simulation.now + Math.max(0, stopMs), () => resume('stopped'));
    });
  }
}

/** Whenever the client said that its lease is held, an answer of the service said so too, counted from before its request. */
function heldWithoutGrant(history: readonly Entry[]): Violation[] {
  const answers = history.filter(({ call, body }) => call === HOLDS && body?.isHeld === true);
  if (answers.length === 0) return [];
  const granted = history.flatMap((entry) => believedFrom(entry));
  for (const answer of answers) {
    const { ms } = answer.calledAt;
    const own = granted.filter(({ lease }) => lease === answer.input.lease);
    if (!own.some(({ from, to }) => from <= ms && ms < to))
      return [
        {
          promise: 'a client holds a lease only while an answer says so',
          detail: `${answer.actor} said at ${ms.toFixed(0)} ms that it holds its lease`,
          entries: [answer, ...own.map(({ entry }) => entry)],
        },
      ];
  }
  return [];
}

/** The time during which a single answer lets its caller hold the lease. */
const believedFrom = (entry: Entry) => beliefs([entry]);
