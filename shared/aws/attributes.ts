import type { Item } from './dynamodb.ts';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export const text = (value: string) => ({ S: value });

export const integer = (value: number) => ({ N: String(value) });

export function number(item: Item, name: string): number | undefined {
  const value = item[name]?.N;
  return value === undefined ? undefined : Number(value);
}

/**
 * The value of JSON text. Text that is not JSON, or is nested too deep for an answer, stays text: another client may
 * have written it.
 */
export function jsonOfText(value: string | undefined): Json | undefined {
  if (value === undefined) return undefined;
  try {
    const parsed = JSON.parse(value);
    return isDeep(parsed) ? value : parsed;
  } catch {
    return value;
  }
}

/**
 * The service stores at most 32 levels. JSON.stringify recurses, so it could not write an answer with a much deeper
 * value.
 */
const MAX_DEPTH = 100;

function isDeep(value: Json): boolean {
  let level: Json[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    level = level.filter((item) => typeof item === 'object' && item !== null).flatMap((item) => Object.values(item));
  }
  return false;
}
