import type { Authorization, Call } from '../aws/call.ts';

/** One route of the API, as `npm run contract` writes them down. */
interface Route {
  function: string;
  method: string;
  path: string;
  /** The parameter of the deployment that names the scope of an operator; null if the call is not for operators. */
  scope: string | null;
  /** The same for the scope of the capability; null if any accepted token is enough. */
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
  /** Null if only IAM knows. */
  allowed: boolean | null;
  /** The required scope; null if every caller that reaches this call may make it. */
  permission: string | null;
}

export interface Whoami {
  /** The version of the deployment. */
  version: string;
  /** The IAM ARN, or the subject of the JWT; null if callers are not authenticated. */
  principal: string | null;
  authorizedBy: 'iam' | 'jwt' | 'lambda' | 'nobody';
  /** The namespaces of a token, or that of a task's alias. Null if only IAM knows. */
  namespaces: string[] | null;
  calls: MayCall[];
}

/**
 * How the service knows its caller, and what the caller may call as far as the service can know. The scopes of a JWT are
 * in the token. What IAM allows is in policies that the service does not read.
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
  const isThis = operation === 'whoami';
  switch (authorization?.by) {
    case 'nobody':
      return { ...call, allowed: true, permission: null };
    case 'jwt': {
      const needed = parametersOf(route, namespace).map((name) => scopes[name] ?? name);
      const allowed = needed.every((one) => authorization.scopes.includes(one));
      return { ...call, allowed, permission: needed.join(' ') || null };
    }
    case 'iam':
      return { ...call, allowed: isThis || null, permission: `execute-api:Invoke on <api>/$default/${method}${path}` };
    case undefined: {
      const alias = namespace === undefined ? '' : `, alias ${namespace}`;
      return {
        ...call,
        allowed: isThis || null,
        permission: `lambda:InvokeFunction on the function ${operation}${alias}`,
      };
    }
  }
}

/** The parameters that name the scopes which a token must have. */
function parametersOf({ scope, family }: Route, namespace: string | undefined): string[] {
  if (family === null) return [];
  if (namespace !== undefined) return [scope ?? family];
  return scope === null ? ['adminScope'] : ['adminScope', scope];
}
