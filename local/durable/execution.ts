import { randomUUID } from 'node:crypto';
import type { ErrorObject, Operation, OperationUpdate } from '@aws-sdk/client-lambda';
import { invalid, LambdaError } from './errors.ts';
import { afterDue, answered, dueAt, inMilliseconds, isOver, updated } from './operations.ts';

export type Status = 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'STOPPED';

/** The answer of the SDK's handler to one invocation. */
interface Output {
  Status?: string;
  Result?: string;
  Error?: ErrorObject;
}

export interface ExecutionOptions {
  arn: string;
  name: string;
  functionArn: string;
  /** JSON, as it was given. */
  input: string;
  /** How long a second of the handler's waits takes, in milliseconds. */
  secondMs: number;
  invoke(event: object): Promise<unknown>;
  /** Called at the start and at the end. */
  statusChanged(execution: DurableExecution): void;
}

/** As in Lambda, an invocation that fails is repeated. */
const MAX_FAILED_INVOCATIONS = 3;

/** One run of a durable function: its operations, and the invocations that replay them. */
export class DurableExecution {
  readonly arn: string;
  readonly name: string;
  readonly functionArn: string;
  readonly input: string;
  readonly startedAt = new Date();
  /** Resolves when the execution has ended. */
  readonly ended: Promise<void>;
  status: Status = 'RUNNING';
  endedAt: Date | undefined;
  result: string | undefined;
  error: ErrorObject | undefined;
  readonly #options: ExecutionOptions;
  readonly #operations = new Map<string, Operation>();
  /** When each open callback times out. */
  readonly #timeouts = new Map<string, Date>();
  /** The operations whose current state the handler has not read yet. */
  #unread = new Set<string>();
  #token = '';
  #isInvoked = false;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #finished = Promise.withResolvers<void>();

