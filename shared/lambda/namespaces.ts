import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import { HoldfastError, invalidRequest } from '../errors.ts';

const IN_NAMESPACE = /^\/v1\/ns\/([a-z0-9][a-z0-9-]{0,31})(\/.+)$/;

/** Parts of a path that two programs may read differently: an escape, an empty segment, a segment of dots. */
const AMBIGUOUS = /%|\/\/|\/\.{1,2}(?:\/|$)/;

const TEMPLATE = '/v1/ns/{ns}';

/**
 * The namespace of an HTTP request, undefined on the routes for the whole deployment. The path alone decides it,
 * because IAM has checked the path. The path must match the route exactly. Otherwise a namespace's path could pass for
 * a path of the whole deployment, and give its caller an administrator's rights.
 * @throws HoldfastError InvalidRequest if path and route differ, or the path can be read in two ways
 */
export function namespaceOf({ rawPath = '', routeKey = '' }: Partial<APIGatewayProxyEventV2>): string | undefined {
  if (AMBIGUOUS.test(rawPath))
    throw invalidRequest([{ path: 'path', message: "must not contain an escape or an empty, '.' or '..' segment" }]);
  const [, namespace, rest] = IN_NAMESPACE.exec(rawPath) ?? [];
  const [, template = ''] = routeKey.split(' ');
  const expected = namespace === undefined ? undefined : TEMPLATE + rest;
  const isOfNamespace = template.startsWith(TEMPLATE) || rawPath.includes('/ns/');
  if (isOfNamespace && template !== expected)
    throw invalidRequest([
      { path: 'path', message: 'must name a namespace of 1 to 32 of a-z, 0-9 and -, which does not begin with -' },
    ]);
  return namespace;
}

/**
 * The alias of each function that only the API may invoke. Names of namespaces are in lower case, so a namespace cannot
 * have this one.
 */
export const API_ALIAS = 'HTTP';

/**
 * The alias with which a function was invoked: the last part of the ARN. Undefined if it was invoked without an alias.
 */
export const aliasOf = (invokedFunctionArn: string): string | undefined => {
  const [, , , , , , , alias] = invokedFunctionArn.split(':');
  return alias === '$LATEST' ? undefined : alias;
};

/**
 * The namespace of a task. It is the alias that the task invokes, because IAM allows a task only certain aliases. A
 * field of the payload would prove nothing.
 * @param ofDeployment whether the function belongs to the whole deployment: its payload may name keys and executions of
 *   every team, so an alias would give one team the rights of all
 * @throws HoldfastError Forbidden if the alias is not a namespace, or the function belongs to the whole deployment
 */
export function namespaceOfAlias(alias: string | undefined, ofDeployment: boolean): string | undefined {
  if (alias === undefined) return undefined;
  const isVersion = /^\d+$/.test(alias);
  if (!ofDeployment && /^[a-z0-9][a-z0-9-]{0,31}$/.test(alias) && !isVersion) return alias;
  const needed = ofDeployment ? 'the function without an alias' : 'the alias of a namespace';
  throw new HoldfastError('Forbidden', `the function does not accept the alias ${alias}: invoke ${needed}`, {
    missing: needed,
  });
}
