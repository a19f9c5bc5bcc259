import type { APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { systemClock } from '../clock.ts';
import type { HoldfastError, Problem } from '../errors.ts';
import { isQueued, queuedPayload } from './batches.ts';
import { type EventDoor, isBusEvent } from './events.ts';
import { httpPayload, httpPrincipal, isHttpEvent } from './http.ts';
import type { Middleware } from './middleware.ts';

/** What is left of an event behind its door. */
export interface Invocation {
  payload: unknown;
  principal: string | undefined;
}

/** Tells the doors apart, takes the payload out of the event, and puts result or failure into the door's shape. */
export function doors(
  created: (output: unknown) => boolean,
  events?: EventDoor,
  cacheControl = 'no-store',
): Middleware {
  return {
    before: (request) => {
      const { event } = request;
      request.internal.arrivedAt = systemClock.now();
      request.internal.startedAt = performance.now();
      if (isHttpEvent(event)) {
        request.internal.door = 'http';
        const invocation: Invocation = { payload: httpPayload(event), principal: httpPrincipal(event) };
        request.event = invocation;
        return;
      }
      const fromBus = events && isBusEvent(event);
      const fromQueue = isQueued(event);
      request.internal.door = fromBus ? 'event' : fromQueue ? 'queue' : 'task';
      if (fromBus) request.internal.accepts = events.accepts ?? [];
      const payload = fromBus ? events.payload(event) : fromQueue ? queuedPayload(event) : event;
      const invocation: Invocation = { payload, principal: undefined };
      request.event = invocation;
    },
    after: (request) => {
      const { response } = request;
      if (request.internal.door === 'http') request.response = httpSuccess(response, created(response), cacheControl);
    },
    onError: (request) => {
      const error = request.error as HoldfastError;
      const problem = error.problem(request.context.awsRequestId);
      if (request.internal.door === 'http') request.response = httpFailure(problem, error.retryAfterMs);
      else if (request.internal.accepts?.includes(error.code)) request.response = problem;
      else request.error = new TaskFailure(problem);
    },
  };
}

function httpSuccess(output: unknown, created: boolean, cacheControl: string): APIGatewayProxyStructuredResultV2 {
  return {
    statusCode: created ? 201 : 200,
    headers: { 'content-type': 'application/json', 'cache-control': cacheControl },
    body: JSON.stringify(output),
  };
}

function httpFailure(problem: Problem, retryAfterMs: number | undefined): APIGatewayProxyStructuredResultV2 {
  return {
    statusCode: problem.status,
    headers: {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
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
