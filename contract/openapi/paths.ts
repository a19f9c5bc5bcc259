import { pathInNamespace, type Route } from '../routes/route.ts';
import { answerSchema, type JsonSchema, refTo, requestSchema } from './json-schema.ts';
import { failures, versionHeader } from './responses.ts';

export function paths(routes: readonly Route[]): Record<string, Record<string, JsonSchema>> {
  const byPath: Record<string, Record<string, JsonSchema>> = {};
  const add = (path: string, { method }: Route, described: JsonSchema) => {
    byPath[path] = { ...byPath[path], [method.toLowerCase()]: described };
  };
  for (const route of routes) add(route.path, route, operation(route));
  for (const route of routes) add(pathInNamespace(route), route, operationInNamespace(route));
  return byPath;
}

/** The examples are those of the route for the whole deployment. */
function operationInNamespace(route: Route): JsonSchema {
  const path = pathInNamespace(route);
  const { parameters = [], ...whole } = operation({ ...route, path, examples: [] }) as { parameters?: JsonSchema[] };
  return {
    ...whole,
    operationId: `${route.function}InNamespace`,
    summary: `${route.summary}, in a namespace`,
    parameters: [{ $ref: '#/components/parameters/Namespace' }, ...parameters],
  };
}

export const pathParameters = () => ({
  Namespace: {
    name: 'ns',
    in: 'path',
    required: true,
    description:
      'The namespace. Keys, aliases and the keys of fences are names in it, and paths of objects begin with it and a slash.',
    schema: { type: 'string', pattern: '^[a-z0-9][a-z0-9-]{0,31}$' },
    example: 'team-a',
  },
});

/** The scopes as a deployment has them that sets no others. */
const SCOPES = {
  breakScope: 'holdfast/leases.break',
  cleanScope: 'holdfast/expired.clean',
  repairScope: 'holdfast/names.repair',
  resetFenceScope: 'holdfast/commits.repair',
};

function operation(route: Route): JsonSchema {
  const { method, path, scope } = route;
  const permission = `Permission: \`execute-api:Invoke\` on \`${method}${path}\``;
  const scoped = scope ? `, or a JWT with the scope of the parameter \`${scope}\`` : '';
  return {
    operationId: route.function,
    tags: [route.tag],
    summary: route.summary,
    description: `${route.description}\n\n${permission}${scoped}.`,
    ...(scope && { security: [{ iam: [] }, { jwt: [SCOPES[scope]] }] }),
    ...(method === 'GET' ? parameters(route) : requestBody(route)),
    responses: { ...successes(route), ...failures(route) },
  };
}

function parameters({ request, examples }: Route): JsonSchema {
  const { properties = {}, required = [] } = requestSchema(request) as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  const list = Object.entries(properties).map(([name, { description, ...schema }]) => {
    // Of one example alone: those of several could not be combined.
    const shown = examples[0]?.request[name];
    return {
      name,
      in: 'query',
      description,
      required: required.includes(name),
      schema,
      ...(shown !== undefined && { example: shown }),
    };
  });
  return list.length > 0 ? { parameters: list } : {};
}

function requestBody({ request, examples }: Route): JsonSchema {
  const shown = examples.map(({ name, summary, request: value }) => [name, { summary, value }]);
  const content = {
    'application/json': {
      schema: refTo(request.id),
      ...(shown.length > 0 && { examples: Object.fromEntries(shown) }),
    },
  };
  return { requestBody: { required: true, content } };
}

const cacheControl = {
  'Cache-Control': { description: 'Whether the answer may be cached.', schema: { type: 'string' } },
};

function successes({ success, examples }: Route): Record<string, JsonSchema> {
  const entries = Object.entries(success).map(([status, { description, answer }]) => {
    const shown = examples.filter((example) => example.status === Number(status));
    const named = shown.map(({ name, summary, answer: value }) => [name, { summary, value }]);
    const content = {
      'application/json': {
        schema: answerSchema(answer),
        ...(named.length > 0 && { examples: Object.fromEntries(named) }),
      },
    };
    return [status, { description, headers: { ...cacheControl, ...versionHeader }, content }];
  });
  return Object.fromEntries(entries);
}
