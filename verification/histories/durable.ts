import { Readable } from 'node:stream';
import { type CallbackResult, Callbacks, type DurableStatus } from '../../test/support/emulators/callback-model.ts';
import { BEGIN } from './clocks.ts';
import type { TaskResult } from './step-functions.ts';

interface HttpRequest {
  method: string;
  path: string;
  query?: Record<string, unknown>;
  body?: string | Uint8Array;
}

/** The API of durable functions (test/support/emulators/callback-model.ts), behind the client of Holdfast. Faults and time are between the two (wire.ts). */
export class DurableModel {
  readonly metadata = { handlerProtocol: 'http/1.1' };
  #callbacks = new Callbacks();

  begin(arn: string): void {
    this.#callbacks.begin(arn);
  }

  /** Ends the execution, so that its callbacks refuse results. @returns lets GetDurableExecution, which lags, show the end */
  end(arn: string, status: DurableStatus, ms: number): () => void {
    if (status === 'RUNNING') throw new Error('an execution does not end with RUNNING');
    this.#callbacks.end(arn, status);
    const execution = this.#callbacks.executions.get(arn);
    if (execution) Object.assign(execution, { shown: 'RUNNING', endedAt: Math.floor(BEGIN + ms) });
    return () => {
      delete execution?.shown;
    };
  }

  /** Makes a callback. @param notified receives the result, or undefined if the callback ends without one */
  newCallback(arn: string, id: string, notified: (result: TaskResult | undefined) => void): void {
    this.#callbacks.create(arn, (result) => notified(resultOf(result)), id);
  }

  /** Ends a callback, as its timeout does. */
  close(id: string): void {
    this.#callbacks.close(id);
  }

  forget(): void {
    this.#callbacks = new Callbacks();
  }

  /** A request handler of the SDK. */
  async handle({ method, path, query = {}, body = '' }: HttpRequest) {
    const url = Object.keys(query).length === 0 ? path : `${path}?${new URLSearchParams(query as never)}`;
    const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
    const answer = this.#callbacks.answer({ method, url, body: text });
    const headers = {
      'content-type': 'application/json',
      ...(answer.error !== undefined && { 'x-amzn-errortype': answer.error }),
    };
    return {
      response: {
        statusCode: answer.status,
        headers,
        body: Readable.from([Buffer.from(JSON.stringify(answer.body))]),
      },
    };
  }
}

/** What the code of a durable function learns: of a failure, SDKs show only the message and the data. */
function resultOf(result: CallbackResult): TaskResult | undefined {
  if (result.outcome === 'closed') return undefined;
  if (result.outcome === 'succeeded') return { outcome: 'ok', body: JSON.parse(result.result) };
  const problem = JSON.parse(result.error.ErrorData ?? '{}');
  return { outcome: String(problem.code), body: problem };
}
