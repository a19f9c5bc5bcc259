import * as z from 'zod/mini';

/** What zod says of a value that is missing, or is not of its type. */
export const must = (rule: string) => ({
  error: (issue: { input?: unknown }) => (issue.input === undefined ? 'is missing' : `must be ${rule}`),
});

/** Fields of the same bounds share a schema, because each schema takes up to 0.1 ms of a cold start to build. */
export function sharedSchema<Bounds extends number[], Schema>(build: (...bounds: Bounds) => Schema) {
  const built = new Map<string, Schema>();
  return (...bounds: Bounds): Schema => {
    const schema = built.get(`${bounds}`) ?? build(...bounds);
    built.set(`${bounds}`, schema);
    return schema;
  };
}

/**
 * A name in the payload: any UTF-8 up to `maxBytes`. Lone surrogates are refused, because encoding turns them all into
 * the same replacement character, and two names would become one.
 */
export const name = sharedSchema((maxBytes: number) =>
  z.string(must('a string')).check(
    z.minLength(1, 'must not be empty'),
    z.refine((value) => value.isWellFormed(), 'must be well-formed Unicode'),
    z.refine((value) => Buffer.byteLength(value) <= maxBytes, {
      error: `must be at most ${withCommas(maxBytes)} bytes of UTF-8`,
      abort: true, // what else is asked of a name may cost much with a megabyte
    }),
  ),
);

/** The prefix of the leases that the service takes for itself. */
const OWN_NAMES = 'holdfast:';

export const isReserved = (text: string): boolean => text.startsWith(OWN_NAMES);
export const RESERVED = `must not begin with ${OWN_NAMES}, which is the service's own`;

/** A name that the service does not keep for itself. */
export const callersName = (maxBytes: number) =>
  name(maxBytes).check(z.refine((value) => !isReserved(value), RESERVED));

export const whole = sharedSchema((from: number, to: number) =>
  z
    .int({ ...must('a whole number'), abort: true })
    .check(z.gte(from, `must be at least ${withCommas(from)}`), z.lte(to, `must be at most ${withCommas(to)}`)),
);

/** How many items to list. A query string carries the number as digits. */
export const limit = () =>
  z.pipe(
    z.transform((value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value)),
    whole(1, 1000),
  );

export const DEFAULT_LIMIT = 100;

/** The longest key of a table in base64, with what seals it in a namespace. */
export const cursorText = () => name(4160);

/** True or false, and no word for them, so that no misspelling switches on what is meant to be off. */
export const flag = () => z.boolean(must('true or false'));

/** The same for a query string, which carries it as text. */
export const queryFlag = () =>
  z.pipe(
    z.transform((value) => (value === 'true' ? true : value === 'false' ? false : value)),
    flag(),
  );

export const oneOf = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, must(`one of ${values.join(', ')}`));

/**
 * A list of at most `max` items. A longer list is refused by its length alone, because each wrong item would cost an issue.
 * @param what the items, in the plural
 */
export const listOf = <Item extends z.ZodMiniType>(item: Item, max: number, what: string) =>
  z.pipe(
    z.unknown().check(
      z.refine((value) => !Array.isArray(value) || value.length <= max, {
        error: `must be at most ${max} ${what}`,
        abort: true,
      }),
    ),
    z.array(item, must(`a list of ${what}`)),
  );

const MAX_JSON_BYTES = 4096;
const MAX_JSON_DEPTH = 32;

/** Any JSON value up to 4 KiB as text and 32 levels deep, or less. */
export const json = (mostDepth = MAX_JSON_DEPTH) =>
  z.unknown().check(
    z.check((ctx) => {
      const message = jsonFault(ctx.value, mostDepth);
      if (message) ctx.issues.push({ code: 'custom', message, input: ctx.value });
    }),
  );

/** @param text the value as the caller sent it, if that is known */
export function jsonFault(value: unknown, mostDepth = MAX_JSON_DEPTH, text?: string): string | undefined {
  // Level by level, not by recursion: the body decides how deep it is, and a deep one would overflow the stack.
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (level.some((item) => typeof item === 'number' && !Number.isFinite(item)))
      return 'must not contain a number beyond the range of JSON';
    const containers = level.filter((item) => typeof item === 'object' && item !== null);
    if (containers.length > 0 && depth >= mostDepth) return `must be at most ${mostDepth} levels deep`;
    level = containers.flatMap((container) => Object.values(container as object));
  }
  if (Buffer.byteLength(text ?? JSON.stringify(value)) > MAX_JSON_BYTES)
    return `must be at most ${withCommas(MAX_JSON_BYTES)} bytes of JSON`;
  return undefined;
}

/** 4096 is 4,096. Not by toLocaleString, which takes 10 ms of every cold start to load its tables. */
function withCommas(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}
