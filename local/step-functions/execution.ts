import { setImmediate } from 'node:timers/promises';
import { apiError, StatesError } from './errors.ts';
import { checkSize, type Definition, interpret, type Task } from './interpreter.ts';
import type { Json } from './json.ts';

export interface StateMachine {
  arn: string;
  name: string;
  roleArn: string;
  type: 'STANDARD';
  /** The definition, as it was given. */
  text: string;
  definition: Definition;
  createdAt: Date;
}

export type Status = 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'ABORTED';

interface Entry {
  at: Date;
  type: string;
  state?: string;
  redriveCount?: number;
}

export interface ExecutionOptions {
  machine: StateMachine;
  arn: string;
  name: string;
  /** JSON, as it was given. */
  input: string;
  secondMs: number;
  limitSecondMs?: number;
  perform(execution: Execution, task: Task): Promise<Json>;
  /** Called at the start, at each redrive and at each end. */
  statusChanged(execution: Execution): void;
}

/** An attempt of an execution: from its start or a redrive to the next end. */
const newAttempt = () => ({ controller: new AbortController(), end: Promise.withResolvers<void>() });

/** An execution of a state machine, which may be redriven after its end. */
export class Execution {
  readonly machine: StateMachine;
  readonly arn: string;
  readonly name: string;
  readonly input: string;
  readonly startedAt = new Date();
  readonly history: Entry[] = [];
  /** The redrives, each with the token of its request. */
  readonly redrives: { at: Date; token: string | undefined }[] = [];
  status: Status = 'RUNNING';
  stoppedAt: Date | undefined;
  output: string | undefined;
  error: string | undefined;
  cause: string | undefined;
  readonly #options: ExecutionOptions;
  #attempt = newAttempt();
  /** The last state that was entered outside of Parallel and Map. A redrive continues there. */
  #reached: { state: string; input: Json };

  constructor(options: ExecutionOptions) {
    this.machine = options.machine;
    this.arn = options.arn;
    this.name = options.name;
    this.input = options.input;
    this.#options = options;
    this.#reached = { state: options.machine.definition.StartAt, input: JSON.parse(options.input) };
    this.#record({ type: 'ExecutionStarted' });
    this.#run();
    this.#options.statusChanged(this);
  }

  /** Resolves when the execution has ended, with any status. */
  get ended(): Promise<void> {
    return this.#attempt.end.promise;
  }

  /** Aborts when the execution has ended, so that its work stops. */
  get signal(): AbortSignal {
    return this.#attempt.controller.signal;
  }

  /** The reason why the execution cannot be redriven. Undefined if it can. */
  get notRedrivable(): string | undefined {
    const isFinal = this.status === 'RUNNING' || this.status === 'SUCCEEDED';
    return isFinal ? `Execution is ${this.status} and cannot be redriven` : undefined;
  }

  /** Ends a running execution as StopExecution does. */
  stop(error?: string, cause?: string): void {
    this.#finish('ABORTED', { error, cause });
  }

  /**
   * Continues at the state that did not succeed, with the input of that state, as RedriveExecution does. The tries of its Retry and all timeouts count from the
   * start again. A Parallel or Map state runs again as a whole.
   * @param token requests with the same token redrive the execution only once
   * @returns when the execution was redriven
   * @throws ApiError ExecutionNotRedrivable
   */
  redrive(token?: string): Date {
    const before = this.redrives.find((one) => token !== undefined && one.token === token);
    if (before) return before.at;
    if (this.notRedrivable) throw apiError('ExecutionNotRedrivable', this.notRedrivable);
    const at = new Date();
    this.redrives.push({ at, token });
    this.#attempt = newAttempt();
    this.status = 'RUNNING';
    this.stoppedAt = undefined;
    this.error = undefined;
    this.cause = undefined;
    this.#record({ type: 'ExecutionRedriven', redriveCount: this.redrives.length });
    this.#run();
    this.#options.statusChanged(this);
    return at;
  }

  async #run(): Promise<void> {
    const { machine, secondMs, limitSecondMs = secondMs, perform } = this.#options;
    const { signal } = this; // the signal of this attempt, not of a later one
    await setImmediate(); // so that the caller that starts it is answered first
    if (signal.aborted) return;
    const { result, abort } = interpret({
      definition: { ...machine.definition, StartAt: this.#reached.state },
      input: this.#reached.input,
      context: { Execution: this.#context(), StateMachine: { Id: machine.arn, Name: machine.name } },
      perform: async (task) => {
        // The library may start another attempt at a task after it was aborted.
        if (signal.aborted) throw new StatesError('States.Runtime', 'the execution has ended', true);
        this.#record({ type: 'TaskScheduled' });
        return perform(this, task);
      },
      entered: (state, type) => this.#record({ type: `${type}StateEntered`, state }),
      reached: (state, input) => {
        this.#reached = { state, input };
      },
      ...{ secondMs, limitSecondMs },
    });
    signal.addEventListener('abort', abort);
    const outcome = await result.then(succeeded).catch(failed);
    if (!signal.aborted) this.#finish(...outcome); // if aborted, this attempt has ended already, and the next one may run
  }

  /** The value of `$$.Execution`. */
  #context(): Json {
    const redrivenAt = this.redrives.at(-1)?.at;
    return {
      ...{ Id: this.arn, Name: this.name, RoleArn: this.machine.roleArn },
      ...{ Input: JSON.parse(this.input), StartTime: this.startedAt.toISOString() },
      ...{ RedriveCount: this.redrives.length, ...(redrivenAt && { RedriveTime: redrivenAt.toISOString() }) },
    };
  }

  #finish(...[status, outcome]: End): void {
    if (this.status !== 'RUNNING') return;
    this.status = status;
    this.stoppedAt = new Date();
    this.output = outcome.output;
    this.error = outcome.error;
    this.cause = outcome.cause;
    const name = { TIMED_OUT: 'TimedOut', ABORTED: 'Aborted', FAILED: 'Failed' }[status as string] ?? 'Succeeded';
    this.#record({ type: `Execution${name}` });
    this.#attempt.controller.abort();
    this.#options.statusChanged(this);
    this.#attempt.end.resolve();
  }

  #record(entry: Omit<Entry, 'at'>): void {
    this.history.push({ at: new Date(), ...entry });
  }
}

type End = [status: Status, outcome: { output?: string; error?: string | undefined; cause?: string | undefined }];

function succeeded(output: Json): End {
  checkSize(output, 'output of the execution');
  return ['SUCCEEDED', { output: JSON.stringify(output) }];
}

function failed(error: Error): End {
  if (error.name === 'ExecutionTimeoutError') return ['TIMED_OUT', { error: 'States.Timeout' }];
  return ['FAILED', failure((error.cause ?? error) as Error)];
}

/** The redrive status of an execution, as the service answers it. */
export const redriveStatus = ({ notRedrivable: reason }: Execution) =>
  reason === undefined
    ? { redriveStatus: 'REDRIVABLE' }
    : { redriveStatus: 'NOT_REDRIVABLE', redriveStatusReason: reason };

/** The library's name for the error of a Fail state without Error. */
const UNNAMED = 'FailStateError';

const failure = ({ name, message }: Error) => (name === UNNAMED ? {} : { error: name, cause: message });
