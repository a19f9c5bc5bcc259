import { PARAMETERS } from '../../infrastructure/parameters.ts';
import { ERRORS } from '../../shared/errors.ts';
import { IN_NAMESPACE, pathInNamespace, type Route, scopesOf } from '../routes/route.ts';
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

/** Without examples, because the route for the whole deployment shows the same. */
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
      'The namespace. Keys, aliases and the keys of fences are separate in each namespace, and paths of objects begin with the namespace and a slash.',
    schema: { type: 'string', pattern: '^[a-z0-9][a-z0-9-]{0,31}$' },
    example: 'team-a',
  },
});

/** The default scopes. A deployment may set others. */
const SCOPES: Record<string, string | undefined> = Object.fromEntries(
  Object.entries(PARAMETERS).map(([name, { default: value }]) => [name, value]),
);

function operation(route: Route): JsonSchema {
  const { method, path } = route;
  const permission = `Permission: \`execute-api:Invoke\` on \`${method}${path}\``;
  const { inNamespace, whole } = scopesOf(route);
  const needed: readonly string[] = path.startsWith(IN_NAMESPACE) ? inNamespace : whole;
  const named = needed.map((name) => `\`${name}\``).join(' and ');
  const claimed = path.startsWith(IN_NAMESPACE) ? ' that names the namespace,' : '';
  const scoped = needed.length > 0 ? `, or a JWT${claimed} with the scope of the parameter ${named}` : '';
  return {
    operationId: route.function,
    tags: [route.tag],
    summary: route.summary,
    description: `${route.description}\n\n${permission}${scoped}.`,
    ...(needed.length > 0 && { security: [{ iam: [] }, { jwt: needed.map((name) => SCOPES[name]) }] }),
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
    // All from one example, because parameters of several examples need not go together.
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
  const shown = examples
    .filter(({ status }) => status !== ERRORS.InvalidRequest.status)
    .map(({ name, summary, request: value }) => [name, { summary, value }]);
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
