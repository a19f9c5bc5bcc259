import { setImmediate } from 'node:timers/promises';
import { StatesError } from './errors.ts';
import { checkSize, type Definition, interpret, type Task } from './interpreter.ts';
import type { Json } from './json.ts';

export interface StateMachine {
  arn: string;
  name: string;
  roleArn: string;
  type: 'STANDARD';
  /** As it was given. */
  text: string;
  definition: Definition;
  createdAt: Date;
}

export type Status = 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'ABORTED';

interface Entry {
  at: Date;
  type: string;
  state?: string;
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
  /** Called at the start and at the end. */
  statusChanged(execution: Execution): void;
}

/** One run of a state machine, from its start until it has ended. */
export class Execution {
  readonly machine: StateMachine;
  readonly arn: string;
  readonly name: string;
  readonly input: string;
  readonly startedAt = new Date();
  readonly history: Entry[] = [];
  /** Resolves when the execution has ended, however it did. */
  readonly ended: Promise<void>;
  /** Aborts when the execution has ended: none of its work continues. */
  readonly signal: AbortSignal;
  status: Status = 'RUNNING';
  stoppedAt: Date | undefined;
  output: string | undefined;
  error: string | undefined;
  cause: string | undefined;
  readonly #controller = new AbortController();
  readonly #end = Promise.withResolvers<void>();
  readonly #statusChanged: ExecutionOptions['statusChanged'];

  constructor(options: ExecutionOptions) {
    this.machine = options.machine;
    this.arn = options.arn;
    this.name = options.name;
    this.input = options.input;
    this.ended = this.#end.promise;
    this.signal = this.#controller.signal;
    this.#statusChanged = options.statusChanged;
    this.#record('ExecutionStarted');
    this.#run(options);
    this.#statusChanged(this);
  }

  /** Ends a running execution as StopExecution does. */
  stop(error?: string, cause?: string): void {
    this.#ends('ABORTED', { error, cause });
  }

  async #run({ machine, secondMs, limitSecondMs = secondMs, perform }: ExecutionOptions): Promise<void> {
    await setImmediate(); // the caller that starts it is answered first
    if (this.signal.aborted) return;
    const { result, abort } = interpret({
      definition: machine.definition,
      input: JSON.parse(this.input),
      context: {
        Execution: { Id: this.arn, Name: this.name, RoleArn: machine.roleArn, RedriveCount: 0 },
        StateMachine: { Id: machine.arn, Name: machine.name },
      },
      perform: async (task) => {
        // The library may start one more attempt after it was aborted.
        if (this.signal.aborted) throw new StatesError('States.Runtime', 'the execution has ended', true);
        this.#record('TaskScheduled');
        return perform(this, task);
      },
      entered: (state, type) => this.#record(`${type}StateEntered`, state),
      ...{ secondMs, limitSecondMs },
    });
    this.signal.addEventListener('abort', abort);
    try {
      const output = await result;
      checkSize(output, 'output of the execution');
      this.#ends('SUCCEEDED', { output: JSON.stringify(output) });
    } catch (thrown) {
      const error = thrown as Error;
      if (error.name === 'ExecutionTimeoutError') this.#ends('TIMED_OUT', { error: 'States.Timeout' });
      else this.#ends('FAILED', failure((error.cause ?? error) as Error));
    }
  }

  #ends(status: Status, told: { output?: string; error?: string | undefined; cause?: string | undefined }): void {
    if (this.status !== 'RUNNING') return;
    this.status = status;
    this.stoppedAt = new Date();
    this.output = told.output;
    this.error = told.error;
    this.cause = told.cause;
    this.#record(
      `Execution${{ TIMED_OUT: 'TimedOut', ABORTED: 'Aborted', FAILED: 'Failed' }[status as string] ?? 'Succeeded'}`,
    );
    this.#controller.abort();
    this.#statusChanged(this);
    this.#end.resolve();
  }

  #record(type: string, state?: string): void {
    this.history.push({ at: new Date(), type, ...(state !== undefined && { state }) });
  }
}

/** The library's name for the error of a Fail state without Error. */
const UNNAMED = 'FailStateError';

const failure = ({ name, message }: Error) => (name === UNNAMED ? {} : { error: name, cause: message });
