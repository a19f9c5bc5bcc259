import { KINDS, type Kind } from './kinds.ts';

export interface Tally {
  count: number;
  oldestAgeSeconds: number;
}
export type Tallies = Record<Kind, Tally>;

export interface HeldLeases {
  namespace: string;
  /** How many leases and permits the namespace holds. A permit counts as one, whatever its weight. */
  leases: number;
}

export interface Summary {
  reportId: string;
  /** The start of the first run, in ISO 8601. */
  startedAt: string;
  /** The completion, in ISO 8601. Null until then. */
  finishedAt: string | null;
  /**
   * Whether everything was scanned and, for a caller of a namespace, all rows of the namespace were counted.
   */
  complete: boolean;
  /** How many items and objects were read. */
  scanned: number;
  /** The read units that DynamoDB charged. */
  readUnits: number;
  /** The hundred namespaces that hold the most leases. A caller of a namespace sees only its own. */
  heldByNamespace: HeldLeases[];
  expired: Tallies;
  /** How many of the expired records DynamoDB's TTL can never delete. */
  neverDeletable: number;
  /** Where the rows are, as newline-delimited JSON. */
  location: string;
}

export const noTallies = (): Tallies =>
  Object.fromEntries(KINDS.map((kind) => [kind, { count: 0, oldestAgeSeconds: 0 }])) as Tallies;

export function addTally(to: Tallies, kind: Kind, { count, oldestAgeSeconds }: Tally): void {
  to[kind].count += count;
  to[kind].oldestAgeSeconds = Math.max(to[kind].oldestAgeSeconds, oldestAgeSeconds);
}
