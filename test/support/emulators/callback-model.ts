import { randomUUID } from 'node:crypto';
import { ACCOUNT, REGION } from '../../../infrastructure/logical-ids.ts';

/** How a callback ended. `closed`: the callback timed out, or the execution ended before an answer arrived. */
export type CallbackResult =
  | { outcome: 'succeeded'; result: string }
  | { outcome: 'failed'; error: { ErrorType?: string; ErrorMessage?: string; ErrorData?: string } }
  | { outcome: 'closed' };

export interface Callback {
  id: string;
  /** The ARN of the execution. */
  execution: string;
  /** Undefined while the callback waits. */
  result?: CallbackResult;
}

export type DurableStatus = 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'STOPPED';

export interface DurableExecution {
  arn: string;
  status: DurableStatus;
  /** Epoch milliseconds. */
  startedAt: number;
  endedAt?: number;
  /** The status that GetDurableExecution answers, if it lags. */
  shown?: DurableStatus;
}

/** An HTTP request, without its signature. */
export interface ApiRequest {
  method: string;
  /** The path with the query, still encoded. */
  url: string;
  body: string;
}

export interface ApiAnswer {
  status: number;
  /** The name of the error, which AWS sends as the header `x-amzn-errortype`. */
  error?: string;
  body: object;
}

/**
 * Callbacks and executions of durable functions, in memory, and the API of version 2025-12-01 as far as Holdfast uses it: SendDurableExecutionCallbackSuccess,
 * SendDurableExecutionCallbackFailure and GetDurableExecution. A callback accepts a single answer. A later answer, even after the end
 * of the execution, is refused with CallbackTimeoutException.
 */
export class Callbacks {
  readonly executions = new Map<string, DurableExecution>();
  readonly callbacks = new Map<string, Callback>();
  readonly #ended = new Map<string, (result: CallbackResult) => void>();
  readonly #now: () => number;

  /** @param now epoch milliseconds */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  begin(arn: string = newExecutionArn()): DurableExecution {
    const execution: DurableExecution = { arn, status: 'RUNNING', startedAt: this.#now() };
    this.executions.set(arn, execution);
    return execution;
  }

  /** Ends an execution, and closes its callbacks. */
  end(arn: string, status: Exclude<DurableStatus, 'RUNNING'>): void {
    const execution = this.executions.get(arn);
    if (execution?.status !== 'RUNNING') return;
    Object.assign(execution, { status, endedAt: this.#now() });
    for (const callback of this.callbacks.values()) if (callback.execution === arn) this.close(callback.id);
  }

  /** A callback that waits. @param onEnd receives its result, once */
  create(
    execution: string,
    onEnd: (result: CallbackResult) => void = () => {},
    id: string = newCallbackId(),
  ): Callback {
    const callback: Callback = { id, execution };
    this.callbacks.set(id, callback);
    this.#ended.set(id, onEnd);
    return callback;
  }

  /** Ends the wait of a callback without an answer, as its timeout does. */
  close(id: string): void {
    const callback = this.callbacks.get(id);
    if (callback && !callback.result) this.#finish(callback, { outcome: 'closed' });
  }

  /** Answers a request. @returns 404 for every other route */
  answer({ method, url, body }: ApiRequest): ApiAnswer {
    const [, route, encoded = '', action] = /^\/2025-12-01\/([\w-]+)\/([^/?]+)(?:\/(\w+))?(?:\?|$)/.exec(url) ?? [];
    const name = decodeURIComponent(encoded);
    if (method === 'GET' && route === 'durable-executions' && !action) return this.#describe(name);
    if (method === 'POST' && route === 'durable-execution-callbacks') {
      if (action === 'succeed') return this.#complete(name, { outcome: 'succeeded', result: body });
      if (action === 'fail') return this.#complete(name, { outcome: 'failed', error: JSON.parse(body || '{}') });
    }
    return refusal(404, 'UnknownOperationException', `no route ${method} ${url}`);
  }

  #complete(id: string, result: CallbackResult): ApiAnswer {
    if (!/^[A-Za-z0-9+/]{1,1024}={0,2}$/.test(id))
      return refusal(400, 'InvalidParameterValueException', 'Invalid callback id');
    const callback = this.callbacks.get(id);
    if (!callback) return refusal(404, 'ResourceNotFoundException', 'Callback not found');
    const isRunning = this.executions.get(callback.execution)?.status === 'RUNNING';
    if (callback.result || !isRunning)
      return refusal(400, 'CallbackTimeoutException', 'The callback has expired or has already been closed');
    this.#finish(callback, result);
    return { status: 200, body: {} };
  }

  #finish(callback: Callback, result: CallbackResult): void {
    callback.result = result;
    const onEnd = this.#ended.get(callback.id);
    this.#ended.delete(callback.id);
    onEnd?.(result);
  }

  #describe(arn: string): ApiAnswer {
    if (!/^arn:[\w-]+:lambda:.*\/durable-execution\//.test(arn))
      return refusal(400, 'InvalidParameterValueException', 'Invalid durable execution ARN');
    const execution = this.executions.get(arn);
    if (!execution) return refusal(404, 'ResourceNotFoundException', 'Durable execution not found');
    const { status, shown = status, startedAt, endedAt } = execution;
    const [, , , , , , name, version, executionName] = arn.split(/[:/]/);
    const functionArn = arn.slice(0, arn.indexOf('/'));
    const end = shown !== 'RUNNING' && endedAt !== undefined ? { EndTimestamp: endedAt / 1000 } : {};
    return {
      status: 200,
      body: {
        ...{ DurableExecutionArn: arn, DurableExecutionName: executionName ?? name, FunctionArn: functionArn },
        ...{ Status: shown, Version: version, StartTimestamp: startedAt / 1000, ...end },
      },
    };
  }
}

/** @param name of the function */
export const newExecutionArn = (name = 'work'): string =>
  `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}:$LATEST/durable-execution/${randomUUID()}/${randomUUID()}`;

/** An opaque id in the alphabet that AWS uses. */
const newCallbackId = (): string => Buffer.from(`${randomUUID()}${randomUUID()}?`).toString('base64');

const refusal = (status: number, error: string, message: string): ApiAnswer => ({
  status,
  error,
  body: { Type: 'User', message },
});
