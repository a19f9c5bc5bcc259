import type { Caller } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { TaskResult } from '../step-functions.ts';
import { DurableExecution } from './durable.ts';
import { replaceOf } from './operators.ts';
import { type Bus, type Grant, sendEnd, type Terms, TTLS, USUAL_BUS, workUnder } from './work.ts';

const MAX_TRIES = 3;

/** How many of five executions that are not wrappers are those of durable functions: about a third of all executions. */
const DURABLE_OF_FIVE = 2;

/** An execution of a state machine or of a durable function. It parks, is notified, works under its leases and releases them, and may end at any moment. */
export function startExecution(caller: Caller, keys: readonly string[], terms: Terms = () => ({})): void {
  const id = Math.floor(caller.random() * 1e9).toString(36);
  const lot = Number.parseInt(id, 36);
  const all: Terms = (one, key) => {
    const asked = terms(one, key);
    return { ...asked, ...replaceOf(lot, { ...asked, waitSeconds: 1 }) };
  };
  if (lot % 5 < DURABLE_OF_FIVE)
    caller.start(`durable ${id}`, (one) => new DurableExecution(one, keys, { id, terms: all }).run());
  else caller.start(`execution ${id}`, (one) => new Worker(one, keys, { id, terms: all }).run());
}

export type Received = TaskResult | 'aborted' | 'invocation failed' | 'timed out';

/** What a task asks for. */
export interface TaskRequest {
  key: string;
  requestId: string;
  ttlSeconds: number;
  [field: string]: unknown;
}

interface Attempt {
  token: string;
  timeoutMs: number;
}

/** A status is at most this old, as docs/protocols/executions.md says. */
const MAX_LAG_MS = 60_000;

/** How long a redrive may lag in DescribeExecution. Each order of magnitude is equally likely. */
const redriveLagMs = (random: number): number => 20 * (MAX_LAG_MS / 20) ** random;

/** The life of an execution, as Step Functions and the event bus show it. */
export class Execution {
  readonly one: Caller;
  readonly arn: string;
  readonly keys: readonly string[];
  isAborted = false;
  hasEnded = false;
  /** Whether its event says how and when it ended. An operator who invokes the function by hand need not say so. */
  readonly eventShowsEnd: boolean = false;
  readonly bus: Bus = USUAL_BUS;
  /** Called when it is aborted from outside. */
  onAbort: () => void = () => {};
  /** Lets the execution go on where it waits. */
  #interrupt: (received: Received) => void = () => {};

  readonly #name: string;
  #tries = 0;

  constructor(one: Caller, keys: readonly string[], name: string) {
    this.one = one;
    this.#name = name;
    this.keys = keys;
    this.arn = `arn:aws:states:us-east-1:000000000000:execution:machine:${one.world.prefix}${name}`;
  }

  begin(): void {
    const { world, random } = this.one;
    world.service.stepFunctions.begin(this.arn);
    if (this.one.strikes('executionDeath', 0.3))
      world.simulation.at(world.simulation.now + 5 * 10_000 ** random(), () => this.#abort());
  }

  /** One try of a task: it brings its token to the service, and waits for the result. */
  async attempt(request: TaskRequest, { token, timeoutMs }: Attempt): Promise<Received> {
    const { simulation, service } = this.one.world;
    const { entry, answer: note } = this.one.note('task', { ...request, token });
    const task = service.stepFunctions.newTask(this.arn, token, (result) => {
      note(result.outcome, result.body);
      this.#interrupt(result);
    });
    const received = simulation.wait<Received>((resume) => {
      this.#interrupt = resume;
    });
    this.one.start(this.one.name, async (invoker) => {
      const answer = await invoker.call('acquire', { ...request, taskToken: task.token });
      if (answer?.outcome !== 'ok') return this.#interrupt('invocation failed');
      const { ticket, parked } = answer.body;
      entry.input = { ...entry.input, ticket, parked, parkedMs: simulation.now };
    });
    if (Number.isFinite(timeoutMs)) simulation.at(simulation.now + timeoutMs, () => this.#interrupt('timed out'));
    const what = await received;
    this.#interrupt = () => {};
    if (task.state === 'waiting') task.state = 'closed';
    if (typeof what !== 'object') entry.input = { ...entry.input, closed: what, closedMs: simulation.now };
    return what;
  }

  /** Runs a task that waits for its result by a token, and tries it again with a new token. */
  protected async tryAll(request: TaskRequest, timeoutMs: number): Promise<Grant | undefined> {
    for (let tries = 1; tries <= MAX_TRIES && !this.isAborted; tries++) {
      const token = `token-${this.one.world.prefix}${this.#name}-${++this.#tries}`;
      const enteredMs = this.one.world.simulation.now;
      const received = await this.attempt(request, { token, timeoutMs });
      if (received === 'aborted') return undefined;
      if (typeof received === 'object')
        return received.outcome === 'ok'
          ? { ...(received.body as unknown as Omit<Grant, 'key' | 'enteredMs'>), key: request.key, enteredMs }
          : undefined;
      await this.one.sleep(200 + this.one.random() * 3000);
    }
    return undefined;
  }

  #abort(): void {
    if (this.isAborted || this.hasEnded) return;
    this.isAborted = true;
    this.end('ABORTED');
    this.#interrupt('aborted');
    this.onAbort();
  }

  /** Ends the execution. The event of the end may be lost, late or sent twice. */
  end(status: 'SUCCEEDED' | 'FAILED' | 'ABORTED'): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    for (const key of this.keys)
      this.one.note('executionEnds', { key, holder: this.one.name, status }).answer('ok', {});
    const stopDate = Math.floor(BEGIN + this.one.world.simulation.now);
    sendEnd(this.one, this.arn, {
      ...{ status, bus: this.bus },
      event: this.eventShowsEnd ? { status, stopDate } : {},
    });
  }

