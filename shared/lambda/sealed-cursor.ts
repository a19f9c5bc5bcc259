import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { requiredString } from '../aws/variables.ts';
import { unknownCursor } from '../errors.ts';
import type { Cursors } from '../namespace.ts';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Cursors that a caller cannot read, and that only callers of the same namespace can use, in the same list.
 * @param rows what the list goes through. Calls that go through the same rows share a name
 */
export const sealedCursors = (rows: 'leases' | 'once' | 'rates' | 'names' | 'commits' | 'expired'): Cursors => ({
  seal: (cursor, namespace) => seal(cursor, `${rows}\0${namespace}`),
  open: (sealed, namespace) => open(sealed, `${rows}\0${namespace}`),
});

/**
 * The nonce comes from the sealed text. So no two texts share a nonce, and a page always has the same cursor.
 * @param cursor as `encodeCursor` made it
 * @param list its rows and the namespace
 */
function seal(cursor: string, list: string): string {
  const position = Buffer.from(cursor, 'base64url');
  const nonce = keyedDigest('nonce', list, position).subarray(0, NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, keyedDigest('key', list), nonce);
  const sealed = [nonce, cipher.update(position), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString('base64url');
}

/** @throws HoldfastError InvalidRequest unless `seal` made it in this deployment for the same list */
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
 * The key comes from the stack's id. It proves nothing, because every reader of the account's tags or stacks knows the id. It only hides the names of other
 * namespaces in a cursor from callers of the API. Other rules confine each call to its namespace.
 */
function keyedDigest(purpose: string, list: string, text: Uint8Array = new Uint8Array()): Buffer {
  const secret = requiredString('CURSOR_KEY', process.env);
  return createHmac('sha256', secret).update(`${purpose}\0${list}\0`).update(text).digest();
}
