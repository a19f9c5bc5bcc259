import * as z from 'zod/mini';
import { ERRORS, type ErrorCode } from '../shared/errors.ts';
import { GATEWAY_STATUSES, gatewayRefusal, problems } from './errors.ts';
import { COMMON_ERRORS, type Route } from './routes/route.ts';
import { ROUTES } from './routes.ts';

export interface Received {
  /** The HTTP status. Undefined if the answer came as the result or the error of a task. */
  status?: number;
  contentType?: string | undefined;
  body: unknown;
}

/**
 * Says how an answer breaks the contract: by its status, its code, a field too many or a field too few.
 * @param functionName the function's name in the deployment
 * @returns undefined if the answer is documented, or the function has no route
 */
export function undocumented(functionName: string, received: Received): string | undefined {
  const routes = ROUTES.filter((route) => route.function === functionName);
  const faults = routes.map((route) => fault(route, { ...received, body: overTheWire(received.body) }));
  return faults.includes(undefined) ? undefined : faults[0];
}

/** A task receives an object, which loses its undefined members when it is sent. */
const overTheWire = (body: unknown): unknown => (body === undefined ? undefined : JSON.parse(JSON.stringify(body)));

function fault(route: Route, received: Received): string | undefined {
  const why = isProblem(received.body) ? problemFault(route, received, received.body) : answerFault(route, received);
  return why && `${route.function} gave an undocumented answer (${received.status ?? 'task'}): ${why}`;
}

const isProblem = (body: unknown): body is { code: string } =>
  String(Object(body).type).startsWith('urn:holdfast:error:');

function problemFault(route: Route, { status, contentType }: Received, body: { code: string }): string | undefined {
  const codes: readonly string[] = [...COMMON_ERRORS, ...route.errors];
  if (!codes.includes(body.code)) return `the route does not list the error ${body.code}: ${JSON.stringify(body)}`;
  const code = body.code as ErrorCode;
  if (status !== undefined && status !== ERRORS[code].status) return `${code} has the status ${status}`;
  if (contentType !== undefined && contentType !== 'application/problem+json') return `${code} is ${contentType}`;
  return mismatch(problems[code], body);
}

function answerFault({ success }: Route, { status, contentType, body }: Received): string | undefined {
  if (status === undefined) {
    const faults = Object.values(success).map(({ answer }) => mismatch(answer, body));
    return faults.includes(undefined) ? undefined : faults[0];
  }
  if (contentType !== undefined && contentType !== 'application/json') return `the content type is ${contentType}`;
  if (GATEWAY_STATUSES.includes(status)) return mismatch(gatewayRefusal, body);
  const documented = success[status as keyof typeof success];
  return documented ? mismatch(documented.answer, body) : `the status is not documented: ${JSON.stringify(body)}`;
}

function mismatch(schema: z.ZodMiniType, body: unknown): string | undefined {
  const parsed = schema.safeParse(body);
  return parsed.success ? undefined : `${z.prettifyError(parsed.error)} in ${JSON.stringify(body)}`;
}
