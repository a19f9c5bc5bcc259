import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import type { Authorization } from '../aws/call.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import { parseJson, tooManyBytes } from './payload.ts';

export function isHttpEvent(event: unknown): event is APIGatewayProxyEventV2 {
  const { version, requestContext } = (event ?? {}) as Partial<APIGatewayProxyEventV2>;
  return version === '2.0' && typeof requestContext?.http?.method === 'string';
}

/**
 * The query string of a GET, else the JSON body. A POST with a query string is refused.
 * @throws HoldfastError InvalidRequest naming the part of the request that cannot be read, PayloadTooLarge
 */
export function httpPayload(event: APIGatewayProxyEventV2, maxBytes: number): unknown {
  const { rawQueryString = '' } = event;
  if (event.requestContext.http.method === 'GET') return query(rawQueryString, maxBytes);
  // The fields of a query would be ignored silently. And IAM may read what follows a `?` as part of the path, so the service must not act on it.
  if (rawQueryString !== '') throw invalidRequest([{ path: 'query', message: 'must be empty' }]);
  if (!event.body || typeof event.body !== 'string') throw invalidRequest([{ path: 'body', message: 'is missing' }]);
  if (!JSON_TYPE.test(header(event, 'content-type') ?? ''))
    throw invalidRequest([{ path: 'content-type', message: 'must be application/json' }]);
  return parseJson(event.isBase64Encoded ? decoded(event.body, maxBytes) : event.body, 'body', maxBytes);
}

/** Also application/problem+json and the like. */
const JSON_TYPE = /^application\/([a-z0-9.+-]+\+)?json *(;|$)/i;

/** The gateway writes names in lower case, other senders of its events may not. */
function header({ headers = {} }: APIGatewayProxyEventV2, name: string): string | undefined {
  return headers[name] ?? Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
}

/** @throws HoldfastError InvalidRequest if the bytes are not UTF-8: replacement characters would turn several keys into one. */
function decoded(body: string, maxBytes: number): string {
  const bytes = body.length * 0.75; // its padding counts for at most two
  if (bytes - 2 > maxBytes) throw tooManyBytes(maxBytes);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(body, 'base64'));
  } catch {
    throw invalidRequest([{ path: 'body', message: 'must be valid JSON' }]);
  }
}

/** The raw string and not the gateway's map, which joins repeated names with commas. */
function query(raw: string, maxBytes: number): Record<string, string> {
  if (raw.length > maxBytes) throw tooManyBytes(maxBytes);
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(wellFormed(raw))) {
    if (fields.has(name)) throw invalidRequest([{ path: name.slice(0, 100), message: 'must be given once' }]);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

/** URLSearchParams would turn broken escapes into replacement characters, and the call would read another key. */
function wellFormed(raw: string): string {
  try {
    decodeURIComponent(raw);
    return raw;
  } catch {
    throw invalidRequest([{ path: 'query', message: 'must be percent-encoded UTF-8' }]);
  }
}

/**
 * The caller: the IAM ARN, or the subject of the JWT. Undefined if the route has no authorizer.
 * @throws HoldfastError Forbidden for a JWT without a subject: all such callers would be one, and get each other's grants
 */
export function httpPrincipal(event: APIGatewayProxyEventV2): string | undefined {
  const { authorizer } = event.requestContext as { authorizer?: GatewayAuthorizer };
  if (authorizer?.iam?.userArn !== undefined) return authorizer.iam.userArn;
  if (!authorizer?.jwt) return undefined;
  const { sub } = authorizer.jwt.claims ?? {};
  if (typeof sub === 'string' && sub !== '') return sub;
  throw forbidden('the token has no claim `sub`, which must name its caller', 'the claim sub');
}

/** The claim and scope that tokens of a deployment need. */
export interface TokenRules {
  /** The claim that names the namespaces of a caller. */
  namespaceClaim: string;
  /** The scope for the routes of the whole deployment. */
  adminScope: string;
}

/** Says how the caller was authorized. */
export function httpAuthorization(event: APIGatewayProxyEventV2, { namespaceClaim }: TokenRules): Authorization {
  const { authorizer } = event.requestContext as { authorizer?: GatewayAuthorizer };
  if (authorizer?.iam) return { by: 'iam' };
  if (!authorizer?.jwt) return { by: 'nobody' };
  const { scope, scp, [namespaceClaim]: namespaces } = authorizer.jwt.claims ?? {};
  // The gateway checks both claims, and passes a list on as text: [one two].
  return {
    by: 'jwt',
    scopes: `${scope ?? ''} ${scp ?? ''}`.split(/[\s,[\]]+/).filter(Boolean),
    namespaces: listOfClaim(namespaces),
  };
}

/** A claim that is a single text is a single namespace, whatever it contains. */
function listOfClaim(claim: unknown): string[] {
  if (typeof claim !== 'string') return [];
  const [, list] = /^\[(.*)\]$/s.exec(claim) ?? [];
  return list === undefined ? [claim] : list.split(/\s+/).filter(Boolean);
}

/**
 * Lets a JWT into its namespaces, and with a scope into the whole deployment. IAM has decided on the path before.
 * @throws HoldfastError Forbidden, which names the missing claim or scope
 */
export function assertToken(
  authorization: Authorization,
  namespace: string | undefined,
  { namespaceClaim, adminScope }: TokenRules,
): void {
  if (authorization.by !== 'jwt') return;
  if (namespace !== undefined && !authorization.namespaces.includes(namespace))
    throw forbidden(
      `the claim \`${namespaceClaim}\` of the token must name the namespace`,
      `the namespace ${namespace} in the claim ${namespaceClaim}`,
    );
  if (namespace === undefined && !authorization.scopes.includes(adminScope))
    throw forbidden(
      'the token is not for the whole deployment: use the routes of a namespace',
      `the scope ${adminScope}`,
    );
}

const forbidden = (detail: string, missing: string) => new HoldfastError('Forbidden', detail, { missing });

interface GatewayAuthorizer {
  iam?: { userArn?: string };
  jwt?: { claims?: Record<string, unknown> };
}
