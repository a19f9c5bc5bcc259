import type { operations } from './contract.ts';
import { HoldfastError } from './errors.ts';
import { ROUTES } from './routes.ts';

/** The name of a call of the API, as in the contract. */
export type Operation = keyof operations;

type JsonOf<Part> = Part extends { content: { 'application/json': infer Json } } ? Json : never;

/** The request of a call: the fields of its JSON body or of its query. */
export type RequestOf<O extends Operation> = operations[O] extends { requestBody: infer Body }
  ? JsonOf<Body>
  : Exclude<operations[O]['parameters']['query'], undefined> extends infer Query extends object
    ? [Query] extends [never]
      ? Record<string, never>
      : Query
    : never;

/** The answer of a call. */
export type AnswerOf<O extends Operation> = {
  [Status in keyof operations[O]['responses']]: Status extends 200 | 201
    ? JsonOf<operations[O]['responses'][Status]>
    : never;
}[keyof operations[O]['responses']];

/**
 * Sends one try of a call, and ends it when the signal aborts. Write your own to reach the service in another way.
 * @param namespace a valid namespace, or undefined for the whole deployment
 * @param timeoutMs after how many milliseconds the client stops the try, and aborts the signal
 * @returns the answer, as the contract describes it
 * @throws HoldfastError with the problem that the service answered; `Unreachable` if the service did not answer; `Refused` if a retry would not help
 */
export type Transport = (
  operation: Operation,
  payload: object,
  signal: AbortSignal,
  ...more: [namespace?: string | undefined, timeoutMs?: number]
) => Promise<unknown>;

/** The namespaces that the service accepts. Any other text in the path of a URL could lead to another namespace, or to none. */
const NAMESPACE = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** A program without types may pass anything. @throws TypeError if the value is given and is not a namespace */
export function assertNamespace(namespace: string | undefined): void {
  if (namespace !== undefined && !NAMESPACE.test(namespace ?? ''))
    throw new TypeError(`the namespace must match ${NAMESPACE}, not '${namespace}'`);
}

/** The path of a call, relative to /v1/. With a namespace, even a call that is otherwise outside of /v1/ is inside the path of the namespace. */
export const routeOf = (operation: Operation, namespace?: string): string =>
  namespace === undefined ? ROUTES[operation] : `ns/${namespace}/${ROUTES[operation].replace('../', '')}`;

/** The error for a problem that the service answered. Undefined if the body is not such a problem. */
export function problemOf(body: unknown): HoldfastError | undefined {
  const { type, code, detail } = (body ?? {}) as Record<string, unknown>;
  const known = typeof type === 'string' && type.startsWith('urn:holdfast:error:');
  return known && typeof code === 'string'
    ? new HoldfastError({ ...(body as object), code, detail: String(detail) })
    : undefined;
}
