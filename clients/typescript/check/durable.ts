import type { Holdfast } from 'holdfast-client';
import { type DurableContext, withLease, withLeases } from 'holdfast-client/durable';

/** Compiles without the types of the SDK of durable functions. */
export const one = (ctx: DurableContext, holdfast: Holdfast): Promise<number> =>
  withLease(ctx, holdfast, 'a', { limit: 5, parkSeconds: 60 }, ({ fence }) => fence);

export const several = (ctx: DurableContext, holdfast: Holdfast): Promise<number | undefined> =>
  withLeases(ctx, holdfast, [{ key: 'a/b' }, { key: 'a', mode: 'shared' }], {}, ({ fences }) => fences.a);