  /** Redrives the execution after its end. The event may still arrive, and DescribeExecution may show the end for another minute. */
  redrive(): void {
    const { simulation, service } = this.one.world;
    this.hasEnded = false;
    this.isAborted = false;
    const show = service.stepFunctions.redrive(this.arn, simulation.now);
    simulation.at(simulation.now + redriveLagMs(this.one.random()), show);
    for (const key of this.keys) this.one.note('executionRedriven', { key, holder: this.one.name }).answer('ok', {});
  }
}

/** A client that knows the request of a task, and asks for the lease in its name, with the task's ticket or with its own. */
export async function askInTheNameOfATask(caller: Caller, names: readonly string[]): Promise<void> {
  const keys = names.map((name) => caller.world.prefix + name);
  const tasks = caller.world.entries.filter(({ call, input }) => call === 'task' && keys.includes(String(input.key)));
  if (tasks.length === 0) return;
  const { key, holder, requestId, ttlSeconds, limit, weight, mode, replace } = caller.pick(tasks.slice(-3)).input;
  const terms = Object.entries({ limit, weight, mode }).filter(([, value]) => value !== undefined);
  const replaces = replace === undefined ? {} : { replace };
  const wait = caller.random() < 0.9 ? { waitSeconds: 1 + Math.floor(caller.random() * 20), ...replaces } : {};
  const request = { key, holder, requestId, ttlSeconds, ...Object.fromEntries(terms), ...wait };
  const answer = await caller.call('acquire', request);
  if (answer?.outcome !== 'ok') return;
  const lease = { key, leaseId: answer.body.leaseId };
  const dice = caller.random();
  if (dice < 0.25) await caller.call('heartbeat', lease);
  else if (dice < 0.5) await caller.call('release', lease);
}

/** An execution whose own steps work under the leases. */
class Worker extends Execution {
  readonly #terms: Terms;

  constructor(one: Caller, keys: readonly string[], { id, terms }: { id: string; terms: Terms }) {
    super(one, keys, id);
    this.#terms = terms;
  }

  async run(): Promise<void> {
    this.begin();
    const isNamed = this.one.random() < 0.75;
    const held: Grant[] = [];
    for (const key of this.keys) {
      const granted = await this.#acquire(key, isNamed);
      if (!granted) break;
      held.push(granted);
    }
    for (const grant of held.toReversed()) await workUnder(this.one, grant, () => this.isAborted);
    if (!this.isAborted) this.end(held.length === this.keys.length ? 'SUCCEEDED' : 'FAILED');
  }

  async #acquire(key: string, isNamed: boolean): Promise<Grant | undefined> {
    const { random } = this.one;
    const request = {
      key,
      holder: this.one.name,
      // The request id stays the same when the task is tried again, and when the execution is redriven.
      requestId: `${this.arn} entered ${key}`,
      ttlSeconds: this.one.pick(TTLS),
      ...(random() < 0.4 && { parkSeconds: 5 + Math.floor(random() * 60) }),
      ...(isNamed && { execution: this.arn }),
      ...this.#terms(this.one, key),
    };
    const timeoutMs = random() < 0.2 ? 10_000 + random() * 60_000 : Number.POSITIVE_INFINITY;
    const granted = await this.tryAll(request, timeoutMs);
    if (granted || this.isAborted || !this.one.strikes('redriven', 0.3)) return granted;
    this.end('FAILED');
    await this.one.sleep(1100 * 30 ** random());
    this.redrive();
    return this.tryAll(request, timeoutMs);
  }
}
