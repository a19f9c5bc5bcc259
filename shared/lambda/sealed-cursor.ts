import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { requiredString } from '../aws/variables.ts';
import { invalidRequest } from '../errors.ts';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * A cursor that tells its caller nothing, and that only callers of the same namespace can use. The nonce comes from what is
 * sealed, so that none is used for two texts, and one page has one cursor.
 * @param cursor as `encodeCursor` made it
 */
function seal(cursor: string, namespace: string): string {
  const position = Buffer.from(cursor, 'base64url');
  const nonce = digest('nonce', namespace, position).subarray(0, NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, digest('key', namespace), nonce);
  const sealed = [nonce, cipher.update(position), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString('base64url');
}

/** @throws HoldfastError InvalidRequest unless `seal` made it in this deployment for the same namespace */
function open(sealed: string, namespace: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const key = digest('key', namespace);
  const end = Math.max(bytes.length - TAG_BYTES, NONCE_BYTES);
  const [nonce, text, tag] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(NONCE_BYTES, end), bytes.subarray(end)];
  try {
    const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString('base64url');
  } catch {
    throw invalidRequest([{ path: 'cursor', message: 'is not one that this listing gave' }]);
  }
}

/**
 * The key comes from the stack's id, which only the functions of a deployment and its operators know. That is enough to
 * hide the names of other namespaces in a cursor from a caller of the API.
 */
function digest(purpose: string, namespace: string, text: Uint8Array = new Uint8Array()): Buffer {
  const secret = requiredString('CURSOR_KEY', process.env);
  return createHmac('sha256', secret).update(`${purpose}\0${namespace}\0`).update(text).digest();
}

export const SEALED_CURSORS = { seal, open };
