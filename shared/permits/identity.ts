import { hash } from 'node:crypto';

/** One acquisition, by an authenticated caller. */
interface Asker {
  holder: string;
  requestId: string;
  principal?: string | undefined;
}

/** How many requests a record remembers after their permits have ended. */
export const RING = 8;

/** The name of a request in its pool's record: no other request has it (docs/protocols/locks.md#record). */
export function requestName({ holder, requestId, principal = '' }: Asker): string {
  const asked = JSON.stringify([holder, requestId, principal]);
  return hash('sha256', asked, 'base64url').slice(0, 16);
}

/** The `lease_version` of a held key. Every other client of the table takes such a record for a held lease. */
export const OURS = 'holdfast';

/** The entry of an exclusive holder. Its place is fixed, so that a write that has seen nothing can replace an expired one. */
export const ALONE = 'h';

/** The attribute of an entry. */
export const pathOf = (name: string, isAlone: boolean): string => (isAlone ? ALONE : `h${name}`);

/** The attribute with the fence of a shared holder. That of an exclusive holder is the fence of the record. */
export const fencePathOf = (path: string): string => path.replace(/^h/, 'f');

/** The contents of a permit's lease id: where its entry is, and the secret that proves it. */
export interface Proof {
  name: string;
  path: string;
  id: string;
}

/** Ends the id of a grant that was made while others were in line. The ticket of the grant follows in the lease id, for a quick release. */
export const IN_LINE = '+';

interface Named extends Proof {
  ticket?: string | undefined;
}

export const leaseIdOf = ({ name, path, id, ticket = '' }: Named): string =>
  path === ALONE ? `e.${name}.${id}${id.endsWith(IN_LINE) ? ticket : ''}` : `p.${name}.${id}`;

const SHARED_ID = /^p\.([\w-]{16})\.([\da-f-]{36})$/;
const ALONE_ID = /^[eo]\.([\w-]{16})\.([\da-f-]{36}\+?)(?:(?<=\+)[\w-]*)?$/;

/** @returns undefined for an id that this service never gave: its parts become names of attributes */
export function proofOf(leaseId: string): Proof | undefined {
  const isAlone = !leaseId.startsWith('p.');
  const [, name, id] = (isAlone ? ALONE_ID : SHARED_ID).exec(leaseId) ?? [];
  return name && id ? { name, path: pathOf(name, isAlone), id } : undefined;
}

/** The ticket that the lease id of an exclusive grant names, if others were behind it. */
export const ticketOfLeaseId = (leaseId: string): string | undefined => leaseId.split(IN_LINE)[1];
