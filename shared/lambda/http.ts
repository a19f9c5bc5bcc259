import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import type { Authorization } from '../aws/call.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import { parseJson, tooManyBytes } from './payload.ts';

export function isHttpEvent(event: unknown): event is APIGatewayProxyEventV2 {
  const { version, requestContext } = (event ?? {}) as Partial<APIGatewayProxyEventV2>;
  return version === '2.0' && typeof requestContext?.http?.method === 'string';
}

/**
 * The payload of an HTTP request: the query string of a GET, and otherwise the JSON body.
 * @throws HoldfastError InvalidRequest naming the part of the request that cannot be read, PayloadTooLarge
 */
export function httpPayload(event: APIGatewayProxyEventV2, maxBytes: number): unknown {
  const { rawQueryString = '' } = event;
  if (event.requestContext.http.method === 'GET') return query(rawQueryString, maxBytes);
  // A caller would not notice that the query is ignored. IAM may also read it as a part of the path, so the service
  // must not act on it.
  if (rawQueryString !== '') throw invalidRequest([{ path: 'query', message: 'must be empty' }]);
  if (!event.body || typeof event.body !== 'string') throw invalidRequest([{ path: 'body', message: 'is missing' }]);
  if (!JSON_TYPE.test(header(event, 'content-type') ?? ''))
    throw invalidRequest([{ path: 'content-type', message: 'must be application/json' }]);
  return parseJson(event.isBase64Encoded ? decoded(event.body, maxBytes) : event.body, 'body', maxBytes);
}

/** `application/json`, or a type such as `application/problem+json`. */
const JSON_TYPE = /^application\/([a-z0-9.+-]+\+)?json *(;|$)/i;

/**
 * The value of a header, in any case of its name: API Gateway writes lower case, but other senders of such events may
 * not.
 */
function header({ headers = {} }: APIGatewayProxyEventV2, name: string): string | undefined {
  return headers[name] ?? Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
}

/**
 * @throws HoldfastError InvalidRequest if the bytes are not UTF-8: with replacement characters, several keys would
 *   become one
 */
function decoded(body: string, maxBytes: number): string {
  const bytes = body.length * 0.75; // up to two bytes too many, because of the padding
  if (bytes - 2 > maxBytes) throw tooManyBytes(maxBytes);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(body, 'base64'));
  } catch {
    throw invalidRequest([{ path: 'body', message: 'must be valid JSON' }]);
  }
}

/** The fields of a query string. Parsed here, because API Gateway joins the values of a repeated field with commas. */
function query(raw: string, maxBytes: number): Record<string, string> {
  if (raw.length > maxBytes) throw tooManyBytes(maxBytes);
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(wellFormed(raw))) {
    if (fields.has(name)) throw invalidRequest([{ path: name.slice(0, 100), message: 'must be given once' }]);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

/**
 * Refuses broken escapes. URLSearchParams would replace them with other characters, and the call would read another
 * key.
 */
function wellFormed(raw: string): string {
  try {
    decodeURIComponent(raw);
    return raw;
  } catch {
    throw invalidRequest([{ path: 'query', message: 'must be percent-encoded UTF-8' }]);
  }
}

/**
 * The caller's IAM ARN, or the subject of its JWT. Undefined if the route does not have an authorizer.
 * @throws HoldfastError Forbidden for a JWT without a subject: all such callers would count as one, and receive each
 *   other's grants
 */
export function httpPrincipal(event: APIGatewayProxyEventV2): string | undefined {
  const { authorizer } = event.requestContext as { authorizer?: GatewayAuthorizer };
  if (authorizer?.iam?.userArn !== undefined) return authorizer.iam.userArn;
  if (!authorizer?.jwt) return undefined;
  const { sub } = authorizer.jwt.claims ?? {};
  if (typeof sub === 'string' && sub !== '') return sub;
  throw forbidden('the token has no claim `sub`, which must name its caller', 'the claim sub');
}

export interface TokenRules {
  namespaceClaim: string;
  /** The scope for the routes of the whole deployment. */
  adminScope: string;
}

export function httpAuthorization(event: APIGatewayProxyEventV2, { namespaceClaim }: TokenRules): Authorization {
  const { authorizer } = event.requestContext as { authorizer?: GatewayAuthorizer };
  if (authorizer?.iam) return { by: 'iam' };
  if (!authorizer?.jwt) return { by: 'nobody' };
  const { scope, scp, [namespaceClaim]: namespaces } = authorizer.jwt.claims ?? {};
  // API Gateway accepts scopes in either claim, and passes a list on as text: [one two].
  return {
    by: 'jwt',
    scopes: `${scope ?? ''} ${scp ?? ''}`.split(/[\s,[\]]+/).filter(Boolean),
    namespaces: listOfClaim(namespaces),
  };
}

/** The values of a claim. A claim that is not a list is one value, even if it contains blanks. */
function listOfClaim(claim: unknown): string[] {
  if (typeof claim !== 'string') return [];
  const [, list] = /^\[(.*)\]$/s.exec(claim) ?? [];
  return list === undefined ? [claim] : list.split(/\s+/).filter(Boolean);
}

/**
 * Checks that a JWT gives access to the namespace, or to the whole deployment. For callers with IAM, API Gateway has
 * checked the path before.
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
