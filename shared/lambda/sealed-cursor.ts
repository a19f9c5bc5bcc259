import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { requiredString } from '../aws/variables.ts';
import { unknownCursor } from '../errors.ts';
import type { Cursors } from '../namespace.ts';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts cursors, so that a caller cannot read them, and only callers of the same namespace can use them, for the
 * same list.
 * @param rows the rows that the call lists. Calls that list the same rows pass the same name
 */
export const sealedCursors = (rows: 'leases' | 'once' | 'rates' | 'names' | 'commits' | 'expired'): Cursors => ({
  seal: (cursor, namespace) => seal(cursor, `${rows}\0${namespace}`),
  open: (sealed, namespace) => open(sealed, `${rows}\0${namespace}`),
});

/**
 * Encrypts a cursor. The nonce is derived from the text, so that two texts never share a nonce, and a page always has
 * the same cursor.
 * @param cursor as `encodeCursor` made it
 * @param list the rows and the namespace
 */
function seal(cursor: string, list: string): string {
  const position = Buffer.from(cursor, 'base64url');
  const nonce = keyedDigest('nonce', list, position).subarray(0, NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, keyedDigest('key', list), nonce);
  const sealed = [nonce, cipher.update(position), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString('base64url');
}

/** @throws HoldfastError InvalidRequest unless `seal` made the cursor in this deployment for the same list */
function open(sealed: string, list: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const key = keyedDigest('key', list);
  const end = Math.max(bytes.length - TAG_BYTES, NONCE_BYTES);
  const [nonce, text, tag] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(NONCE_BYTES, end), bytes.subarray(end)];
  try {
    const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString('base64url');
  } catch {
    throw unknownCursor();
  }
}

/**
 * A digest with a key that is derived from the stack's id. Each reader of the account's tags or stacks knows the id, so
 * the encryption proves nothing: it only hides names of other namespaces from callers of the API. Other
 * rules keep each call within its namespace.
 */
function keyedDigest(purpose: string, list: string, text: Uint8Array = new Uint8Array()): Buffer {
  const secret = requiredString('CURSOR_KEY', process.env);
  return createHmac('sha256', secret).update(`${purpose}\0${list}\0`).update(text).digest();
}
