import { createHash } from 'node:crypto';
import { ACCOUNT, REGION } from '../../../infrastructure/logical-ids.ts';
import type { DurableStatus } from '../../../test/support/emulators/callback-model.ts';
import type { Caller } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry } from '../history.ts';
import type { TaskResult } from '../step-functions.ts';
import { type Grant, sendEnd, type Terms, TTLS, workUnder } from './work.ts';

/** How many tries the step of a submitter has. */
const MAX_SUBMISSIONS = 6;
/** How long a callback waits after the deadline of its waiter. */
const SPARE_MS = 180_000;
/** After a stop, code runs on to its next checkpoint. */
const RUNS_ON_MS = 60_000;

/** Half of the durable executions are bound. The number modulo 5 already decides which executions are durable (executions.ts), so this takes the rest. */
const isBoundOf = (id: string): boolean => Math.floor(Number.parseInt(id, 36) / 5) % 2 === 0;

interface Named {
  id: string;
  terms: Terms;
}

/** An execution of a durable function: it waits suspended for its leases, works under them, and releases them. It may be stopped at any moment. */
export class DurableExecution {
  readonly #one: Caller;
  readonly #arn: string;
  readonly #id: string;
  readonly #keys: readonly string[];
  readonly #terms: Terms;
  #hasEnded = false;
  /** Until when code goes on that still runs after a stop. */
  #codeUntil = Number.POSITIVE_INFINITY;
  #callbacks = 0;

  constructor(one: Caller, keys: readonly string[], { id, terms }: Named) {
    this.#one = one;
    this.#keys = keys;
    this.#id = id;
    this.#terms = terms;
    const name = `${one.world.prefix}${id}`.replaceAll(/[^\w-]/g, '-');
    this.#arn = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:work:$LATEST/durable-execution/${name}/${id}`;
  }

  async run(): Promise<void> {
    this.begin();
    const held: Grant[] = [];
    for (const key of this.#keys) {
      const granted = await this.acquire(key);
      if (!granted) break;
      held.push(granted);
    }
    for (const grant of held.toReversed()) await workUnder(this.#one, grant, () => this.isOver());
    this.end(held.length === this.#keys.length ? 'SUCCEEDED' : 'FAILED');
  }

  protected begin(): void {
    const { world, random } = this.#one;
    world.service.durable.begin(this.#arn);
    if (this.#one.strikes('executionDeath', 0.3))
      world.simulation.at(world.simulation.now + 5 * 10_000 ** random(), () => this.#stop());
  }

  /** Whether its code has stopped. */
  protected isOver(): boolean {
    return this.#hasEnded && this.#one.world.simulation.now >= this.#codeUntil;
  }

  /** Ends the execution. An invocation that is running goes on. */
  #stop(): void {
    const { random, world } = this.#one;
    this.#codeUntil = world.simulation.now + random() * RUNS_ON_MS;
    this.end(this.#one.pick(['STOPPED', 'TIMED_OUT', 'FAILED']));
  }

  protected end(status: Exclude<DurableStatus, 'RUNNING'>): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const one = this.#one;
    for (const key of this.#keys) one.note('executionEnds', { key, holder: one.name, status }).answer('ok', {});
    const stopDate = new Date(Math.floor(BEGIN + one.world.simulation.now)).toISOString();
    sendEnd(one, this.#arn, { status, event: { status, stopDate } });
  }

  /** What `waitForCallback` does: a step submits the callback, and the execution is suspended until the callback ends. */
  protected async acquire(key: string): Promise<Grant | undefined> {
    const one = this.#one;
    const { simulation, service } = one.world;
    if (this.#hasEnded) return undefined;
    const id = Buffer.from(`${one.world.prefix}${this.#id}-${++this.#callbacks}`).toString('base64');
    const { parkSeconds, ...request } = {
      ...{ key, holder: one.name, ...this.#lasting() },
      ...this.#terms(one, key),
      parkSeconds: one.random() < 0.4 ? 5 + Math.floor(one.random() * 60) : 600,
    };
    const submission = { ...request, parkSeconds, callbackId: id };
    // The service makes this request id from the callback id.
    const requestId = `c-${createHash('sha256').update(id).digest('base64url')}`;
    const enteredMs = simulation.now;
    const { entry, answer: note } = one.note('task', { ...request, parkSeconds, requestId, token: id });
    const received = await simulation.wait<TaskResult | undefined>((resume) => {
      service.durable.newCallback(this.#arn, id, (result) => {
        if (result) note(result.outcome, result.body);
        else entry.input = { ...entry.input, closed: 'ended', closedMs: simulation.now };
        resume(result);
      });
      simulation.at(simulation.now + parkSeconds * 1000 + SPARE_MS, () => service.durable.close(id));
      this.#submit(submission, { requestId, entry });
    });
    if (received && one.strikes('submittedAgain', 0.1)) this.#submitAgain(submission, requestId, one.random() * 30_000);
    if (received?.outcome !== 'ok') return undefined;
    return { ...(received.body as unknown as Omit<Grant, 'key' | 'enteredMs'>), key, enteredMs };
  }

  /** The terms of a request: a ttl, or a bound grant whose grace lasts as long as code may run on. */
  #lasting(): object {
    const [ttlSeconds, hasGrace] = [this.#one.pick(TTLS), this.#one.random() < 0.75];
    const execution = this.#arn;
    if (isBoundOf(this.#id)) return { bound: true, execution, ...(hasGrace && { graceSeconds: RUNS_ON_MS / 1000 }) };
    return { ttlSeconds, execution };
  }

  /** The step that submits a callback: it is tried again after a failure, and may run again although it has succeeded. */
  #submit(submission: Submission, { requestId, entry }: { requestId: string; entry: Entry }): void {
    const one = this.#one;
    const { simulation } = one.world;
    one.start(one.name, async (invoker) => {
      for (let tries = 0; tries < MAX_SUBMISSIONS && !this.#hasEnded; tries++) {
        const answer = await invoker.call('acquire', submission, { requestId, taskToken: submission.callbackId });
        if (answer?.outcome === 'ok') {
          const { ticket, parked } = answer.body;
          entry.input = { ...entry.input, ticket, parked, parkedMs: simulation.now };
          return;
        }
        if (answer?.outcome === 'QueueFull') break;
        await invoker.sleep(1000 * 2 ** tries * (0.5 + invoker.random()));
      }
      this.submissionFailed();
    });
    if (one.strikes('submittedAgain', 0.2)) this.#submitAgain(submission, requestId, 20_000 ** one.random());
  }

  /** Called when the step has no tries left. */
  protected submissionFailed(): void {
    this.end('FAILED');
  }

  /** The invocation crashed between the call and the checkpoint of its step. */
  #submitAgain(submission: Submission, requestId: string, afterMs: number): void {
    this.#one.start(this.#one.name, async (invoker) => {
      await invoker.sleep(afterMs);
      if (!this.#hasEnded) await invoker.call('acquire', submission, { requestId, taskToken: submission.callbackId });
    });
  }
}

type Submission = Record<string, unknown> & { callbackId: string };
