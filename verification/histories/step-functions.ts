import { Readable } from 'node:stream';
import { BEGIN } from './clocks.ts';

/** A task that waits for a result by its token. `closed`: it timed out, or its execution ended. */
export interface WaitingTask {
  token: string;
  execution: string;
  state: 'waiting' | 'notified' | 'closed';
  /** Whether no message ever reaches the task: its KMS key denies the sender, or Step Functions does not answer for the task. */
  unreachable?: 'denied' | 'unanswered';
  /** Called once with the result. */
  notified: (result: TaskResult) => void;
}

export interface TaskResult {
  /** `ok`, or the error's name. */
  outcome: string;
  body: Record<string, unknown>;
}

/** The state of an execution, or what DescribeExecution answers. Dates are in epoch seconds, with milliseconds. */
interface State {
  status: 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'ABORTED' | 'STOPPED' | 'TIMED_OUT';
  stopDate?: number;
  redriveCount: number;
  redriveDate?: number;
}

interface Execution {
  /** How many states came after the first. */
  states: number;
  now: State;
  /** The earlier state that DescribeExecution still shows as a whole. */
  shown: State;
  /** The number of the shown state. */
  shownNth: number;
}

const inSeconds = (ms: number): number => Math.floor(BEGIN + ms) / 1000;

/**
 * The part of Step Functions that the product uses, behind its own client. A task takes one result, and every other one is
 * refused as AWS refuses it. Faults and time lie between the two (wire.ts).
 */
export class StepFunctionsModel {
  readonly metadata = { handlerProtocol: 'http/1.1' };
  readonly #tasks = new Map<string, WaitingTask>();
  readonly #executions = new Map<string, Execution>();

  begin(execution: string): void {
    const state: State = { status: 'RUNNING', redriveCount: 0 };
    this.#executions.set(execution, { states: 0, now: state, shown: state, shownNth: 0 });
  }

  /** Redrives the execution. @param ms simulated @returns lets DescribeExecution show the redrive */
  redrive(execution: string, ms: number): () => void {
    const { redriveCount = 0 } = this.#executions.get(execution)?.now ?? {};
    return this.#become(execution, {
      status: 'RUNNING',
      redriveCount: redriveCount + 1,
      redriveDate: inSeconds(ms),
    });
  }

  /** Ends the execution, so that its tasks refuse results. @param ms simulated @returns lets DescribeExecution show the end */
  end(execution: string, status: State['status'], ms: number): () => void {
    const { redriveCount = 0, redriveDate } = this.#executions.get(execution)?.now ?? {};
    for (const task of this.#tasks.values())
      if (task.execution === execution && task.state === 'waiting') task.state = 'closed';
    const redriven = { redriveCount, ...(redriveDate !== undefined && { redriveDate }) };
    return this.#become(execution, { status, stopDate: inSeconds(ms), ...redriven });
  }

  /** @returns shows the state, unless a later one is shown already */
  #become(execution: string, state: State): () => void {
    const one = this.#executions.get(execution) ?? { states: 0, now: state, shown: state, shownNth: 0 };
    this.#executions.set(execution, one);
    one.now = state;
    const nth = ++one.states;
    return () => {
      if (nth > one.shownNth) Object.assign(one, { shown: state, shownNth: nth });
    };
  }

  newTask(execution: string, token: string, notified: WaitingTask['notified']): WaitingTask {
    const task: WaitingTask = { token, execution, state: 'waiting', notified };
    this.#tasks.set(task.token, task);
    return task;
  }

  forget(): void {
    this.#tasks.clear();
    this.#executions.clear();
  }

  /** A request handler of the SDK. */
  async handle({ headers, body }: { headers: Record<string, string>; body: string | Uint8Array }) {
    const action = String(headers['x-amz-target']).replace('AWSStepFunctions.', '');
    const input = JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body)) as Record<
      string,
      string
    >;
    const { statusCode, answer } = this.#act(action, input);
    const contentType = { 'content-type': 'application/x-amz-json-1.0' };
    return {
      response: { statusCode, headers: contentType, body: Readable.from([Buffer.from(JSON.stringify(answer))]) },
    };
  }

  #act(action: string, input: Record<string, string>): { statusCode: number; answer: object } {
    switch (action) {
      case 'SendTaskSuccess':
        return this.#notify(input.taskToken, { outcome: 'ok', body: JSON.parse(input.output ?? '') });
      case 'SendTaskFailure':
        return this.#notify(input.taskToken, { outcome: input.error ?? '', body: JSON.parse(input.cause ?? '{}') });
      case 'SendTaskHeartbeat':
        return this.#notify(input.taskToken, undefined);
      case 'DescribeExecution': {
        const execution = this.#executions.get(input.executionArn ?? '');
        if (!execution) return refusal('ExecutionDoesNotExist');
        return {
          statusCode: 200,
          answer: { executionArn: input.executionArn, ...execution.shown },
        };
      }
      default:
        throw new Error(`the model of Step Functions knows no ${action}`);
    }
  }

  /** @param result undefined for a heartbeat */
  #notify(token: string | undefined, result: TaskResult | undefined): { statusCode: number; answer: object } {
    const task = this.#tasks.get(token ?? '');
    if (!task) return refusal('InvalidToken');
    if (task.unreachable === 'denied') return refusal('KmsAccessDeniedException');
    if (task.unreachable) return { ...refusal('InternalServerError'), statusCode: 500 };
    const isOver = this.#executions.get(task.execution)?.now.status !== 'RUNNING';
    if (task.state !== 'waiting') return refusal(isOver ? 'TaskDoesNotExist' : 'TaskTimedOut');
    if (result) {
      task.state = 'notified';
      task.notified(result);
    }
    return { statusCode: 200, answer: {} };
  }
}

const refusal = (type: string) => ({ statusCode: 400, answer: { __type: type, message: type } });
