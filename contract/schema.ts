import * as z from 'zod/mini';

/** What the document says of a schema besides its shape. */
export interface Documentation {
  /** The name of a component. A generated client gives its type that name. */
  id?: string;
  description?: string;
  format?: string;
  /** Set if zod's own rendering says too much, such as a pattern for an instant. */
  replace?: Record<string, unknown>;
}

// Requests are described as they are sent and answers as they are received, so each kind has a registry of its own.
export const requests = z.registry<Documentation>();
export const answers = z.registry<Documentation>();

/** Whether two types are one and the same, optional and nullable members included. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** What the compiler shows if a schema and the domain differ. */
interface Differs<Domain, Schema> {
  'the domain answers': Domain;
  'the contract says': Schema;
}

type Tied<Domain, S extends z.ZodMiniType> =
  Same<z.output<S>, Domain> extends true ? unknown : Differs<Domain, z.output<S>>;

/**
 * A named component of the answers, whose type must be exactly the one that the domain returns: a field too many, a field
 * too few or one of another type does not compile.
 */
export const component =
  <Domain>() =>
  <S extends z.ZodMiniType>(id: string, description: string, schema: S & Tied<Domain, S>): S => {
    answers.add(schema, { id, description });
    return schema;
  };

/** What the use case of a route resolves with, for example `Released` for `typeof releaser`. */
// biome-ignore lint/suspicious/noExplicitAny: whatever a use case takes, only its answer is of interest
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
/** A number for each of the names, or none. */
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

/** ISO 8601 in UTC with milliseconds. Other clients' records may hold years that need a sign and six digits. */
export const instant = (description: string) =>
  described(z.string().check(z.regex(/^(\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)), {
    description,
    replace: { type: 'string', format: 'date-time' },
  });

/** A whole number from 0 up. */
export const count = (description: string) =>
  described(z.int().check(z.gte(0)), { description, replace: { type: 'integer', format: 'int64', minimum: 0 } });

/** Any number: other clients of the tables write what they like. */
export const number = (description: string) =>
  described(z.number(), { description, replace: { type: 'number', format: 'double' } });

export const nullable = <S extends z.ZodMiniType>(schema: S) => {
  const { description } = answers.get(schema) ?? {};
  return described(z.nullable(schema), { ...(description !== undefined && { description }) });
};

/** Whatever was parsed as JSON is JSON. A value that is not there is undefined. */
const anything = () => z.unknown().check(z.refine((value) => value !== undefined));

/** Any JSON value, as the domain's type for one. */
export const json = <Json>(description: string) =>
  described(anything(), { description, replace: {} }) as unknown as z.ZodMiniType<Json>;

/** Any JSON object, as the domain's type for one. */
export const jsonObject = <JsonObject>(description: string) =>
  described(z.record(z.string(), anything()), {
    description,
    replace: { type: 'object', additionalProperties: true },
  }) as unknown as z.ZodMiniType<JsonObject>;
