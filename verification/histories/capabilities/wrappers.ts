import { readFile } from 'node:fs/promises';
import { StatesError } from '../../../local/step-functions/errors.ts';
import { type Definition, interpret, type Task, timeoutError } from '../../../local/step-functions/interpreter.ts';
import type { Json } from '../../../local/step-functions/json.ts';
import type { Caller } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import { Execution, type TaskRequest } from './executions.ts';
import { sendEnd, TTLS } from './work.ts';

/** The state machine as it is deployed. */
const definition = JSON.parse(
  (await readFile(new URL('../../../functions/leases/exclusive.asl.json', import.meta.url), 'utf8')).replaceAll(
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the definition
    '${Partition}',
    'aws',
  ),
) as Definition;

const TARGETS = 'arn:aws:states:us-east-1:000000000000:stateMachine:target';

/** The library would wait between retries in real time. The wait passes in the simulation, so that here a second takes no time. */
const SECOND_MS = 0.001;

type Fields = Record<string, Json>;

/** Starts the wrapper `exclusive` on the local interpreter, in simulated time. Its target is another execution. */
export function startWrapper(caller: Caller, key: string): void {
  const id = Math.floor(caller.random() * 1e9).toString(36);
  caller.start(`wrapper ${id}`, (one) => new Wrapper(one, key, id).run());
}

class Wrapper extends Execution {
  readonly #key: string;
  readonly #id: string;
  readonly #ttlSeconds: number;
  /** Whether the lease lasts as long as the execution. */
  readonly #isBound: boolean;
  #lastState = '';
  #target: Target | undefined;

  constructor(one: Caller, key: string, id: string) {
    super(one, [key], id);
    this.#key = key;
    this.#id = id;
    this.#ttlSeconds = one.pick(TTLS);
    this.#isBound = one.random() < 0.5;
  }

  async run(): Promise<void> {
    const { one } = this;
    this.begin();
    const { result, abort } = interpret({
      definition,
      input: {
        key: this.#key,
        stateMachineArn: TARGETS,
        ...(!this.#isBound && { ttlSeconds: this.#ttlSeconds }),
        holder: one.name,
        parkSeconds: one.pick([20, 60, 120]),
      },
      context: { Execution: { Id: this.arn, Name: this.#id, RedriveCount: 0 } },
      perform: (task) => this.#perform(task),
      entered: () => {},
      secondMs: SECOND_MS,
      now: () => new Date(BEGIN + one.world.simulation.now),
    });
    this.onAbort = abort;
    const failure = await result.then(
      () => undefined,
      (error: Error) => error,
    );
    if (this.isAborted) this.#target?.orphaned();
    else this.end(failure ? 'FAILED' : 'SUCCEEDED');
  }

  async #perform({ state, resource, parameters, token, timeoutMs = Number.POSITIVE_INFINITY }: Task): Promise<Json> {
    const { one } = this;
    await one.sleep(state === this.#lastState ? 1000 * 4 ** one.random() : 5 + one.random() * 50);
    this.#lastState = state;
    // The library may try once more after it was aborted.
    if (this.isAborted) throw new StatesError('States.Runtime', 'the execution has ended', true);
    const fields = parameters as Fields;
    const inMs = (timeoutMs * 1000) / SECOND_MS;
    switch (resource.replace('arn:aws:states:::', '')) {
      case 'lambda:invoke.waitForTaskToken':
        return this.#acquire(fields.Payload as unknown as TaskRequest, token, inMs);
      case 'lambda:invoke':
        return this.#invoke('release', fields.Payload as Fields);
      case 'states:startExecution.sync:2':
        return this.#runTarget(fields, inMs);
      case 'aws-sdk:sfn:stopExecution':
        return this.#stopTarget();
      default:
        throw new Error(`the wrapper uses ${resource}, which is not played here`);
    }
  }

  async #acquire(payload: TaskRequest, token: string, timeoutMs: number): Promise<Json> {
    const { taskToken: _, ...request } = payload;
    const received = await this.attempt(request as TaskRequest, { token, timeoutMs });
    if (received === 'timed out') throw timeoutError();
    if (received === 'invocation failed') throw new StatesError('Lambda.SdkClientException');
    if (received === 'aborted') throw new StatesError('States.Runtime', 'the execution has ended', true);
    if (received.outcome === 'ok') return received.body as Json;
    throw new StatesError(received.outcome, JSON.stringify(received.body));
  }

  async #invoke(name: string, payload: Fields): Promise<Json> {
    const answer = await this.one.call(name, payload);
    if (!answer) throw new StatesError('Lambda.SdkClientException');
    if (answer.outcome !== 'ok') throw new StatesError(answer.outcome, JSON.stringify(answer.body));
    return { ExecutedVersion: '$LATEST', Payload: answer.body as Json, StatusCode: 200 };
  }

  async #runTarget({ Name: name }: Fields, timeoutMs: number): Promise<Json> {
    const { one } = this;
    const lastsMs = this.#ttlSeconds * 1000 * (0.05 + one.random() * 1.6);
    const target = new Target(one, {
      key: this.#key,
      name: String(name),
      stopsMs: one.world.simulation.now + timeoutMs,
    });
    this.#target = target;
    const { simulation } = one.world;
    const ended = await simulation.wait<'done' | 'timed out'>((resume) => {
      if (Number.isFinite(timeoutMs)) simulation.at(simulation.now + timeoutMs, () => resume('timed out'));
      target.start(lastsMs, () => resume('done'));
    });
    if (ended === 'timed out') throw timeoutError();
    return { Status: 'SUCCEEDED', Output: {} };
  }

  /** The target ends a moment after the stop. Now and then, the answer to the stop is lost. */
  async #stopTarget(): Promise<Json> {
    if (this.one.strikes('stopLost', 0.25)) throw new StatesError('Sfn.SdkClientException');
    if (!this.#target) throw new StatesError('Sfn.ExecutionDoesNotExistException');
    await this.one.sleep(10 + this.one.random() * 90);
    this.#target.end('ABORTED');
    return { StopDate: '' };
  }
}

/** What a wrapper runs while it holds the lease. */
class Target {
  readonly #one: Caller;
  readonly #arn: string;
  readonly #input: Readonly<Record<string, unknown>>;
  #answer: ((outcome: string, body: object) => void) | undefined;
  #whenOver: () => void = () => {};

  constructor(one: Caller, { key, name, stopsMs }: { key: string; name: string; stopsMs: number }) {
    this.#one = one;
    this.#arn = `${TARGETS.replace('stateMachine', 'execution')}:${name}`;
    this.#input = { key, wrapper: one.name, stopsMs };
  }

  start(lastsMs: number, whenOver: () => void): void {
    const { simulation, service } = this.#one.world;
    this.#whenOver = whenOver;
    simulation.at(simulation.now + 20 + this.#one.random() * 300, () => {
      service.stepFunctions.begin(this.#arn);
      this.#answer = this.#one.note('target', this.#input).answer;
      simulation.at(simulation.now + lastsMs, () => this.end('SUCCEEDED'));
    });
  }

  /** The wrapper has ended early. Step Functions then tries to stop the target, but does not promise it. */
  orphaned(): void {
    const { simulation } = this.#one.world;
    if (this.#one.random() < 0.5) simulation.at(simulation.now + this.#one.random() * 1000, () => this.end('ABORTED'));
  }

  end(status: 'SUCCEEDED' | 'ABORTED'): void {
    if (!this.#answer) return;
    this.#answer('ok', { status });
    this.#answer = undefined;
    sendEnd(this.#one, this.#arn, { status });
    this.#whenOver();
  }
}
