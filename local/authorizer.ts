import type { Issuer } from './issuer.ts';

/** The part of an event that the authorizer adds if it accepts a token. */
export type Authorized = { authorizer: { jwt: { claims: Record<string, string>; scopes: string[] | null } } };
export type Authorizer = (
  authorization: string | undefined,
  route: { method: string; path: string },
) => Promise<Authorized | { status: 401 | 403; message: string }>;

/**
 * The JWT authorizer of an HTTP API, with tokens of the local issuer.
 * @param scopesOf the scopes of a route, of which a token must have one; empty if any token is enough
 */
export function jwtAuthorizer(
  issuer: Issuer,
  scopesOf: (route: { method: string; path: string }) => readonly string[],
): Authorizer {
  return async (authorization = '', route) => {
    const claims = await issuer.claimsOf(authorization.replace(/^Bearer /i, ''));
    if (!claims) return { status: 401, message: 'Unauthorized' };
    const needed = scopesOf(route);
    const scopes = [claims.scope, claims.scp]
      .flat()
      .flatMap((scopes) => `${scopes ?? ''}`.split(' '))
      .filter(Boolean);
    if (needed.length > 0 && !needed.some((scope) => scopes.includes(scope)))
      return { status: 403, message: 'Forbidden' };
    const passed = Object.entries(claims).map(([name, value]) => [name, textOf(value)]);
    return {
      authorizer: { jwt: { claims: Object.fromEntries(passed), scopes: needed.length > 0 ? [...needed] : null } },
    };
  };
}

/** A claim as an HTTP API passes it on: a list becomes text. */
const textOf = (value: unknown): string => (Array.isArray(value) ? `[${value.join(' ')}]` : String(value));
