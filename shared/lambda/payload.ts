import { HoldfastError, invalidRequest } from '../errors.ts';

/**
 * The default limit of a payload in bytes of JSON. All fields fit into it at their longest, with each character
 * escaped.
 */
export const DEFAULT_MAX_BYTES = 64 * 1024;

/** The most strings, numbers, lists and objects in one payload. `data` or `extra` of 4 KiB can hold two thousand. */
const MAX_JSON_VALUES = 5000;

/**
 * Parses JSON within the bounds. The bounds are checked before, because a megabyte of text can become a hundred
 * megabytes of objects.
 * @param where the part of the request that an error names
 * @throws HoldfastError PayloadTooLarge, InvalidRequest
 */
export function parseJson(text: string, where: string, maxBytes: number): unknown {
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes) throw tooManyBytes(maxBytes);
  if (holdsTooMany(text)) throw tooManyValues();
  try {
    return JSON.parse(text);
  } catch {
    throw invalidRequest([{ path: where, message: 'must be valid JSON' }]);
  }
}

/**
 * Counts what separates values, outside of strings. For text that is not JSON, the count may be wrong, but then parsing
 * fails anyway.
 */
function holdsTooMany(text: string): boolean {
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if ((character === ',' || character === '[' || character === '{') && ++values > MAX_JSON_VALUES) return true;
  }
  return false;
}

/**
 * Finds the closing quote of a string by indexOf, which is much faster on a megabyte of text than a loop.
 * @param start the opening quote
 */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return quote;
  }
  return text.length;
}

/**
 * Checks the same bounds on a payload that Lambda has already parsed.
 * @returns the payload
 * @throws HoldfastError PayloadTooLarge
 */
export function boundedPayload(payload: unknown, maxBytes: number): unknown {
  const pending = [payload];
  let values = 1;
  let bytes = 0;
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === 'string') bytes += textBytes(value, maxBytes);
    else if (typeof value === 'object' && value !== null) {
      // The values are counted before they are added, because a list may have millions.
      const names = Array.isArray(value) ? undefined : Object.keys(value);
      values += names ? names.length : (value as unknown[]).length;
      if (values > MAX_JSON_VALUES) throw tooManyValues();
      for (const name of names ?? []) bytes += textBytes(name, maxBytes);
      pending.push(...Object.values(value));
    }
    if (bytes > maxBytes) throw tooManyBytes(maxBytes);
  }
  return payload;
}

const textBytes = (text: string, max: number) => (text.length > max ? text.length : Buffer.byteLength(text));

export const tooManyBytes = (limitBytes: number) =>
  new HoldfastError('PayloadTooLarge', `the request has more than ${limitBytes} bytes`, { limitBytes });

const tooManyValues = () =>
  new HoldfastError('PayloadTooLarge', `the request has more than ${MAX_JSON_VALUES} values`, {
    limitValues: MAX_JSON_VALUES,
  });
