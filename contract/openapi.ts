import packageJson from '../package.json' with { type: 'json' };
import { components } from './openapi/components.ts';
import { pathParameters, paths } from './openapi/paths.ts';
import { headers, responses, securitySchemes } from './openapi/responses.ts';
import { ROUTES } from './routes.ts';

const TAGS = {
  Leases: 'Mutual exclusion with fencing tokens, and a queue of parked Step Functions tasks.',
  Commits: 'Conditional commits of objects in S3.',
  Nameservice: 'Which commit and which index is the head of a ledger or graph source.',
  'Expired records': 'What has expired and still exists, and its clean-up.',
  Contract: 'This document, and who its caller is.',
};

const DESCRIPTION = `Coordination for serverless workloads on AWS: leases, conditional commits, a nameservice and a report of expired records.

Instants are ISO 8601 in UTC with milliseconds. Durations are numbers with the unit in their name. The service refuses unknown fields of a request. A caller must ignore unknown fields of an answer, because a later version may add some.`;

/**
 * The contract as an OpenAPI 3.1 document.
 * @param strict whether answers are closed: no field besides those listed. The published document leaves them open, so
 *   that a generated client does not break if a later version adds a field; tests close them.
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
