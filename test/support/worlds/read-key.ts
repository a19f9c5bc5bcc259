import type { Holdfast } from '../../../client/src/index.ts';

type Read = Awaited<ReturnType<Holdfast['readLease']>>;
type Request = Parameters<Holdfast['readLease']>[1];

/** Reads a key that is used as a lease. @throws Error if the key is a pool */
export const readLease = (holdfast: Holdfast, key: string, request: Request = {}) =>
  readAs(holdfast, { key, kind: 'lease', request });

/** Reads a key that is used as a pool. @throws Error if the key is a lease, or has no record */
export const readPool = (holdfast: Holdfast, key: string, request: Request = {}) =>
  readAs(holdfast, { key, kind: 'pool', request });

async function readAs<Kind extends Read['kind']>(
  holdfast: Holdfast,
  { key, kind, request }: { key: string; kind: Kind; request: Request },
): Promise<Extract<Read, { kind: Kind }>> {
  const read = await holdfast.readLease(key, request);
  if (read.kind !== kind) throw new Error(`${key} is a ${read.kind}`);
  return read as Extract<Read, { kind: Kind }>;
}
