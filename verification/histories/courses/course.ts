import type { Quotas } from '../../../shared/locks/dependencies.ts';
import type { Answer } from '../../../test/support/stack/adapters.ts';
import { Caller, type CallerWorld, type WorldFacts } from '../caller.ts';
import { MachineClock } from '../clocks.ts';
import { noFaults, type Script } from '../faults.ts';
import type { Entry, Violation } from '../history.ts';
import type { FaultyService } from '../service.ts';
import { Simulation } from '../simulation.ts';
import type { WaitingTask } from '../step-functions.ts';

/**
 * A history in which nothing is left to chance: its calls and faults are written down. It shows a bound that random histories
 * hardly ever come near.
 */
export interface Course {
  /** Plays the calls of the course. */
  name: string;
  /** The quotas of the service, if they are not the defaults. */
  quotas?: Quotas;
  play(stage: Stage): Promise<void>;
  /** The promise that the course is about. */
  check(history: readonly Entry[], facts: WorldFacts): Violation[];
}

/** Right clocks, and only the actors that the course names. */
const FACTS: WorldFacts = {
  withinBound: true,
  spreadMs: 0,
  protocol: 'dynamo',
  foreignLeases: false,
  foreignCommits: false,
  foreignRetries: false,
  sweeps: false,
};

/** Plays a course. @returns the promises that it breaks */
export async function playCourse(course: Course, service: FaultyService): Promise<Violation[]> {
  await service.begin(course.quotas);
  const simulation = new Simulation(1);
  const clock = new MachineClock(simulation, 0, 1);
  const world: CallerWorld = {
    ...{ simulation, service, clocks: [clock], foreignClock: clock, entries: [], counts: noFaults() },
    ...{ prefix: 'w0-', unique: 'course-', facts: FACTS, calm: false },
  };
  // The messages to the repair are lost, so the schedule does what is left.
  service.messages.send = () => {};
  simulation.spawn(course.name, {}, () => course.play(new Stage(world)));
  await simulation.run();
  return course.check(world.entries, FACTS);
}

export type Terms = Readonly<Record<string, unknown>>;

/** A task that waits for its token. */
export interface Parked {
  entry: Entry;
  task: WaitingTask;
  answer: Answer | undefined;
}

/** What happens in a course, step by step. */
export class Stage {
  readonly world: CallerWorld;
  #ids = 0;

  constructor(world: CallerWorld) {
    this.world = world;
  }

  sleep(ms: number): Promise<void> {
    return this.world.simulation.sleep(ms);
  }

  caller(name: string, script: Script = {}): Caller {
    const caller = new Caller(name, this.world);
    caller.begin({ seed: ++this.#ids, faultRate: 0 });
    caller.suffers(script);
    return caller;
  }

  /** The only call of an actor. */
  call(functionName: string, input: Terms, script?: Script): Promise<Answer | undefined> {
    return this.caller(String(input.holder ?? functionName), script).call(functionName, input);
  }

  acquire(key: string, holder: string, terms: Terms = {}, script?: Script): Promise<Answer | undefined> {
    return this.call('acquire', { key, holder, requestId: holder, ttlSeconds: 60, ...terms }, script);
  }

  /** Runs an actor in its own thread, while the course goes on. */
  meanwhile(work: () => Promise<unknown>): void {
    this.world.simulation.spawn('meanwhile', {}, async () => void (await work()));
  }

  release(key: string, answer: Answer | undefined): Promise<Answer | undefined> {
    return this.call('release', { key, leaseId: answer?.body.leaseId });
  }

  /** Each minute the schedule runs. */
  async minutes(count: number): Promise<void> {
    for (let nth = 0; nth < count; nth++) {
      await this.sleep(60_000);
      await this.call('repairQueues', {});
    }
  }

  execution(): string {
    const arn = `arn:aws:states:us-east-1:000000000000:execution:machine:w0-${++this.#ids}`;
    this.world.service.stepFunctions.begin(arn);
    return arn;
  }

  /** The task of an execution comes with its token, or again with the token of a task. */
  async park(
    key: string,
    holder: string,
    { unreachable, again, ...terms }: Terms & { unreachable?: WaitingTask['unreachable']; again?: Parked } = {},
  ): Promise<Parked> {
    const { simulation, service } = this.world;
    const caller = this.caller(holder);
    const token = again?.task.token ?? `token-${++this.#ids}`;
    const request = { key, holder, requestId: holder, ttlSeconds: 60, ...terms };
    const { entry, answer: note } = again
      ? { entry: again.entry, answer: () => {} }
      : caller.note('task', { ...request, token, ...(unreachable && { unreachable }) });
    const notified = ({ outcome, body }: { outcome: string; body: object }) => note(outcome, body);
    const task =
      again?.task ?? service.stepFunctions.newTask(String(terms.execution ?? this.execution()), token, notified);
    if (unreachable) task.unreachable = unreachable;
    const answer = await caller.call('acquire', { ...request, taskToken: token });
    if (answer?.outcome === 'ok' && !again) {
      const { ticket, parked } = answer.body;
      entry.input = { ...entry.input, ticket, parked, parkedMs: simulation.now };
    }
    return { entry, task, answer };
  }

  /** Messages reach it from now on. */
  reach({ entry, task }: Parked): void {
    delete task.unreachable;
    const { unreachable: _, ...input } = entry.input;
    entry.input = input;
  }

  /** The state of the task has ended, so the task does not take a result any more. */
  die(parked: Parked): void {
    this.reach(parked);
    parked.task.state = 'closed';
    const { entry } = parked;
    entry.input = { ...entry.input, closed: 'timed out', closedMs: this.world.simulation.now };
  }
}
