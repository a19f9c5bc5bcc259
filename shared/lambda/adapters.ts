import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import type { Authorization, Call } from '../aws/call.ts';
import type { HoldfastError, Problem } from '../errors.ts';
import type { NameFields } from '../namespace.ts';
import { systemClock } from '../surroundings/clock.ts';
import { VERSION } from '../surroundings/version.ts';
import { isQueued, queuedPayload } from './batches.ts';
import { type EventAdapter, isBusEvent } from './events.ts';
import { assertToken, httpAuthorization, httpPayload, httpPrincipal, isHttpEvent, type TokenRules } from './http.ts';
import type { Internal, Middleware } from './middleware.ts';
import { API_ALIAS, aliasOf, namespaceOf, namespaceOfAlias } from './namespaces.ts';
import { boundedPayload } from './payload.ts';
import { addNamespace, removeNamespace } from './stored-names.ts';

/** What the adapter finds in an event: the payload and the caller. */
export interface Invocation {
  payload: unknown;
  principal: string | undefined;
  authorization: Authorization | undefined;
  namespace: string | undefined;
  measure?: Call['measure'];
  log?: Call['log'];
}

/** The options of a function for its adapters, see `function.ts`. */
interface AdapterOptions {
  nameFields: NameFields;
  created?(output: unknown): boolean;
  events?: EventAdapter;
  queued?: boolean;
  ofDeployment?: boolean;
  describesApi?: boolean;
  maxBytes: number;
  cacheControl?: string;
}

/**
 * Distinguishes the kinds of events, reads the payload of each, and gives the result or the failure the form that the
 * sender expects. The form of a payload proves nothing about its sender, because a task may pass on what its user
 * wrote. So an event counts as a request of the API only if the function was invoked by the API's alias, and as an SQS
 * message or an event of EventBridge only in a function that expects them.
 */
export function adapters(options: AdapterOptions): Middleware {
  const { nameFields, created, cacheControl = 'no-store' } = options;
  const rules = tokenRules(process.env);
  return {
    before: (request) => {
      const { event, internal, context } = request;
      internal.arrivedAt = systemClock.now();
      internal.startedAt = performance.now();
      const alias = aliasOf(context.invokedFunctionArn);
      const invocation =
        alias === API_ALIAS && isHttpEvent(event)
          ? invocationOfHttp({ event, internal }, options, rules)
          : invocationOfEvent({ event, alias, internal }, options);
      const { payload, namespace } = invocation;
      request.event =
        namespace === undefined ? invocation : { ...invocation, payload: addNamespace(payload, nameFields, namespace) };
    },
    after: (request) => {
      const { namespace, adapter } = request.internal;
      const output = request.response;
      const answer = namespace === undefined ? output : removeNamespace(output, nameFields, namespace);
      request.response = adapter === 'http' ? httpSuccess(answer, created?.(output) ?? false, cacheControl) : answer;
    },
    onError: (request) => {
      const error = request.error as HoldfastError;
      const { namespace } = request.internal;
      const stored = error.problem(request.context.awsRequestId);
      const problem = namespace === undefined ? stored : removeNamespace(stored, nameFields, namespace);
      if (request.internal.adapter === 'http') request.response = httpFailure(problem, error.retryAfterMs);
      else if (request.internal.accepts?.includes(error.code)) request.response = problem;
      else request.error = new TaskFailure(problem);
    },
  };
}

function invocationOfHttp(
  { event, internal }: { event: APIGatewayProxyEventV2; internal: Partial<Internal> },
  { describesApi, maxBytes }: AdapterOptions,
  rules: TokenRules,
): Invocation {
  internal.adapter = 'http';
  const namespace = namespaceOf(event);
  internal.namespace = namespace;
  const principal = httpPrincipal(event);
  const authorization = httpAuthorization(event, rules);
  if (namespace !== undefined || !describesApi) assertToken(authorization, namespace, rules);
  return { payload: httpPayload(event, maxBytes), principal, authorization, namespace };
}

/**
 * The invocation of an SQS message, of an event of EventBridge or of a task. Messages and events come without an alias.
 */
function invocationOfEvent(
  { event, alias, internal }: { event: unknown; alias: string | undefined; internal: Partial<Internal> },
  { events, queued, ofDeployment = false, maxBytes }: AdapterOptions,
): Invocation {
  const noCaller = { authorization: undefined, namespace: undefined, principal: undefined };
  if (alias === undefined && queued && isQueued(event)) {
    internal.adapter = 'sqs';
    return { ...noCaller, payload: queuedPayload(event, maxBytes) };
  }
  if (alias === undefined && events && isBusEvent(event)) {
    internal.adapter = 'event-bridge';
    internal.accepts = events.accepts ?? [];
    return { ...noCaller, payload: boundedPayload(events.payload(event), maxBytes) };
  }
  internal.adapter = 'task';
  const namespace = namespaceOfAlias(alias, ofDeployment);
  internal.namespace = namespace;
  return {
    ...noCaller,
    payload: boundedPayload(event, maxBytes),
    namespace,
    principal: namespace && `alias:${namespace}`,
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

/**
 * The failure of a task. Lambda reports the name as `errorType`, which Retry and Catch compare, and the message as
 * `errorMessage`.
 */
class TaskFailure extends Error {
  constructor(problem: Problem) {
    super(JSON.stringify(problem));
    this.name = problem.code;
    this.stack = problem.code; // Lambda logs the stack and sends it to the caller
  }
}

const tokenRules = (env: NodeJS.ProcessEnv): TokenRules => ({
  namespaceClaim: env.JWT_NAMESPACE_CLAIM ?? 'holdfast_namespace',
  adminScope: env.ADMIN_SCOPE ?? 'holdfast/admin',
});
