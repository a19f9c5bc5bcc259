import { entryOf, game, type Op, partyOf, type Rec, remembers, specOf, without } from './state.ts';

// The newest request that joined with `replace`, as the record has it (docs/protocols/replace.md).

/** What a request says of `replace`. */
export const replaces = (n: string): 'waiting' | 'running' | undefined =>
  partyOf(n) < game.mix.ps.length ? specOf(partyOf(n)).replace : undefined;

/** Whether a join of this request replaces the latest one, which is another request and still waits. */
export const drops = (r: Rec, n: string): boolean => {
  const before = r.latest?.n;
  if (before === undefined || (before === n && !without('replace: own request'))) return false;
  return !(entryOf(r, before) && !without('replace: holders')) && !remembers(r, before);
};

/** The part of a mark that makes a request the latest. @returns undefined if the write has not the form that the record asks for */
export function joined(r: Rec, o: Op, after: Rec, ringWith: (names: string[]) => string[]): Rec | undefined {
  if (!o.replace || o.back) return after;
  if (drops(r, o.n) !== o.drops && !without('replace: form')) return undefined;
  const latest = { n: o.n, k: o.k };
  if (!o.drops || without('replace: ring') || !r.latest) return { ...after, latest };
  return { ...after, latest, ring: ringWith([r.latest.n]), sup: [r.latest.n, ...r.sup] };
}

/** Whether the record says that a newer request has replaced this one. */
export const isSuperseded = (r: Rec, n: string): boolean => r.sup.includes(n);
