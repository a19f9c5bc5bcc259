import { KINDS, type Kind } from './kinds.ts';

export interface Tally {
  count: number;
  oldestAgeSeconds: number;
}
export type Tallies = Record<Kind, Tally>;

/** What a report found, and how far it came. */
export interface Summary {
  reportId: string;
  /** ISO 8601; of the report, which may have gone on over several runs. */
  startedAt: string;
  /** Null while it is not complete. */
  finishedAt: string | null;
  /** Whether everything was scanned. */
  complete: boolean;
  /** Rows and objects looked at. */
  scanned: number;
  /** What DynamoDB charged for it. */
  readUnits: number;
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
