import * as z from 'zod/mini';

/** The message of zod for a value that is missing or has another type. */
export const must = (rule: string) => ({
  error: (issue: { input?: unknown }) => (issue.input === undefined ? 'is missing' : `must be ${rule}`),
});

/** Lets fields with the same bounds share one schema: building a schema takes up to 0.1 ms of a cold start. */
export function sharedSchema<Bounds extends number[], Schema>(build: (...bounds: Bounds) => Schema) {
  const built = new Map<string, Schema>();
  return (...bounds: Bounds): Schema => {
    const schema = built.get(`${bounds}`) ?? build(...bounds);
    built.set(`${bounds}`, schema);
    return schema;
  };
}

/**
 * A name in the payload: any UTF-8 up to `maxBytes`. A lone surrogate is refused, because encoding replaces every lone
 * surrogate with the same character, so two different names would become one.
 */
export const name = sharedSchema((maxBytes: number) =>
  z.string(must('a string')).check(
    z.minLength(1, 'must not be empty'),
    z.refine((value) => value.isWellFormed(), 'must be well-formed Unicode'),
    z.refine((value) => Buffer.byteLength(value) <= maxBytes, {
      error: `must be at most ${withCommas(maxBytes)} bytes of UTF-8`,
      abort: true, // later checks could take long on a megabyte
    }),
  ),
);

/** The prefix of the keys of the service's own leases. */
const OWN_PREFIX = 'holdfast:';

export const isReserved = (text: string): boolean => text.startsWith(OWN_PREFIX);
export const RESERVED_RULE = `must not begin with ${OWN_PREFIX}, which is the service's own`;

export const callersName = (maxBytes: number) =>
  name(maxBytes).check(z.refine((value) => !isReserved(value), RESERVED_RULE));

export const whole = sharedSchema((from: number, to: number) =>
  z
    .int({ ...must('a whole number'), abort: true })
    .check(z.gte(from, `must be at least ${withCommas(from)}`), z.lte(to, `must be at most ${withCommas(to)}`)),
);

/** How many items to list: a number, or its digits in a query string. */
export const limit = () =>
  z.pipe(
    z.transform((value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value)),
    whole(1, 1000),
  );

export const DEFAULT_LIMIT = 100;

/** A cursor. The longest is the base64 of the longest key of a table, encrypted for a namespace. */
export const cursorText = () => name(4160);

/** A boolean. Text is refused, because a misspelled "false" must not count as true. */
export const flag = () => z.boolean(must('true or false'));

/** A boolean in a query string: the text `true` or `false`. */
export const queryFlag = () =>
  z.pipe(
    z.transform((value) => (value === 'true' ? true : value === 'false' ? false : value)),
    flag(),
  );

export const oneOf = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, must(`one of ${values.join(', ')}`));

/**
 * A list of at most `max` items. The length is checked before the items, because each wrong item would add an issue to
 * the answer.
 * @param what the items in messages, in the plural
 */
export const listOf = <Item extends z.ZodMiniType>(item: Item, max: number, what: string) =>
  z.pipe(
    z.unknown().check(
      z.refine((value) => !Array.isArray(value) || value.length <= max, {
        error: `must have at most ${max} ${what}`,
        abort: true,
      }),
    ),
    z.array(item, must(`a list of ${what}`)),
  );

const MAX_JSON_BYTES = 4096;
const MAX_JSON_DEPTH = 32;

/** Any JSON value of at most 4 KiB as text and `maxDepth` levels. */
export const json = (maxDepth = MAX_JSON_DEPTH) =>
  z.unknown().check(
    z.check((ctx) => {
      const message = jsonFault(ctx.value, maxDepth);
      if (message) ctx.issues.push({ code: 'custom', message, input: ctx.value });
    }),
  );

/**
 * @param text the value as the caller sent it, if the caller sent JSON as a string
 * @returns what is wrong with the value, or undefined
 */
export function jsonFault(value: unknown, maxDepth = MAX_JSON_DEPTH, text?: string): string | undefined {
  // A loop over levels instead of recursion: a deeply nested body of a caller would overflow the stack.
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (level.some((item) => typeof item === 'number' && !Number.isFinite(item)))
      return 'must not contain a number beyond the range of JSON';
    const containers = level.filter((item) => typeof item === 'object' && item !== null);
    if (containers.length > 0 && depth >= maxDepth) return `must be at most ${maxDepth} levels deep`;
    level = containers.flatMap((container) => Object.values(container as object));
  }
  if (Buffer.byteLength(text ?? JSON.stringify(value)) > MAX_JSON_BYTES)
    return `must be at most ${withCommas(MAX_JSON_BYTES)} bytes of JSON`;
  return undefined;
}

/** Writes 4096 as 4,096. toLocaleString would load its tables, which takes 10 ms of every cold start. */
function withCommas(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}
