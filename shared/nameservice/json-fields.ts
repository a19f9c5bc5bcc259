import * as z from 'zod/mini';
import type { Json } from '../aws/attributes.ts';
import { json, jsonFault } from '../fields.ts';
import { configText } from './items.ts';
import type { JsonObject } from './values.ts';

/** DynamoDB nests at most 32 levels, and the attribute itself is one of them. */
const MAX_MAP_DEPTH = 31;

/** A JSON object that DynamoDB can store as a Map. */
export const jsonObject = () =>
  json(MAX_MAP_DEPTH).check(
    z.check((ctx) => {
      const message = mapFault(ctx.value);
      if (message) ctx.issues.push({ code: 'custom', message, input: ctx.value });
    }),
  ) as unknown as z.ZodMiniType<JsonObject>;

/** DynamoDB's numbers reach from 1e-130 to just under 1e126. */
function isStorable(value: number): boolean {
  const size = Math.abs(value);
  return size === 0 || (size >= 1e-130 && size < 1e126);
}

/**
 * Whether parsing JSON may have rounded a whole number, so that the service cannot know which number the caller sent.
 */
const isRounded = (value: unknown) => Number.isInteger(value) && !Number.isSafeInteger(value);
const ROUNDED_RULE = 'must not contain a whole number beyond 2^53 - 1, which JSON rounds';

function mapFault(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'must be a JSON object';
  let level: unknown[] = [value];
  while (level.length > 0) {
    if (level.some((item) => typeof item === 'number' && !isStorable(item)))
      return 'must not contain a number beyond the range of DynamoDB';
    if (level.some(isRounded)) return `${ROUNDED_RULE}: send it as a string`;
    const containers = level.filter((item) => typeof item === 'object' && item !== null) as object[];
    const names = containers.flatMap((container) => (Array.isArray(container) ? [] : Object.keys(container)));
    if (names.includes('')) return 'must not contain an empty name';
    // Some versions of the SDK fail on this name when they read an item, so the item would be unreadable.
    if (names.includes('__proto__')) return 'must not contain the name __proto__';
    const texts = [...names, ...level.filter((item) => typeof item === 'string')];
    if (!texts.every((item) => item.isWellFormed())) return 'must be well-formed Unicode';
    level = containers.flatMap((container) => Object.values(container));
  }
  return undefined;
}

/** Any JSON value, or JSON as a string. The output is JSON text. */
export const jsonText = () =>
  z.pipe(
    z.unknown().check(
      z.check((ctx) => {
        const message = textFault(ctx.value);
        if (message) ctx.issues.push({ code: 'custom', message, input: ctx.value });
      }),
    ),
    z.transform((value) => configText(value as Json)),
  );

/**
 * What is wrong with the JSON or the JSON text. Text is stored as it is, so its length counts, and not the parsed
 * value's.
 */
function textFault(value: unknown): string | undefined {
  if (value === undefined) return 'is missing';
  if (typeof value !== 'string')
    return (
      jsonFault(value) ?? (holds(value, isRounded) ? `${ROUNDED_RULE}: send the config as a string of JSON` : undefined)
    );
  const parsed = value.isWellFormed() ? parse(value) : undefined;
  return parsed ? jsonFault(parsed.value, undefined, value) : 'must be JSON, or a string that is JSON';
}

/** Whether the value, or a value in it, passes the test. A loop over levels instead of recursion, as in `jsonFault`. */
function holds(value: unknown, isIt: (value: unknown) => boolean): boolean {
  for (let level = [value]; level.length > 0; )
    if (level.some(isIt)) return true;
    else level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  return false;
}

function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
