import { isDeepStrictEqual } from 'node:util';
import { ERRORS } from '../../shared/errors.ts';
import { ERROR_CONTRACTS } from '../errors.ts';
import { answerSchema, type JsonSchema, requestSchema } from '../openapi/json-schema.ts';
import { type Example, type Route, scopesOf } from '../routes/route.ts';
import { code, json, table } from './markdown.ts';
import { type Components, type Field, fieldsOf, notNull, referredName, typeOf } from './schema.ts';

/** Where `npm start` serves the API. */
const API = 'http://127.0.0.1:3000';

/** The page that the section of a call stands on. */
interface Page {
  components: Components;
  /** Components that have their own section on the page, so that a call only links them. */
  objects: ReadonlySet<string>;
}

/** The section of a call: what it does, an example, the fields of the request and of the answer, and the errors. */
export function callSection(route: Route, page: Page): string {
  const shown = route.examples.filter(({ status }) => status < 400);
  const [first, ...more] = shown;
  return [
    `## ${route.summary}\n`,
    `\`${route.method} ${route.path}\`\n`,
    `${route.description}\n`,
    `${permission(route)}\n`,
    ...(first ? [example(route, first)] : []),
    ...requestTables(route, page.components),
    ...answerTables(route, page),
    ...more.map((one) => example(route, one)),
    errorTable(route),
  ].join('\n');
}

function permission(route: Route): string {
  const { inNamespace, whole } = scopesOf(route);
  const named = (scopes: readonly string[]) => scopes.map((scope) => `\`${scope}\``).join(' and ');
  const token = whole.length === 0 ? 'any token' : `${named(whole)}; in a namespace ${named(inNamespace)}`;
  return `IAM: \`execute-api:Invoke\` on \`${route.method}${route.path}\`. Scopes of a JWT: ${token}.`;
}

export function example({ method, path }: Route, { summary, request, answer, status }: Example): string {
  const body = json(request).replaceAll("'", "'\\''");
  const query = new URLSearchParams(request as Record<string, string>).toString().replaceAll('%2F', '/');
  const command =
    method === 'POST'
      ? `curl -s ${API}${path} -H 'content-type: application/json' -d '${body}'`
      : `curl -s '${API}${path}${query && `?${query}`}'`;
  return `**${summary}**\n\n${code('sh', command)}\nAnswer, \`${status}\`:\n\n${code('json', json(answer))}`;
}

function requestTables({ request }: Route, components: Components): string[] {
  const schema = requestSchema(request);
  const operations = ((schema.oneOf ?? []) as JsonSchema[]).map((one) => components[referredName(one) ?? ''] ?? {});
  if (operations.length === 0) {
    const fields = fieldsOf(schema);
    return fields.length > 0 ? [`**Request**\n`, requestTable(fields)] : ['**Request**: no fields.\n'];
  }
  const [first = []] = operations.map((one) => fieldsOf(one));
  const isCommon = (field: Field) =>
    operations.every((one) => fieldsOf(one).some((other) => isDeepStrictEqual(field, other)));
  const common = first.filter(isCommon);
  return [
    '**Request**\n',
    requestTable([
      { name: 'op', schema: { type: 'string', description: 'The operation.' }, isRequired: true },
      ...common,
    ]),
    ...operations.flatMap((one) => {
      const { op } = one.properties as Record<string, JsonSchema>;
      const own = fieldsOf(one).filter((field) => field.name !== 'op' && !isCommon(field));
      const fields = own.length > 0 ? requestTable(own) : '';
      return [`\`${op?.const}\`: ${one.description}\n`, ...(fields ? [fields] : [])];
    }),
  ];
}

const requestTable = (fields: Field[]) =>
  table(
    ['field', 'type', 'default', 'meaning'],
    fields.map(({ name, schema, isRequired }) => [
      `\`${name}\``,
      typeOf(schema),
      isRequired ? 'required' : 'default' in schema ? `\`${JSON.stringify(schema.default)}\`` : '',
      meaning(schema, {}),
    ]),
  );

function answerTables({ success }: Route, { components, objects }: Page): string[] {
  const statuses = Object.entries(success).map(([status, { description }]) => `\`${status}\` ${description}`);
  const names = answersOf({ success });
  const tables = names.flatMap((name) => {
    if (objects.has(name)) return [`Fields: [${name}](#${name.toLowerCase()}).\n`];
    return [
      ...(names.length > 1 ? [`${components[name]?.description}\n`] : []),
      objectTable(components[name] ?? {}, components),
    ];
  });
  return [`**Answer**: ${statuses.join(' ')}\n`, ...tables];
}

/** The names of the components that a call can answer. */
export function answersOf({ success }: Pick<Route, 'success'>): string[] {
  const schemas = Object.values(success).flatMap(({ answer }) => notNull(answerSchema(answer)));
  return [...new Set(schemas.flatMap((schema) => referredName(schema) ?? []))];
}

export function objectTable(schema: JsonSchema, components: Components): string {
  return table(
    ['field', 'type', 'meaning'],
    fieldsOf(schema).map(({ name, schema: field, isRequired }) => [
      `\`${name}\``,
      `${typeOf(field)}${isRequired ? '' : ', optional'}`,
      meaning(field, components),
    ]),
  );
}

/** A field without a description takes that of its component. */
const meaning = (schema: JsonSchema, components: Components) =>
  String(schema.description ?? components[referredName(schema) ?? '']?.description ?? '');

function errorTable({ errors, when = {} }: Route): string {
  const rows = errors.map((error) => [
    `[\`${error}\`](errors.md#${error.toLowerCase()})`,
    String(ERRORS[error].status),
    when[error] ?? ERROR_CONTRACTS[error].when,
  ]);
  const others = 'and the [errors of every call](errors.md#errors-of-every-call)';
  if (rows.length === 0) return `**Errors**: only the [errors of every call](errors.md#errors-of-every-call).\n`;
  return `**Errors**, ${others}:\n\n${table(['code', 'status', 'when'], rows)}`;
}
