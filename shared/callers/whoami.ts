import type { Authorization, Call } from '../aws/call.ts';

/** One route of the API, as `npm run contract` writes them down. */
interface Route {
  function: string;
  method: string;
  path: string;
  /** The parameter of the deployment that names the scope a JWT must carry; null where any accepted token will do. */
  scope: string | null;
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
  /** Null where only IAM knows. */
  allowed: boolean | null;
  /** What it takes; null where it takes nothing more than to reach this call. */
  permission: string | null;
}

export interface Whoami {
  /** Of the deployment. */
  version: string;
  /** The IAM ARN, or the subject of the JWT; null where nothing asks who calls. */
  principal: string | null;
  authorizedBy: 'iam' | 'jwt' | 'lambda' | 'nobody';
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
    calls: routes.map((route) => mayCall(inNamespace(route, namespace), authorization, scopes)),
  });
}

const inNamespace = (route: Route, namespace: string | undefined): Route =>
  namespace === undefined ? route : { ...route, path: `/v1/ns/${namespace}${route.path.replace(/^\/v1\//, '/')}` };

function mayCall(
  { function: operation, method, path, scope }: Route,
  authorization: Authorization | undefined,
  scopes: WhoamiDependencies['scopes'],
): MayCall {
  const call = { operation, route: `${method} ${path}` };
  const isThis = operation === 'whoami';
  switch (authorization?.by) {
    case 'nobody':
      return { ...call, allowed: true, permission: null };
    case 'jwt': {
      const permission = scope === null ? null : (scopes[scope] ?? scope);
      return { ...call, allowed: permission === null || authorization.scopes.includes(permission), permission };
    }
    case 'iam':
      return { ...call, allowed: isThis || null, permission: `execute-api:Invoke on <api>/*/${method}${path}` };
    case undefined:
      return { ...call, allowed: isThis || null, permission: `lambda:InvokeFunction on the function ${operation}` };
  }
}
