import type { ExpirySource } from './sources/source.ts';

export const KINDS = [
  ...(['abandonedLease', 'releasedLease', 'abandonedPermit'] as const),
  ...(['holderEnded', 'holderUnknown'] as const),
  ...(['abandonedRun', 'endedRun'] as const),
  ...(['commit', 'firstSight', 'waiter', 'upload', 'nameserviceRow'] as const),
] as const;
export type Kind = (typeof KINDS)[number];

/** The sources of a report by name, in the order of reading. */
export type Sources = Readonly<Record<string, ExpirySource<Kind>>>;

export function sourceOf(sources: Sources, kind: Kind): ExpirySource<Kind> {
  const source = Object.values(sources).find(({ kinds }) => kinds.includes(kind));
  if (!source) throw new TypeError(`no source has records of the kind ${kind}`);
  return source;
}
