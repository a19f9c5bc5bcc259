import { unknownCursor } from '../errors.ts';

/**
 * Encodes a key as a cursor. The text is not JSON, because JSON needs six bytes for some characters. A cursor is not
 * secret.
 */
export const encodeCursor = (key: string): string => Buffer.from(key).toString('base64url');

/** The longest hash key of DynamoDB. */
const MAX_KEY_BYTES = 2048;

/**
 * @throws HoldfastError InvalidRequest unless `encodeCursor` could have made the cursor from a key of at most
 *   `maxBytes`
 */
export function decodeCursor(cursor: string, maxBytes = MAX_KEY_BYTES): string {
  const bytes = Buffer.from(cursor, 'base64url');
  const key = bytes.toString();
  const known = key !== '' && bytes.length <= maxBytes && encodeCursor(key) === cursor;
  if (!known) throw unknownCursor();
  return key;
}
