import type { operations } from './contract.ts';
import { HoldfastError } from './errors.ts';
import { ROUTES } from './routes.ts';

/** The name of a call of the API, as in the contract. */
export type Operation = keyof operations;

type JsonOf<Part> = Part extends { content: { 'application/json': infer Json } } ? Json : never;

/** The request of a call: the JSON body, or the fields of the query. */
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
 * Sends one try of a call, and ends it when the signal aborts.
 * @param namespace one that `assertNamespace` accepted; undefined for the whole deployment
 * @param timeoutMs milliseconds until the client stops the try, and aborts the signal
 * @returns the answer as the contract has it
 * @throws HoldfastError with the service's problem; `Unreachable` without a response of the service; `Refused` if
 * a retry would not help
 */
export type Transport = (
  operation: Operation,
  payload: object,
  signal: AbortSignal,
  ...more: [namespace?: string | undefined, timeoutMs?: number]
) => Promise<unknown>;

/** The namespaces that the service accepts. Any other text in a path could name another namespace, or none. */
const NAMESPACE = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** A program without types may pass anything. @throws TypeError if the value is given and is not a namespace */
export function assertNamespace(namespace: string | undefined): void {
  if (namespace !== undefined && !NAMESPACE.test(namespace ?? ''))
    throw new TypeError(`the namespace must match ${NAMESPACE}, not '${namespace}'`);
}

/** The path of a call, relative to /v1/. A call outside of /v1/ is in the path of the namespace too, if a namespace is given. */
export const routeOf = (operation: Operation, namespace?: string): string =>
  namespace === undefined ? ROUTES[operation] : `ns/${namespace}/${ROUTES[operation].replace('../', '')}`;

/** The error for a problem of the service. Undefined if the body is not such a problem. */
export function problemOf(body: unknown): HoldfastError | undefined {
  const { type, code, detail } = (body ?? {}) as Record<string, unknown>;
  const known = typeof type === 'string' && type.startsWith('urn:holdfast:error:');
  return known && typeof code === 'string'
    ? new HoldfastError({ ...(body as object), code, detail: String(detail) })
    : undefined;
}
