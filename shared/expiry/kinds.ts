/** Every kind of expired record. The sources (sources.ts) find them. */
export const KINDS = [
  ...(['abandonedLease', 'releasedLease', 'abandonedPermit'] as const),
  ...(['holderEnded', 'holderUnknown'] as const),
  ...(['abandonedRun', 'endedRun'] as const),
  ...(['commit', 'firstSight', 'waiter', 'upload', 'nameserviceRow'] as const),
] as const;
export type Kind = (typeof KINDS)[number];
