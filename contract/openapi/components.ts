import { BASE_ONLY, ERROR_CODES } from '../errors.ts';
import { operations, repairOperations } from '../requests/nameservice.ts';
import type { Request } from '../requests/request.ts';
import type { Route } from '../routes/route.ts';
import { answers } from '../schema.ts';
import { type JsonSchema, refTo, rendered, requestSchema } from './json-schema.ts';

/** The components of the document by name: requests that are sent as a body, answers and errors. */
export function components(routes: readonly Route[], strict: boolean): Record<string, JsonSchema> {
  const bodies = [
    ...routes.filter(({ method }) => method === 'POST').map(({ request }) => request),
    ...operations,
    ...repairOperations,
  ];
  const answered = Object.entries(rendered(answers, 'output'));
  return sorted({
    ...Object.fromEntries(bodies.map((request: Request) => [request.id, requestSchema(request)])),
    ...Object.fromEntries(answered.map(([id, schema]) => [id, answer(id, schema, strict)])),
  });
}

function answer(id: string, schema: JsonSchema, strict: boolean): JsonSchema {
  if (id === 'Problem') return opened(schema) as JsonSchema;
  const whole = ERROR_CODES.includes(id as never) ? asProblem(schema) : schema;
  return strict ? whole : (opened(whole) as JsonSchema);
}

/** An error as the fields of every error, together with those that its code adds. */
function asProblem({ description, type, properties, required }: JsonSchema): JsonSchema {
  const isOwn = (name: string) => !BASE_ONLY.includes(name as never);
  const own = Object.entries(properties as Record<string, JsonSchema>)
    .filter(([name]) => isOwn(name))
    // Generators of clients can narrow a field of the base to one of its values, but not to a constant.
    .map(([name, { const: only, ...member }]) => [name, only === undefined ? member : { ...member, enum: [only] }]);
  return {
    description,
    allOf: [
      refTo('Problem'),
      { type, properties: Object.fromEntries(own), required: (required as string[]).filter(isOwn) },
    ],
    unevaluatedProperties: false,
  };
}

export const discriminator = (codes: readonly string[]) => ({
  propertyName: 'code',
  mapping: Object.fromEntries(codes.map((code) => [code, `#/components/schemas/${code}`])),
});

/** Answers stay open, because a later version may add fields. */
function opened(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(opened);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(
    ([name, member]) => !((name === 'additionalProperties' || name === 'unevaluatedProperties') && member === false),
  );
  return Object.fromEntries(members.map(([name, member]) => [name, opened(member)]));
}

const sorted = <Value>(record: Record<string, Value>): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
