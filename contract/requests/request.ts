import type * as z from 'zod/mini';
import { requests } from '../schema.ts';

/** Keywords of JSON Schema that complete zod's rendering, which knows nothing of checks in code. */
type Keywords = Record<string, unknown>;

/** What a field means, and the rules for it that zod cannot render. */
export type Field = Keywords & { description: string };

/** The names of all fields of an object, of every member of a union. */
type FieldsOf<Input> = Input extends unknown ? keyof Input : never;

interface RequestDocumentation<Input> {
  /** The name of the component. */
  id: string;
  description: string;
  /** Every field of the schema must be here: one that is added without a description does not compile. */
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

/** The request of a route: the function's own schema, with what that schema cannot say. */
export function request<Schema extends z.ZodMiniType>(
  schema: Schema,
  { id, description, fields, rules = {} }: RequestDocumentation<z.input<Schema>>,
): Request {
  requests.add(schema, { id, description });
  return { id, schema, fields, rules };
}

/** A text of that many bytes of UTF-8 has at most that many characters. */
export const bytes = (most: number) => ({ maxLength: most });

export const json = (description: string): Field => ({ description });

export const jsonObject = (description: string): Field => ({
  description,
  type: 'object',
  additionalProperties: true,
});

export const cursor = (): Field => ({ description: 'The `nextCursor` of the page before.', ...bytes(4160) });
export const limit = (): Field => ({ description: 'The number of rows to list. Without it, 100.' });

/** A schema that wants the fields. Linters ask for the properties beside the names. */
export const given = (...names: string[]) => ({
  properties: Object.fromEntries(names.map((name) => [name, {}])),
  required: names,
});
