import { unknownCursor } from '../errors.ts';

/** Where a listing goes on: opaque to callers, and no secret. It is plain text, because JSON needs six bytes for some characters. */
export const encodeCursor = (key: string): string => Buffer.from(key).toString('base64url');

/** The most bytes of a hash key that DynamoDB takes. */
const MAX_KEY_BYTES = 2048;

/** @throws HoldfastError InvalidRequest unless the cursor is one that `encodeCursor` could have made of so many bytes */
export function decodeCursor(cursor: string, maxBytes = MAX_KEY_BYTES): string {
  const bytes = Buffer.from(cursor, 'base64url');
  const key = bytes.toString();
  const known = key !== '' && bytes.length <= maxBytes && encodeCursor(key) === cursor;
  if (!known) throw unknownCursor();
  return key;
}
