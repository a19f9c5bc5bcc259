import type { Caller } from '../caller.ts';
import type { TaskResult } from '../step-functions.ts';

const TTLS = [3, 5, 12, 30];
export const MAX_TTL_MS = 30_000;
const MAX_TRIES = 3;
const SECOND_PASS_MS = 90_000;

/** A state machine's execution: it parks, is woken, works under its lease, gives it back; and may die at any moment. */
export function startExecution(caller: Caller, key: string): void {
  const id = Math.floor(caller.random() * 1e9).toString(36);
  caller.start(`execution ${id}`, (one) => new Execution(one, key, id).run());
}

type Heard = TaskResult | 'aborted' | 'invocation failed' | 'timed out';

class Execution {
  readonly #one: Caller;
  readonly #key: string;
  readonly #id: string;
  readonly #arn: string;
  #aborted = false;
  /** Lets it go on where it waits. */
  #interrupt: (heard: Heard) => void = () => {};

  constructor(one: Caller, key: string, id: string) {
    this.#one = one;
    this.#key = key;
    this.#id = id;
    this.#arn = `arn:aws:states:us-east-1:000000000000:execution:machine:${one.world.prefix}${id}`;
  }

  async run(): Promise<void> {
    const { world, random } = this.#one;
    world.service.stepFunctions.begin(this.#arn);
    if (this.#one.strikes('executionDeath', 0.3))
      world.simulation.at(world.simulation.now + 5 * 10_000 ** random(), () => this.#abort());
    const isNamed = random() < 0.75;
    const request = {
      key: this.#key,
      holder: this.#one.name,
      // Stays the same when the task is tried again: it is made of the execution and of the time when the state was entered.
      requestId: `${this.#arn} entered`,
      ttlSeconds: this.#one.pick(TTLS),
      ...(random() < 0.4 && { parkSeconds: 5 + Math.floor(random() * 60) }),
      ...(isNamed && { execution: this.#arn }),
    };
    const timeoutMs = random() < 0.2 ? 10_000 + random() * 60_000 : Number.POSITIVE_INFINITY;
    const granted = await this.#acquire(request, timeoutMs);
    if (granted) await this.#work(granted);
    if (!this.#aborted) this.#end(granted ? 'SUCCEEDED' : 'FAILED');
  }

  /** A task that waits for its token, tried again with a new one. */
  async #acquire(request: object, timeoutMs: number): Promise<Grant | undefined> {
    for (let tries = 1; tries <= MAX_TRIES && !this.#aborted; tries++) {
      const heard = await this.#attempt(request, tries, timeoutMs);
      if (heard === 'aborted') return undefined;
      if (typeof heard === 'object') return heard.outcome === 'ok' ? (heard.body as unknown as Grant) : undefined;
      await this.#one.sleep(200 + this.#one.random() * 3000);
    }
    return undefined;
  }

  async #attempt(request: object, tries: number, timeoutMs: number): Promise<Heard> {
    const { simulation, service } = this.#one.world;
    const token = `${this.#one.world.prefix}${this.#id}-${tries}`;
    const { entry, tell } = this.#one.note('task', { ...request, token });
    const task = service.stepFunctions.newTask(this.#arn, token, (result) => {
      tell(result.outcome, result.body);
      this.#interrupt(result);
    });
    const heard = simulation.wait<Heard>((resume) => {
      this.#interrupt = resume;
    });
    this.#one.start(this.#one.name, async (invoker) => {
      const answer = await invoker.call('acquire', { ...request, taskToken: task.token });
      if (answer?.outcome !== 'ok') return this.#interrupt('invocation failed');
      const { ticket, parked } = answer.body;
      entry.input = { ...entry.input, ticket, parked, parkedMs: simulation.now };
    });
    if (Number.isFinite(timeoutMs)) simulation.at(simulation.now + timeoutMs, () => this.#interrupt('timed out'));
    const what = await heard;
    this.#interrupt = () => {};
    if (task.state === 'waiting') task.state = 'closed';
    if (typeof what !== 'object') entry.input = { ...entry.input, closed: what, closedMs: simulation.now };
    return what;
  }

  async #work({ leaseId, remainingMs, waitedMs }: Grant): Promise<void> {
    const { simulation } = this.#one.world;
    const { random } = this.#one;
    const lease = { key: this.#key, leaseId };
    let until = this.#one.world.entries.findLast(({ actor, call }) => actor === this.#one.name && call === 'task')
      ?.calledAt.ms as number;
    until += waitedMs + remainingMs;
    for (let beats = Math.floor(random() * 4); beats > 0 && !this.#aborted; beats--) {
      await this.#one.sleep(random() * Math.min(9000, Math.max(0, until - simulation.now)));
      if (this.#aborted || simulation.now >= until) break;
      const sentAt = simulation.now;
      const beat = await this.#one.call('heartbeat', lease);
      if (beat?.outcome === 'LeaseLost') return;
      if (beat?.outcome === 'ok') until = sentAt + Number(beat.body.remainingMs);
    }
    await this.#one.sleep(random() * 1500);
    for (let tries = 0; tries < MAX_TRIES && !this.#aborted; tries++)
      if ((await this.#one.call('release', lease))?.outcome === 'ok') return;
  }

  #abort(): void {
    if (this.#aborted || this.#hasEnded) return;
    this.#aborted = true;
    this.#end('ABORTED');
    this.#interrupt('aborted');
  }

  #hasEnded = false;

  /** Its end is told by events, at best effort. */
  #end(status: 'SUCCEEDED' | 'FAILED' | 'ABORTED'): void {
    this.#hasEnded = true;
    const { simulation, service } = this.#one.world;
    const { random } = this.#one;
    this.#one.note('executionEnds', { key: this.#key, holder: this.#one.name, status }).tell('ok', {});
    const show = service.stepFunctions.end(this.#arn, status);
    simulation.at(simulation.now + random() * 1000, show);
    if (this.#one.strikes('eventLost', 0.25)) return;
    const lateMs = this.#one.strikes('eventLate', 0.3) ? 1000 * 40 ** random() : 50 + random() * 500;
    const events = [lateMs];
    if (this.#one.strikes('eventTwice', 0.2)) events.push(lateMs + random() * 20_000);
    for (const ms of events) this.#tellOfEnd(ms, {});
    if (random() < 0.6) this.#tellOfEnd(SECOND_PASS_MS + lateMs, { again: true });
  }

  #tellOfEnd(afterMs: number, more: object): void {
    this.#one.start('bus', async (bus) => {
      await bus.sleep(afterMs);
      await bus.call('executionEnded', { execution: this.#arn, ...more });
    });
  }
}

interface Grant {
  leaseId: string;
  remainingMs: number;
  waitedMs: number;
}
