import { createHash } from 'node:crypto';

/** One acquisition, by an authenticated caller. */
interface Asker {
  holder: string;
  requestId: string;
  principal?: string | undefined;
}

/** How many requests a record remembers after their permits have ended. */
export const RING = 8;

/** The name of a request in its pool's record: no other request has it (docs/protocols/pools.md#record). */
export function requestName({ holder, requestId, principal = '' }: Asker): string {
  const asked = JSON.stringify([holder, requestId, principal]);
  return createHash('sha256').update(asked).digest('base64url').slice(0, 16);
}

/** The contents of a permit's lease id: where its entry is, and the secret that proves it. */
export interface Proof {
  name: string;
  id: string;
}

export const leaseIdOf = ({ name, id }: Proof): string => `p.${name}.${id}`;

/** @returns undefined for an id that this service never gave: its parts become names of attributes */
export function proofOf(leaseId: string): Proof | undefined {
  const [, name, id] = /^p\.([\w-]{16})\.([\da-f-]{36})$/.exec(leaseId) ?? [];
  return name && id ? { name, id } : undefined;
}
