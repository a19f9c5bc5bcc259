import type * as z from 'zod/mini';
import { requests } from '../schema.ts';

/** Keywords of JSON Schema that zod cannot render, because the checks are code. */
type Keywords = Record<string, unknown>;

/** The documentation of a field, with the rules for it that zod cannot render. */
export type Field = Keywords & { description: string };

/** The names of the fields, or for a union those of all its members. */
type FieldsOf<Input> = Input extends unknown ? keyof Input : never;

interface RequestDocumentation<Input> {
  /** The name of the component. */
  id: string;
  description: string;
  /** A field of the schema without a description does not compile. */
  fields: Record<FieldsOf<Input>, Field>;
  /** Rules between fields. */
  rules?: Keywords;
}

export interface Request {
  id: string;
  schema: z.ZodMiniType;
  fields: Record<string, Field>;
  rules: Keywords;
}

/** Documents the input schema of a function, as the request of its route. */
export function request<Schema extends z.ZodMiniType>(
  schema: Schema,
  { id, description, fields, rules = {} }: RequestDocumentation<z.input<Schema>>,
): Request {
  requests.add(schema, { id, description });
  return { id, schema, fields, rules };
}

/** JSON Schema counts characters, and a text never has more characters than bytes of UTF-8. */
export const bytes = (max: number) => ({ maxLength: max });

export const json = (description: string): Field => ({ description });

export const jsonObject = (description: string): Field => ({
  description,
  type: 'object',
  additionalProperties: true,
});

export const cursor = (): Field => ({
  description: 'The `nextCursor` of the page before, to read the next page.',
  ...bytes(4160),
});
export const limit = (): Field => ({ description: 'The number of rows to list. The default is 100.' });

/** A schema that requires the fields. Linters of OpenAPI want them listed in `properties` too. */
export const given = (...names: string[]) => ({
  properties: Object.fromEntries(names.map((name) => [name, {}])),
  required: names,
});
