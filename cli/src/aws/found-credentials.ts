import type { Credentials } from '../../../clients/typescript/src/sigv4.ts';

/** AWS credentials, and where they were found. */
export interface FoundCredentials {
  credentials: Credentials;
  /** Where they were found, for people. */
  source: string;
  /** Epoch milliseconds. Undefined if the credentials do not expire. */
  expiresAt?: number;
}
