import headerNormalizer from '@middy/http-header-normalizer';
import jsonBodyParser from '@middy/http-json-body-parser';
import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import { invalidRequest } from '../errors.ts';

export function isHttpEvent(event: unknown): event is APIGatewayProxyEventV2 {
  const { version, requestContext } = (event ?? {}) as Partial<APIGatewayProxyEventV2>;
  return version === '2.0' && typeof requestContext?.http?.method === 'string';
}

const normalizeHeaders = headerNormalizer();
const parseJsonBody = jsonBodyParser();

/**
 * The query string of a GET, else the JSON body.
 * @throws HoldfastError InvalidRequest naming the part of the request that cannot be read
 */
export function httpPayload(event: APIGatewayProxyEventV2): unknown {
  if (event.requestContext.http.method === 'GET') return query(event.rawQueryString ?? '');
  if (!event.body) throw invalidRequest([{ path: 'body', message: 'is missing' }]);
  const request = { event: { headers: event.headers ?? {}, body: event.body, isBase64Encoded: event.isBase64Encoded } };
  try {
    normalizeHeaders.before?.(request as never);
    parseJsonBody.before?.(request as never);
  } catch (error) {
    const wrongType = (error as { statusCode?: number }).statusCode === 415;
    throw invalidRequest([
      wrongType
        ? { path: 'content-type', message: 'must be application/json' }
        : { path: 'body', message: 'is not JSON that can be read' },
    ]);
  }
  return request.event.body;
}

/** The raw string and not the gateway's map, which joins repeated names with commas. */
function query(raw: string): Record<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(wellFormed(raw))) {
    if (fields.has(name)) throw invalidRequest([{ path: name, message: 'is given twice' }]);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

/** URLSearchParams would read broken escapes as replacement characters, and so look up another key. */
function wellFormed(raw: string): string {
  try {
    decodeURIComponent(raw);
    return raw;
  } catch {
    throw invalidRequest([{ path: 'query', message: 'is not percent-encoded UTF-8' }]);
  }
}

/** Who called: the IAM ARN, or the subject of the JWT. */
export function httpPrincipal(event: APIGatewayProxyEventV2): string | undefined {
  const { authorizer } = event.requestContext as { authorizer?: Authorizer };
  const caller = authorizer?.iam?.userArn ?? authorizer?.jwt?.claims?.sub;
  return typeof caller === 'string' ? caller : undefined;
}

interface Authorizer {
  iam?: { userArn?: string };
  jwt?: { claims?: { sub?: unknown } };
}
