import type { APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import type { Authorization } from '../aws/call.ts';
import { systemClock } from '../clock.ts';
import type { HoldfastError, Problem } from '../errors.ts';
import { VERSION } from '../version.ts';
import { isQueued, queuedPayload } from './batches.ts';
import { type EventAdapter, isBusEvent } from './events.ts';
import { httpAuthorization, httpPayload, httpPrincipal, isHttpEvent } from './http.ts';
import type { Internal, Middleware } from './middleware.ts';
import { type Names, namesIn, namesOut } from './names.ts';
import { namespaceOf } from './namespaces.ts';
import { boundPayload } from './payload.ts';

/** What an adapter leaves of an event. */
export interface Invocation {
  payload: unknown;
  principal: string | undefined;
  authorization: Authorization | undefined;
  namespace: string | undefined;
}

interface AdapterOptions {
  /** Where names are, which are turned in and out for callers of a namespace. */
  names: Names;
  created(output: unknown): boolean;
  events: EventAdapter | undefined;
  /** Of JSON, in one call. */
  maxBytes: number;
  /** Of an HTTP answer that succeeds. */
  cacheControl: string | undefined;
}

/** Tells the kinds of events apart, takes the payload out of each, and puts result or failure into the shape that its sender expects. */
export function adapters({ names, created, events, maxBytes, cacheControl = 'no-store' }: AdapterOptions): Middleware {
  const payloadOf = (event: unknown, internal: Partial<Internal>): unknown => {
    if (isHttpEvent(event)) {
      internal.adapter = 'http';
      return httpPayload(event, maxBytes);
    }
    if (isQueued(event)) {
      internal.adapter = 'sqs';
      return queuedPayload(event, maxBytes);
    }
    const fromBus = events && isBusEvent(event);
    internal.adapter = fromBus ? 'event-bridge' : 'task';
    if (fromBus) internal.accepts = events.accepts ?? [];
    const payload = fromBus ? events.payload(event) : event;
    boundPayload(payload, maxBytes);
    return payload;
  };
  return {
    before: (request) => {
      const { event, internal } = request;
      internal.arrivedAt = systemClock.now();
      internal.startedAt = performance.now();
      const sent = payloadOf(event, internal);
      const namespace = isHttpEvent(event) ? namespaceOf(event) : undefined;
      internal.namespace = namespace;
      const payload = namespace === undefined ? sent : namesIn(sent, names, namespace);
      const principal = isHttpEvent(event) ? httpPrincipal(event) : undefined;
      const authorization = isHttpEvent(event) ? httpAuthorization(event) : undefined;
      const invocation: Invocation = { payload, principal, authorization, namespace };
      request.event = invocation;
    },
    after: (request) => {
      const { namespace, adapter } = request.internal;
      const output = request.response;
      const answer = namespace === undefined ? output : namesOut(output, names, namespace);
      request.response = adapter === 'http' ? httpSuccess(answer, created(output), cacheControl) : answer;
    },
    onError: (request) => {
      const error = request.error as HoldfastError;
      const { namespace } = request.internal;
      const told = error.problem(request.context.awsRequestId);
      const problem = namespace === undefined ? told : namesOut(told, names, namespace);
      if (request.internal.adapter === 'http') request.response = httpFailure(problem, error.retryAfterMs);
      else if (request.internal.accepts?.includes(error.code)) request.response = problem;
      else request.error = new TaskFailure(problem);
    },
  };
}

function httpSuccess(output: unknown, created: boolean, cacheControl: string): APIGatewayProxyStructuredResultV2 {
  return {
    statusCode: created ? 201 : 200,
    headers: { 'content-type': 'application/json', 'cache-control': cacheControl, 'holdfast-version': VERSION },
    body: JSON.stringify(output),
  };
}

function httpFailure(problem: Problem, retryAfterMs: number | undefined): APIGatewayProxyStructuredResultV2 {
  return {
    statusCode: problem.status,
    headers: {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'holdfast-version': VERSION,
      ...(retryAfterMs !== undefined && { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }),
    },
    body: JSON.stringify(problem),
  };
}

/** Lambda reports a thrown error's name as `errorType`, which Retry and Catch match, and its message as `errorMessage`. */
class TaskFailure extends Error {
  constructor(problem: Problem) {
    super(JSON.stringify(problem));
    this.name = problem.code;
    this.stack = problem.code; // the runtime logs the stack and sends it to the caller
  }
}
