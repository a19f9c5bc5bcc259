import type { Credentials } from '../../../clients/typescript/src/sigv4.ts';

/** AWS keys to sign with, and where they come from. */
export interface Keys {
  credentials: Credentials;
  /** The source, in words. */
  source: string;
  /** Epoch milliseconds; undefined if the keys do not expire. */
  expiresAt?: number;
}
