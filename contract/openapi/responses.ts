import { ERRORS, type ErrorCode } from '../../shared/errors.ts';
import { ERROR_CONTRACTS, GATEWAY_ANSWERS } from '../errors.ts';
import { COMMON_ERRORS, type Route } from '../routes/route.ts';
import { discriminator } from './components.ts';
import { type JsonSchema, refTo } from './json-schema.ts';

export const securitySchemes = {
  iam: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: 'Signature Version 4 for the service `execute-api`, where the deployment has `auth=iam`.',
    'x-amazon-apigateway-authtype': 'awsSigv4',
  },
  jwt: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: "A token of the deployment's issuer and audience, where the deployment has `auth=jwt`.",
  },
};

/** The gateway refuses these before it reads the request, and sends no body. */
const WITHOUT_BODY = [431];

const gateway = { 'application/json': { schema: refTo('GatewayRefusal') } };

export const headers = {
  Version: {
    description: 'The version of the deployment. Answers of the gateway itself do not have it.',
    schema: { type: 'string' },
  },
};

/** Every answer of a function has it. */
export const versionHeader = { 'Holdfast-Version': { $ref: '#/components/headers/Version' } };

const retryAfter = {
  'Retry-After': {
    description: 'After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise.',
    schema: { type: 'integer', minimum: 0 },
  },
};

/** The response for a status, which may have several error codes. */
function response(status: number, codes: readonly ErrorCode[], examples: Record<string, unknown> = {}): JsonSchema {
  const said = [
    ...codes.map((code) => `${ERRORS[code].title}.`),
    ...(GATEWAY_ANSWERS[status] ? [GATEWAY_ANSWERS[status]] : []),
  ];
  const [first = 'InvalidRequest', ...more] = codes;
  const schema = more.length > 0 ? { oneOf: codes.map(refTo), discriminator: discriminator(codes) } : refTo(first);
  const problem = {
    'application/problem+json': { schema, ...(Object.keys(examples).length > 0 && { examples }) },
  };
  return {
    description: said.join(' '),
    ...(codes.length > 0 && {
      headers: {
        ...versionHeader,
        ...(codes.some((code) => 'retryAfterMs' in ERROR_CONTRACTS[code].fields) && retryAfter),
      },
    }),
    ...(!WITHOUT_BODY.includes(status) && {
      content: { ...(codes.length > 0 && problem), ...(GATEWAY_ANSWERS[status] && gateway) },
    }),
  };
}

/** The responses that are the same on every route. */
const SHARED: Record<string, { status: number; codes: readonly ErrorCode[] }> = {
  InvalidRequest: { status: 400, codes: ['InvalidRequest'] },
  Unauthorized: { status: 401, codes: [] },
  Forbidden: { status: 403, codes: ['Forbidden'] },
  TooLarge: { status: 413, codes: ['PayloadTooLarge'] },
  Throttled: { status: 429, codes: ['Throttled'] },
  HeadersTooLarge: { status: 431, codes: [] },
  NoFunction: { status: 500, codes: [] },
  Unavailable: { status: 503, codes: ['Unavailable'] },
};

export const responses = () =>
  Object.fromEntries(Object.entries(SHARED).map(([name, { status, codes }]) => [name, response(status, codes)]));

/** The failures of a route, by status. */
export function failures({ errors, examples, method }: Route): Record<string, JsonSchema> {
  const own = Map.groupBy([...errors], (code) => ERRORS[code].status);
  const shared = Object.entries(SHARED)
    // A GET has no body, and the gateway does not accept a query that is too large for the service.
    .filter(([, { status }]) => !own.has(status as never) && !(method === 'GET' && status === 413))
    .map(([name, { status }]) => [status, { $ref: `#/components/responses/${name}` }]);
  const its = [...own].map(([status, codes]) => {
    const common = COMMON_ERRORS.filter((code) => ERRORS[code].status === status);
    const shown = examples.filter((example) => example.status === status);
    const named = shown.map(({ name, summary, answer }) => [name, { summary, value: answer }]);
    return [status, response(status, [...common, ...codes], Object.fromEntries(named))];
  });
  return Object.fromEntries([...shared, ...its]);
}