  constructor(options: ExecutionOptions) {
    this.#options = options;
    this.arn = options.arn;
    this.name = options.name;
    this.functionArn = options.functionArn;
    this.input = options.input;
    this.ended = this.#finished.promise;
    const Id = options.arn.split('/').at(-1) ?? '';
    const ExecutionDetails = { InputPayload: options.input };
    this.#operations.set(Id, {
      ...{ Id, Type: 'EXECUTION', Status: 'STARTED', StartTimestamp: this.startedAt, ExecutionDetails },
    });
    options.statusChanged(this);
    setImmediate(() => this.#invoke()); // so that the caller that starts it is answered first
  }

  /**
   * Records updates of the handler.
   * @returns the token of the next checkpoint, and all operations that changed since the last one
   * @throws LambdaError InvalidParameterValueException for the token of an earlier checkpoint or invocation
   */
  checkpoint(token: string, updates: OperationUpdate[]): { CheckpointToken: string; Operations: Operation[] } {
    this.assertCurrent(token);
    const now = new Date();
    for (const update of updates) this.#update(update, now);
    this.#completeDue(now);
    this.#token = randomUUID();
    const Operations = [...this.#unread].map((id) => this.#operations.get(id) as Operation);
    this.#unread.clear();
    return { CheckpointToken: this.#token, Operations };
  }

  /** @throws LambdaError InvalidParameterValueException */
  assertCurrent(token: string): void {
    if (this.status !== 'RUNNING' || token !== this.#token) throw invalid('Invalid Checkpoint Token');
  }

  get operations(): Operation[] {
    return [...this.#operations.values()];
  }

  /** True if the callback belongs to this execution. */
  hasCallback(callbackId: string): boolean {
    return this.#callback(callbackId) !== undefined;
  }

  /**
   * Ends an open callback, and resumes the execution.
   * @throws LambdaError CallbackTimeoutException if the callback was answered, has timed out, or its execution has ended
   */
  answer(callbackId: string, answer: { Result?: string; Error?: ErrorObject }): void {
    const callback = this.#callback(callbackId);
    if (!callback || isOver(callback) || this.status !== 'RUNNING')
      throw new LambdaError('CallbackTimeoutException', 'the callback has expired or has already been closed');
    this.#put(answered(callback, answer, new Date()));
    this.#resume();
  }

  /** Ends the execution, but not the invocation that runs, whose next checkpoint fails. */
  stop(error?: ErrorObject): void {
    this.#finish('STOPPED', { Error: error });
  }

  #callback(callbackId: string): Operation | undefined {
    return this.operations.find(({ CallbackDetails }) => CallbackDetails?.CallbackId === callbackId);
  }

  #put(operation: Operation): void {
    this.#operations.set(operation.Id as string, operation);
    this.#unread.add(operation.Id as string);
  }

  #update(update: OperationUpdate, now: Date): void {
    const { Id = '', Type, Payload, CallbackOptions } = update;
    const { secondMs } = this.#options;
    // The result of an execution, if it is too long for the answer of its last invocation.
    if (Type === 'EXECUTION') this.result = Payload;
    else this.#put(updated({ update, before: this.#operations.get(Id), now, secondMs }));
    const { TimeoutSeconds } = CallbackOptions ?? {};
    if (TimeoutSeconds) this.#timeouts.set(Id, new Date(now.getTime() + TimeoutSeconds * secondMs));
  }

  #completeDue(now: Date): void {
    for (const operation of this.#operations.values()) {
      const isDue = (at: Date | undefined) => at !== undefined && at <= now;
      if (isDue(dueAt(operation))) this.#put(afterDue(operation, now));
      else if (!isOver(operation) && isDue(this.#timeouts.get(operation.Id as string)))
        this.#put({ ...answered(operation, { Error: TIMED_OUT }, now), Status: 'TIMED_OUT' });
    }
  }

  /** Invokes the handler when there is something new: at once if there is a change that it has not read, otherwise when a wait ends or a step is due again. */
  #resume(): void {
    if (this.#isInvoked || this.status !== 'RUNNING') return;
    this.#completeDue(new Date());
    if (this.#unread.size > 0) return void this.#invoke();
    const times = this.operations.flatMap((operation) => {
      const at = dueAt(operation) ?? (isOver(operation) ? undefined : this.#timeouts.get(operation.Id as string));
      return at ? [at.getTime()] : [];
    });
    if (times.length > 0) this.#later(Math.min(...times) - Date.now(), () => this.#resume());
  }

  async #invoke(): Promise<void> {
    if (this.#isInvoked || this.status !== 'RUNNING') return;
    this.#isInvoked = true;
    this.#token = randomUUID();
    const UpdatedOperationIds = [...this.#unread];
    this.#unread.clear();
    const event = {
      ...{ DurableExecutionArn: this.arn, CheckpointToken: this.#token, UpdatedOperationIds },
      InitialExecutionState: { Operations: this.operations.map(inMilliseconds), NextMarker: '' },
    };
    try {
      const output = (await this.#options.invoke(event)) as Output;
      this.#isInvoked = false;
      this.#failures = 0;
      if (output.Status === 'SUCCEEDED') this.#finish('SUCCEEDED', { Result: output.Result || this.result });
      else if (output.Status === 'FAILED') this.#finish('FAILED', { Error: output.Error });
      else this.#resume();
    } catch (error) {
      this.#isInvoked = false;
      this.#handleFailure(error as Error);
    }
  }

  #handleFailure({ name, message }: Error): void {
    if (this.status !== 'RUNNING') return;
    console.error(`${this.arn}: ${message}`);
    if (++this.#failures < MAX_FAILED_INVOCATIONS) this.#later(this.#options.secondMs, () => this.#invoke());
    else this.#finish('FAILED', { Error: { ErrorType: name, ErrorMessage: message } });
  }

  #later(ms: number, act: () => void): void {
    clearTimeout(this.#timer);
    // A longer timer would fire at once.
    this.#timer = setTimeout(act, Math.max(0, Math.min(ms, 2 ** 31 - 1)));
  }

  #finish(status: Status, outcome: { Result?: string | undefined; Error?: ErrorObject | undefined }): void {
    if (this.status !== 'RUNNING') return;
    clearTimeout(this.#timer);
    this.status = status;
    this.endedAt = new Date();
    this.result = outcome.Result;
    this.error = outcome.Error;
    this.#options.statusChanged(this);
    this.#finished.resolve();
  }
}

const TIMED_OUT: ErrorObject = { ErrorType: 'Callback.Timeout', ErrorMessage: 'Callback timed out' };
