import type { Authorization, Call } from '../aws/call.ts';

/** A route of the API. `npm run contract` writes the list. */
interface Route {
  function: string;
  method: string;
  path: string;
  /** The parameter that names the scope of an operator. Null if the call is not only for operators. */
  scope: string | null;
  /** The parameter that names the scope of the capability. Null if every accepted token is enough. */
  family: string | null;
}

export interface WhoamiDependencies {
  version: string;
  routes: readonly Route[];
  /** The scopes of this deployment, by parameter. */
  scopes: Readonly<Record<string, string>>;
}

export interface MayCall {
  /** The name of the function, which is the `operationId` of the contract. */
  operation: string;
  /** Method and path. */
  route: string;
  /** Whether the caller may make the call. Null if only IAM knows. */
  allowed: boolean | null;
  /** The permission that the call needs. Null if every caller that reaches the API may make the call. */
  permission: string | null;
}

export interface Whoami {
  version: string;
  /** The IAM ARN, or the subject of the JWT. Null if callers are not authenticated. */
  principal: string | null;
  authorizedBy: 'iam' | 'jwt' | 'lambda' | 'nobody';
  /** The namespaces of a token, or the namespace of a task's alias. Null if only IAM knows. */
  namespaces: string[] | null;
  calls: MayCall[];
}

/**
 * Answers who the caller is and what it may call. For a JWT the service knows this by the scopes in the token. What IAM
 * allows is unknown here, because the service does not read policies.
 */
export function whoami({ version, routes, scopes }: WhoamiDependencies) {
  return async (_: object, { principal, authorization, namespace }: Call): Promise<Whoami> => ({
    version,
    principal: principal ?? null,
    authorizedBy: authorization?.by ?? 'lambda',
    namespaces: namespacesOf(authorization, namespace),
    calls: routes.map((route) => mayCall(route, { authorization, namespace, scopes })),
  });
}

function namespacesOf(authorization: Authorization | undefined, namespace: string | undefined): string[] | null {
  if (authorization?.by === 'jwt') return [...authorization.namespaces];
  return authorization === undefined && namespace !== undefined ? [namespace] : null;
}

interface AskingCaller extends Pick<WhoamiDependencies, 'scopes'> {
  authorization: Authorization | undefined;
  namespace: string | undefined;
}

function mayCall(route: Route, { authorization, namespace, scopes }: AskingCaller): MayCall {
  const { function: operation, method } = route;
  const path = namespace === undefined ? route.path : `/v1/ns/${namespace}${route.path.replace(/^\/v1\//, '/')}`;
  const call = { operation, route: `${method} ${path}` };
  const isWhoami = operation === 'whoami';
  switch (authorization?.by) {
    case 'nobody':
      return { ...call, allowed: true, permission: null };
    case 'jwt': {
      const needed = parametersOf(route, namespace).map((name) => scopes[name] ?? name);
      const allowed = needed.every((one) => authorization.scopes.includes(one));
      return { ...call, allowed, permission: needed.join(' ') || null };
    }
    case 'iam':
      return {
        ...call,
        allowed: isWhoami || null,
        permission: `execute-api:Invoke on <api>/$default/${method}${path}`,
      };
    case undefined: {
      const alias = namespace === undefined ? '' : `, alias ${namespace}`;
      return {
        ...call,
        allowed: isWhoami || null,
        permission: `lambda:InvokeFunction on the function ${operation}${alias}`,
      };
    }
  }
}

function parametersOf({ scope, family }: Route, namespace: string | undefined): string[] {
  if (family === null) return [];
  if (namespace !== undefined) return [scope ?? family];
  return scope === null ? ['adminScope'] : ['adminScope', scope];
}
