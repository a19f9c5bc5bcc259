import * as z from 'zod/mini';
import type { Request } from '../requests/request.ts';
import { answers, type Documentation, requests } from '../schema.ts';

export type JsonSchema = Record<string, unknown>;

const uri = (id: string) => `#/components/schemas/${id}`;
export const refTo = (id: string): JsonSchema => ({ $ref: uri(id) });

type Registry = z.core.$ZodRegistry<Documentation>;

/** The JSON Schema of every named schema in a registry. */
export function rendered(registry: Registry, io: 'input' | 'output'): Record<string, JsonSchema> {
  const { schemas } = z.toJSONSchema(registry as never, {
    io,
    uri,
    metadata: registry as never,
    override: ({ zodSchema, jsonSchema }) => replaceKeywords(registry, zodSchema, jsonSchema as JsonSchema),
  });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, tidy(schema) as JsonSchema]));
}

/** If the documentation of a schema says how to render it, zod's own rendering is dropped. */
function replaceKeywords(registry: Registry, zodSchema: z.core.$ZodType, jsonSchema: JsonSchema): void {
  const { replace, description } = registry.get(zodSchema as never) ?? {};
  if (!replace) return;
  for (const keyword of Object.keys(jsonSchema)) delete jsonSchema[keyword];
  Object.assign(jsonSchema, { ...(description !== undefined && { description }), ...replace });
}

const BEYOND_32_BITS = 2 ** 31;

/** Removes keywords that only a standalone schema needs, and uses the forms that generators of clients understand best. */
function tidy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(tidy);
  if (!isPlain(value)) return value;
  const { $schema, $id, id, description, ...keywords } = value;
  const entries = Object.entries({ ...(description !== undefined && { description }), ...keywords });
  // A property may be named `id` itself.
  if (typeof id === 'object') entries.push(['id', id]);
  const schema: JsonSchema = Object.fromEntries(entries.map(([keyword, member]) => [keyword, tidy(member)]));
  if (schema.type === 'number' && Number.isInteger(schema.const)) schema.type = 'integer';
  if (schema.type === 'integer' && Number(schema.maximum) > BEYOND_32_BITS) schema.format = 'int64';
  return withoutNullBranch(schema);
}

/** Turns `anyOf: [text, null]` into `type: [text, null]`, and a union in a union into one union. */
function withoutNullBranch(schema: JsonSchema): JsonSchema {
  const { anyOf, ...outside } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || anyOf[1]?.type !== 'null') return schema;
  const { type, enum: values, anyOf: branches, ...inside } = anyOf[0] as JsonSchema;
  if (Array.isArray(branches)) return { ...outside, anyOf: [...branches, { type: 'null' }] };
  if (typeof type !== 'string') return schema;
  return { type: [type, 'null'], ...inside, ...outside, ...(Array.isArray(values) && { enum: [...values, null] }) };
}

export function answerSchema(schema: z.core.$ZodType): JsonSchema {
  const id = answers.get(schema as never)?.id;
  if (id) return refTo(id);
  const { type, options } = schema._zod.def as unknown as { type: string; options?: z.core.$ZodType[] };
  if (type === 'union' && options) return { oneOf: options.map(answerSchema) };
  const documentation = answers.get(schema as never);
  return { description: documentation?.description, ...documentation?.replace };
}

const inputs = () => rendered(requests, 'input');
let cached: ReturnType<typeof inputs> | undefined;

/** The schema of a request, with the rules that zod cannot render. */
export function requestSchema({ id, fields, rules }: Request): JsonSchema {
  cached ??= inputs();
  const { properties = {}, ...schema } = structuredClone(cached[id] ?? {});
  const merged = Object.entries(properties as Record<string, JsonSchema>).map(([name, property]) => [
    name,
    merge(property, fields[name] ?? {}),
  ]);
  return { ...schema, ...(merged.length > 0 && { properties: Object.fromEntries(merged) }), ...rules };
}

function merge(schema: JsonSchema, more: JsonSchema): JsonSchema {
  const result = { ...schema };
  for (const [keyword, value] of Object.entries(more)) {
    const current = result[keyword];
    result[keyword] = isPlain(current) && isPlain(value) ? merge(current, value) : value;
  }
  return result;
}

const isPlain = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
