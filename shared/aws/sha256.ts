import { createHash, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { Hash, SourceData } from '@smithy/types';

/**
 * The SHA-256 with which the SDK signs requests: an HMAC if the SDK passes a secret. The SDK passes the bytes of the
 * day's signing key with every request. Node is several times faster with a KeyObject, so this class makes one from the
 * bytes and keeps it.
 */
export class Sha256 implements Hash {
  readonly #hash;

  constructor(secret?: SourceData) {
    this.#hash = secret ? createHmac('sha256', hmacKey(secret)) : createHash('sha256');
  }

  update(data: SourceData): void {
    this.#hash.update(typeof data === 'string' ? data : bytesOfData(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}

/** The key object for each array that the SDK passed. A key object is forgotten when the SDK forgets its array. */
const keyObjects = new WeakMap<object, KeyObject>();

function hmacKey(secret: SourceData): KeyObject | string {
  if (typeof secret === 'string') return secret;
  const key = keyObjects.get(secret) ?? createSecretKey(bytesOfData(secret));
  keyObjects.set(secret, key);
  return key;
}

const bytesOfData = (data: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
