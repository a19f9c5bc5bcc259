import packageJson from '../package.json' with { type: 'json' };
import { components } from './openapi/components.ts';
import { pathParameters, paths } from './openapi/paths.ts';
import { headers, responses, securitySchemes } from './openapi/responses.ts';
import { ROUTES } from './routes.ts';

const TAGS = {
  Leases:
    'Who may work on a key, and when: leases, permits, `once` and rates, for programs and for Step Functions tasks.',
  Commits: 'Conditional commits of objects in S3.',
  Nameservice: 'Which commit and which index is the head of a ledger or a graph source.',
  'Expired records': 'A report of records that have expired and still exist, and their clean-up.',
  Contract: 'What is deployed, and who the caller is.',
};

const DESCRIPTION = `Coordination for serverless work on AWS: leases, permits, once, rates, conditional commits, a nameservice and a report of expired records.

Instants are ISO 8601 in UTC with milliseconds. Durations are numbers with the unit in their name. The service refuses a request with unknown fields. Callers must ignore unknown fields of an answer, because a later version may add some.`;

/**
 * The contract as an OpenAPI 3.1 document.
 * @param strict whether an answer may have only the fields that are listed. Tests want it so. The published document leaves answers open, so
 *   that a generated client still works when a later version adds a field.
 */
export function openapi({ strict = false }: { strict?: boolean } = {}): Record<string, unknown> {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version: packageJson.version,
      description: DESCRIPTION,
      license: { name: 'Apache License 2.0', identifier: packageJson.license },
    },
    servers: [{ url: '/', description: 'The deployment that serves this document.' }],
    security: [{ iam: [] }, { jwt: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: paths(ROUTES),
    components: {
      schemas: components(ROUTES, strict),
      parameters: pathParameters(),
      responses: responses(),
      headers,
      securitySchemes,
    },
  };
}
