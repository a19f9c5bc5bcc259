import { pathInNamespace, scopesOf } from '../contract/routes/route.ts';
import { ROUTES } from '../contract/routes.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';

/** The default scopes that the gateway of a deployment requires on a route. */
export function routeScopes({ method, path }: { method: string; path: string }): string[] {
  const route = ROUTES.find((one) => one.method === method && [one.path, pathInNamespace(one)].includes(path));
  if (!route) return [];
  const { inNamespace, whole } = scopesOf(route);
  // Of an operator's route for the whole deployment the function asks for the administrator's scope besides.
  const asked = path === route.path ? whole.slice(-1) : inNamespace;
  return asked.map((name) => String(PARAMETERS[name]?.default));
}
