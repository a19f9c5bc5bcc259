import { createHash, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { Hash, SourceData } from '@smithy/types';

/**
 * The SHA-256 with which a client signs, a keyed one (HMAC) if there is a secret. Node takes several times as long for the bytes of a key
 * as for a KeyObject, and the SDK, which keeps the bytes of a day's signing key, would pass them at every request.
 */
export class Sha256 implements Hash {
  readonly #hash;

  constructor(secret?: SourceData) {
    this.#hash = secret ? createHmac('sha256', hmacKey(secret)) : createHash('sha256');
  }

  update(data: SourceData): void {
    this.#hash.update(typeof data === 'string' ? data : bytesOfData(data));
  }

  /** Ends the hash. */
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}

/** By the array that the SDK keeps, so that a key is forgotten with it. */
const keys = new WeakMap<object, KeyObject>();

function hmacKey(secret: SourceData): KeyObject | string {
  if (typeof secret === 'string') return secret;
  const key = keys.get(secret) ?? createSecretKey(bytesOfData(secret));
  keys.set(secret, key);
  return key;
}

const bytesOfData = (data: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
