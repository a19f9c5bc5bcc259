import { HoldfastError, invalidRequest } from '../errors.ts';

/** The default limit of a payload in bytes of JSON: all fields at their longest, with each character escaped. */
export const DEFAULT_MAX_BYTES = 64 * 1024;

/** Strings, numbers, lists and objects in one payload. `data` or `extra` of 4 KiB can hold two thousand. */
const MAX_JSON_VALUES = 5000;

/**
 * Checks the bounds of JSON, and then parses it: a megabyte of text can become a hundred megabytes of objects.
 * @param where the part of the request that the text is
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

/** Counts what separates values, outside of strings. The count may be wrong for text that is not JSON, which is not parsed anyway. */
function holdsTooMany(text: string): boolean {
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if ((character === ',' || character === '[' || character === '{') && ++values > MAX_JSON_VALUES) return true;
  }
  return false;
}

/** @param start the index of its opening quote. It uses indexOf, which passes a megabyte of text faster than any loop here could. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return quote;
  }
  return text.length;
}

/**
 * The same bounds for a payload that Lambda has parsed already, so that validation never meets more than they let through.
 * @throws HoldfastError PayloadTooLarge
 */
export function boundPayload(payload: unknown, maxBytes: number): void {
  const pending = [payload];
  let values = 1;
  let bytes = 0;
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === 'string') bytes += textBytes(value, maxBytes);
    else if (typeof value === 'object' && value !== null) {
      // Counted before they are collected, because a list may have millions.
      const names = Array.isArray(value) ? undefined : Object.keys(value);
      values += names ? names.length : (value as unknown[]).length;
      if (values > MAX_JSON_VALUES) throw tooManyValues();
      for (const name of names ?? []) bytes += textBytes(name, maxBytes);
      pending.push(...Object.values(value));
    }
    if (bytes > maxBytes) throw tooManyBytes(maxBytes);
  }
}

const textBytes = (text: string, max: number) => (text.length > max ? text.length : Buffer.byteLength(text));

export const tooManyBytes = (limitBytes: number) =>
  new HoldfastError('PayloadTooLarge', `the request has more than ${limitBytes} bytes`, { limitBytes });

const tooManyValues = () =>
  new HoldfastError('PayloadTooLarge', `the request has more than ${MAX_JSON_VALUES} values`, {
    limitValues: MAX_JSON_VALUES,
  });
