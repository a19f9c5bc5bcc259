import type { JsonSchema } from '../openapi/json-schema.ts';

/** A row in the table of an object's fields. */
export interface Field {
  /** The path in the object: `fence.token`, or `issues[].path`. */
  name: string;
  schema: JsonSchema;
  isRequired: boolean;
}

/** The components of the OpenAPI document, by name. */
export type Components = Record<string, JsonSchema>;

/** The name of the component that a schema refers to, even if the schema also allows null. */
export function referredName(schema: JsonSchema): string | undefined {
  const [inner = schema] = notNull(schema);
  return typeof inner.$ref === 'string' ? inner.$ref.split('/').at(-1) : undefined;
}

/** The choices of a schema, without null. A schema that is not a choice counts as its only one. */
export function notNull(schema: JsonSchema): JsonSchema[] {
  const choices = (schema.anyOf ?? schema.oneOf ?? [schema]) as JsonSchema[];
  return choices.filter(({ type }) => type !== 'null');
}

/** The fields of an object and of the objects inside it, except those that are components: these have a table of their own. */
export function fieldsOf({ properties = {}, required = [] }: JsonSchema, prefix = ''): Field[] {
  return Object.entries(properties as Record<string, JsonSchema>).flatMap(([key, schema]) => {
    const isRequired = (required as string[]).includes(key);
    const name = `${prefix}${key}`;
    const items = schema.items as JsonSchema | undefined;
    const inner = items ? fieldsOf(items, `${name}[].`) : fieldsOf(schema, `${name}.`);
    return [{ name, schema, isRequired }, ...inner];
  });
}

/** The type of a field with its bounds, in words for people. */
export function typeOf(schema: JsonSchema): string {
  const types = [schema.type ?? []].flat() as string[];
  const isNullable =
    types.includes('null') || ((schema.anyOf ?? []) as JsonSchema[]).some(({ type }) => type === 'null');
  return `${typeWithoutNull(schema, types)}${isNullable ? ' or null' : ''}`;
}

function typeWithoutNull(schema: JsonSchema, types: string[]): string {
  if ('const' in schema) return coded(schema.const);
  if (Array.isArray(schema.enum))
    return schema.enum
      .filter((value) => value !== null)
      .map(coded)
      .join(', ');
  const choices = notNull(schema);
  if (choices.length > 1) return choices.map(typeOf).join(', ');
  const name = referredName(schema);
  if (name !== undefined) return `[${name}](#${name.toLowerCase()})`;
  const [type] = types.filter((one) => one !== 'null');
  if (type === undefined) return 'any JSON';
  if (type === 'array') return `list of ${typeOf(schema.items as JsonSchema)}`;
  if (type === 'string' && schema.format === 'date-time') return 'instant';
  if (type === 'object' && typeof schema.additionalProperties === 'object')
    return `object of ${(schema.additionalProperties as JsonSchema).type}s`;
  return `${type}${bounds(schema)}`;
}

function bounds({ minimum, maximum, maxLength }: JsonSchema): string {
  if (maxLength !== undefined) return `, up to ${grouped(maxLength)} bytes`;
  if (maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER)
    return `, ${grouped(minimum ?? 0)} to ${grouped(maximum)}`;
  // Every count is at least 0, so that bound says nothing.
  return Number(minimum ?? 0) > 0 ? `, from ${grouped(minimum)}` : '';
}

const grouped = (value: unknown) => Number(value).toLocaleString('en-US');
const coded = (value: unknown) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;

/** The components that a part of the document refers to, and those inside them, in the order in which a reader meets them. */
export function componentsIn(part: unknown, components: Components, found = new Set<string>()): Set<string> {
  if (part === null || typeof part !== 'object') return found;
  const name = '$ref' in part ? referredName(part as JsonSchema) : undefined;
  if (name !== undefined && !found.has(name)) {
    found.add(name);
    componentsIn(components[name], components, found);
  }
  for (const member of Object.values(part)) componentsIn(member, components, found);
  return found;
}
