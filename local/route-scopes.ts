import { pathInNamespace, scopesOf } from '../contract/routes/route.ts';
import { ROUTES } from '../contract/routes.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';

/** The default scopes that the gateway of a deployment requires on a route. */
export function routeScopes({ method, path }: { method: string; path: string }): string[] {
  const route = ROUTES.find((one) => one.method === method && [one.path, pathInNamespace(one)].includes(path));
  if (!route) return [];
  const { inNamespace, whole } = scopesOf(route);
  // For an operator's route of the whole deployment, the function itself also requires the scope of the administrator.
  const scopes = path === route.path ? whole.slice(-1) : inNamespace;
  return scopes.map((name) => String(PARAMETERS[name]?.default));
}
