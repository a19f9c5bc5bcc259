import type { Caller } from '../caller.ts';
import { DurableExecution } from './durable.ts';
import { Execution, type TaskRequest } from './executions.ts';
import type { Grant } from './work.ts';

const MAX_REDRIVES = 2;
const MAX_RELEASES = 8;
/** The ttls in seconds. The last one is so long that a lagging status catches up while the grant lasts. */
const LONG_TTLS = [5, 30, 100];

interface Named {
  key: string;
  id: string;
  terms: object;
}

/** An execution of a state machine, or of a durable function. If a state or a step receives no grant, the execution goes on and asks again later. */
export function startLife(caller: Caller, named: Named): void {
  const isDurable = caller.random() < 0.3;
  if (isDurable) caller.start(`lasting function ${named.id}`, (one) => new DurableLife(one, named).run());
  else caller.start(`lasting execution ${named.id}`, (one) => new Life(one, named).run());
}

/** How long an execution does something else. Each order of magnitude is equally likely. */
const restMs = (one: Caller): number => 1000 * 150 ** one.random();

/** Works under a grant, with heartbeats, for seconds or minutes. */
async function work(one: Caller, { key, leaseId, ...grant }: Grant, isOver: () => boolean): Promise<void> {
  const { simulation } = one.world;
  const endsAt = simulation.now + 500 * 200 ** one.random();
  for (let until = grant.enteredMs + grant.waitedMs + grant.remainingMs; simulation.now < endsAt; ) {
    await one.sleep(Math.min(endsAt - simulation.now, 500 + one.random() * 10_000));
    if (isOver() || simulation.now >= until) return;
    const sentAt = simulation.now;
    const beat = await one.call('heartbeat', { key, leaseId });
    if (beat?.outcome === 'LeaseLost') return;
    if (beat?.outcome === 'ok') until = sentAt + Number(beat.body.remainingMs);
  }
}

/** Releases the grant in a state or a step, which is tried again until it is answered. */
async function releaseGrant(one: Caller, { key, leaseId }: Grant, isOver: () => boolean): Promise<void> {
  for (let tries = 0; tries < MAX_RELEASES && !isOver(); tries++) {
    if ((await one.call('release', { key, leaseId }))?.outcome === 'ok') return;
    await one.sleep(1000 + one.random() * 2000);
  }
}

/** The definition of a state machine. */
interface Definition {
  visits: number;
  /** How its states ask: by a task token for a bound grant, by a task token, or by a call of a function. */
  asks: 'bound' | 'task' | 'call';
  /** Whether the request ids have the number of redrives, as the guide says. */
  namesRedrive: boolean;
  ttlSeconds: number;
  parkSeconds: number;
  timeoutMs: number;
}

class Life extends Execution {
  override readonly eventShowsEnd = true;
  override readonly bus = { lost: 0.45, late: 0.7 };
  readonly #key: string;
  readonly #terms: object;
  readonly #definition: Definition;
  /** The visit that failed, at which a redriven execution begins. */
  #at = 1;
  #redrives = 0;

  constructor(one: Caller, { key, id, terms }: Named) {
    super(one, [key], id);
    this.#key = key;
    this.#terms = terms;
    this.#definition = {
      visits: 1 + Math.floor(one.random() * 3),
      asks: one.pick(['bound', 'bound', 'task', 'task', 'call']),
      namesRedrive: one.random() < 0.5,
      ttlSeconds: one.pick(LONG_TTLS),
      parkSeconds: one.pick([15, 300, 300]),
      timeoutMs: one.random() < 0.2 ? 5000 + one.random() * 60_000 : Number.POSITIVE_INFINITY,
    };
  }

  async run(): Promise<void> {
    this.begin();
    for (;;) {
      const isDone = await this.#live();
      if (!this.hasEnded) this.end(isDone ? 'SUCCEEDED' : 'FAILED');
      if (isDone || this.#redrives === MAX_REDRIVES || !this.one.strikes('redriven', 0.7)) return;
      await this.one.sleep(1000 * 12 ** this.one.random());
      this.redrive();
      this.#redrives++;
    }
  }

  /** @returns false if the execution fails */
  async #live(): Promise<boolean> {
    const { one } = this;
    const isOver = () => this.hasEnded;
    for (; this.#at <= this.#definition.visits; this.#at++) {
      const grant = await this.#ask();
      if (isOver()) return false;
      if (grant) {
        await work(one, grant, isOver);
        if (isOver() || one.random() < 0.55) return false; // the execution fails before the release
        await releaseGrant(one, grant, isOver);
      } else if (one.random() < 0.3) return false;
      await one.sleep(restMs(one));
      if (isOver()) return false;
    }
    return true;
  }

  #ask(): Promise<Grant | undefined> {
    const { asks, namesRedrive, ttlSeconds, parkSeconds, timeoutMs } = this.#definition;
    const request = {
      ...{ key: this.#key, holder: this.one.name, execution: this.arn, ...this.#terms },
      requestId: `${this.arn} entered ${this.#at}${namesRedrive ? `-${this.#redrives}` : ''}`,
    };
    if (asks === 'call') return this.#askByCall({ ...request, ttlSeconds });
    const lasting = asks === 'bound' ? { bound: true } : { ttlSeconds };
    return this.tryAll({ ...request, ...lasting, parkSeconds } as unknown as TaskRequest, timeoutMs);
  }

  /** A function of the execution asks. If it receives no answer, the state is tried again. */
  async #askByCall(request: { key: string; ttlSeconds: number }): Promise<Grant | undefined> {
    const { one } = this;
    for (let tries = 0; tries < 4 && !this.hasEnded; tries++) {
      const enteredMs = one.world.simulation.now;
      const answer = await one.call('acquire', { ...request, waitSeconds: Math.floor(one.random() * 20) });
      if (answer?.outcome === 'ok') return { ...(answer.body as unknown as Grant), key: request.key, enteredMs };
      await one.sleep(1000 + one.random() * 4000);
    }
    return undefined;
  }
}

/** An execution that is never redriven, and catches every failure. */
class DurableLife extends DurableExecution {
  readonly #one: Caller;
  readonly #key: string;
  readonly #visits: number;

  constructor(one: Caller, { key, id, terms }: Named) {
    super(one, [key], { id, terms: () => ({ ...terms, parkSeconds: one.pick([15, 60, 300]) }) });
    this.#one = one;
    this.#key = key;
    this.#visits = 1 + Math.floor(one.random() * 3);
  }

  override async run(): Promise<void> {
    const one = this.#one;
    const isOver = () => this.isOver();
    this.begin();
    for (let visit = 1; visit <= this.#visits && !isOver(); visit++) {
      const grant = await this.acquire(this.#key);
      if (grant) {
        await work(one, grant, isOver);
        await releaseGrant(one, grant, isOver);
      }
      await one.sleep(restMs(one));
    }
    this.end('SUCCEEDED');
  }

  /** Does nothing, because the callback may still receive a grant, or times out. */
  protected override submissionFailed(): void {}
}
