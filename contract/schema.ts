import * as z from 'zod/mini';

/** What the document says about a schema besides its shape. */
export interface Documentation {
  /** Makes the schema a component of this name. Generated clients use the name for the type. */
  id?: string;
  description?: string;
  format?: string;
  /** Keywords in place of zod's own rendering, where it says too much, such as a long pattern for an instant. */
  replace?: Record<string, unknown>;
}

// Zod renders requests as callers send them, and answers as callers receive them, so each kind has its own registry.
export const requests = z.registry<Documentation>();
export const answers = z.registry<Documentation>();

/** Whether two types are exactly the same, even in their optional and nullable fields. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** The compiler shows this type in its error, if a schema differs from what the domain returns. */
interface Differs<Domain, Schema> {
  'the domain answers': Domain;
  'the contract says': Schema;
}

type Tied<Domain, S extends z.ZodMiniType> =
  Same<z.output<S>, Domain> extends true ? unknown : Differs<Domain, z.output<S>>;

/** A named component of the answers. It compiles only if its type is exactly what the domain returns. */
export const component =
  <Domain>() =>
  <S extends z.ZodMiniType>(id: string, description: string, schema: S & Tied<Domain, S>): S => {
    answers.add(schema, { id, description });
    return schema;
  };

/** What the use case of a route answers, for example the answers of a release for `typeof releaseGrant`. */
// biome-ignore lint/suspicious/noExplicitAny: only the answer of a use case matters here, not its arguments
export type AnswerOf<UseCase> = UseCase extends (...dependencies: any[]) => (...call: any[]) => Promise<infer Answer>
  ? Answer
  : never;

export const described = <S extends z.ZodMiniType>(schema: S, documentation: Documentation): S => {
  answers.add(schema, documentation);
  return schema;
};

export const text = (description: string) => described(z.string(), { description });
export const flag = (description: string) => described(z.boolean(), { description });
export const always = <const Value extends string | boolean | number>(value: Value, description?: string) =>
  described(z.literal(value), { ...(description !== undefined && { description }) });
export const oneOf = <const Values extends readonly string[]>(values: Values, description: string) =>
  described(z.enum(values), { description });
export const list = <S extends z.ZodMiniType>(of: S, description: string) => described(z.array(of), { description });
/** An object with a count for some of the names. */
export const countsOf = <const Names extends readonly string[]>(names: Names, description: string) => {
  const counts = names.map((name) => [name, z.exactOptional(count(description))]);
  return described(
    z.strictObject(
      Object.fromEntries(counts) as Record<Names[number], z.ZodMiniExactOptional<ReturnType<typeof count>>>,
    ),
    { description },
  );
};
export const texts = (description: string) => described(z.record(z.string(), z.string()), { description });

/** ISO 8601 in UTC with milliseconds. Records of third-party clients may hold years that need a sign and six digits. */
export const instant = (description: string) =>
  described(z.string().check(z.regex(/^(\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)), {
    description,
    replace: { type: 'string', format: 'date-time' },
  });

export const count = (description: string) =>
  described(z.int().check(z.gte(0)), { description, replace: { type: 'integer', format: 'int64', minimum: 0 } });

/** Any number, because third-party clients write what they like. */
export const number = (description: string) =>
  described(z.number(), { description, replace: { type: 'number', format: 'double' } });

export const nullable = <S extends z.ZodMiniType>(schema: S) => {
  const { description } = answers.get(schema) ?? {};
  return described(z.nullable(schema), { ...(description !== undefined && { description }) });
};

/** Accepts any value that was parsed from JSON. Only a missing one is undefined. */
const anything = () => z.unknown().check(z.refine((value) => value !== undefined));

export const json = <Json>(description: string) =>
  described(anything(), { description, replace: {} }) as unknown as z.ZodMiniType<Json>;

export const jsonObject = <JsonObject>(description: string) =>
  described(z.record(z.string(), anything()), {
    description,
    replace: { type: 'object', additionalProperties: true },
  }) as unknown as z.ZodMiniType<JsonObject>;
