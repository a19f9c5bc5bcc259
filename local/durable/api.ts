import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Listening, listen } from '../listen.ts';
import { invalid, LambdaError } from './errors.ts';
import type { DurableExecution } from './execution.ts';
import type { DurableFunctions } from './service.ts';

/** Serves Lambda's API for durable functions. SDKs and `aws lambda` find it by AWS_ENDPOINT_URL_LAMBDA. Signatures are not checked. */
export const startApi = (service: DurableFunctions, port: number): Promise<Listening> =>
  listen(async (request, response) => {
    try {
      const { status = 200, headers, body } = await answer(service, request);
      reply(response, status, { body, headers });
    } catch (error) {
      if (!(error instanceof LambdaError)) throw error;
      const { name, message, status } = error;
      reply(response, status, { body: { Type: 'User', message }, headers: { 'x-amzn-errortype': name } });
    }
  }, port);

interface Answer {
  status?: number;
  headers?: Record<string, string> | undefined;
  /** A value, or a text that is JSON already. */
  body: object | string;
}

interface Call {
  service: DurableFunctions;
  /** The decoded parameters of the path. */
  id: string;
  query: URLSearchParams;
  request: IncomingMessage;
  body: string;
}

const EXECUTION = '/2025-12-01/durable-executions/([^/]+)';
const CALLBACK = '/2025-12-01/durable-execution-callbacks/([^/]+)';

const ROUTES: [pattern: string, act: (call: Call) => Answer | Promise<Answer>][] = [
  ['POST /2015-03-31/functions/([^/]+)/invocations', invoke],
  ['GET /2025-12-01/functions/([^/]+)/durable-executions', listed],
  [
    `POST ${EXECUTION}/checkpoint`,
    ({ service, id, body }) => {
      const { CheckpointToken: token, Updates = [] } = parsed(body);
      const { CheckpointToken, Operations } = service.execution(id).checkpoint(String(token), Updates);
      return { body: { CheckpointToken, NewExecutionState: { Operations } } };
    },
  ],
  [
    `GET ${EXECUTION}/state`,
    ({ service, id, query }) => {
      const execution = service.execution(id);
      execution.assertCurrent(query.get('CheckpointToken') ?? '');
      return { body: { Operations: execution.operations } };
    },
  ],
  [
    `POST ${EXECUTION}/stop`,
    ({ service, id, body }) => {
      const execution = service.execution(id);
      execution.stop(body ? parsed(body) : undefined);
      return { body: { StopTimestamp: execution.endedAt } };
    },
  ],
  [
    `GET ${EXECUTION}`,
    ({ service, id, query }) => ({
      body: described(service.execution(id), query.get('IncludeExecutionData') !== 'false'),
    }),
  ],
  [`POST ${CALLBACK}/succeed`, ({ service, id, body }) => callback(service, id, { Result: body })],
  [`POST ${CALLBACK}/fail`, ({ service, id, body }) => callback(service, id, { Error: parsed(body) })],
];

async function answer(service: DurableFunctions, request: IncomingMessage): Promise<Answer> {
  const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://127.0.0.1');
  const body = await text(request);
  for (const [pattern, act] of ROUTES) {
    const [, id] = new RegExp(`^${pattern}$`).exec(`${request.method} ${pathname}`) ?? [];
    if (id !== undefined) return act({ service, id: decodeURIComponent(id), query, request, body });
  }
  throw new LambdaError(
    'UnknownOperationException',
    `the local stack does not know ${request.method} ${pathname}`,
    404,
  );
}

/** Starts an execution. With the invocation type RequestResponse, the caller waits until it ends. */
async function invoke({ service, id, query, request, body }: Call): Promise<Answer> {
  const header = (name: string) => request.headers[name]?.toString();
  const qualifier = query.get('Qualifier');
  const name = id.replace(/^arn:[\w-]+:lambda:[\w-]+:\d*:function:/, '') + (qualifier ? `:${qualifier}` : '');
  parsed(body || '{}');
  const execution = service.start(name, body || '{}', header('x-amz-durable-execution-name'));
  const headers = { 'x-amz-durable-execution-arn': execution.arn, 'x-amz-executed-version': '$LATEST' };
  if (header('x-amz-invocation-type') === 'Event') return { status: 202, headers, body: '' };
  await execution.ended;
  const { status, result = 'null', error } = execution;
  if (status === 'SUCCEEDED') return { headers, body: result };
  const { ErrorType: errorType = status, ErrorMessage: errorMessage = '' } = error ?? {};
  return { headers: { ...headers, 'x-amz-function-error': 'Unhandled' }, body: { errorType, errorMessage } };
}

function listed({ service, id }: Call): Answer {
  const body = {
    DurableExecutions: [...service.executions.values()]
      .filter(({ functionArn }) => functionArn.split(':')[6] === id.split(':')[0])
      .reverse()
      .map((execution) => described(execution, false)),
  };
  return { body };
}

function callback(service: DurableFunctions, id: string, result: Parameters<DurableExecution['answer']>[1]): Answer {
  service.ofCallback(id).answer(id, result);
  return { body: {} };
}

const described = (execution: DurableExecution, withData: boolean) => ({
  DurableExecutionArn: execution.arn,
  DurableExecutionName: execution.name,
  FunctionArn: execution.functionArn,
  Status: execution.status,
  StartTimestamp: execution.startedAt,
  EndTimestamp: execution.endedAt,
  ...(withData && { InputPayload: execution.input, Result: execution.result, Error: execution.error }),
});

function parsed(body: string) {
  try {
    return Object(JSON.parse(body));
  } catch {
    throw invalid('the request is not JSON');
  }
}

function reply(response: ServerResponse, status: number, { body, headers }: Pick<Answer, 'body' | 'headers'>): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-amzn-requestid': randomUUID(), ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body, inSeconds));
}

/** Writes timestamps in seconds, as the protocol does. `JSON.stringify` passes each date as text. */
function inSeconds(this: Record<string, unknown>, field: string, value: unknown): unknown {
  const date = this[field];
  return date instanceof Date ? date.getTime() / 1000 : value;
}
