import { KINDS, type Kind } from './kinds.ts';

export interface Tally {
  count: number;
  oldestAgeSeconds: number;
}
export type Tallies = Record<Kind, Tally>;

export interface HeldLeases {
  namespace: string;
  /** Permits count as leases, each as one whatever its weight. */
  leases: number;
}

/** What a report found, and how far it got. */
export interface Summary {
  reportId: string;
  /** ISO 8601. The start of the report, which may take several runs. */
  startedAt: string;
  /** Null until the report is complete. */
  finishedAt: string | null;
  /** Whether everything was scanned, and in a namespace everything counted. */
  complete: boolean;
  /** How many items and objects were read. */
  scanned: number;
  /** The read units that DynamoDB charged. */
  readUnits: number;
  /** How many leases and permits the namespaces hold that hold the most, at most a hundred. In a namespace its own. */
  heldByNamespace: HeldLeases[];
  expired: Tallies;
  /** How many of the expired rows DynamoDB's TTL can never delete. */
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
