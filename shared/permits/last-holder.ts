import { type Json, json, number } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { ENDINGS, type Ended } from '../line/ended.ts';
import { isInstant } from '../surroundings/clock.ts';
import { ALONE } from './identity.ts';

/** What readers see of the last exclusive holder besides its end. */
export interface LastTerms {
  acquiredAt: number | undefined;
  expiresAt: number | undefined;
  beatAt: number | undefined;
  brokenAt: number | undefined;
  data: Json | undefined;
}

/** The end of an exclusive grant leaves its entry, without id and version. */
export function lastOf(item: Item): Ended | undefined {
  const map = item[ALONE]?.M;
  const [holder, how] = [map?.h?.S, ENDINGS.find((one) => one === map?.p?.S)];
  const [fence, freedAt] = [number(item, 'fence'), number(item, 'freed_at')];
  if (!map || map.i !== undefined || holder === undefined || how === undefined || fence === undefined) return undefined;
  // The holder gave it back because an operator broke it, and may have left its work half done.
  const ended = how === 'released' && map.s !== undefined ? 'broken' : how;
  const at = ended === 'expired' ? number(map, 'e') : freedAt;
  return at !== undefined && isInstant(at) ? { holder, fence, ended, at, by: map.o?.S } : undefined;
}

/** An operator may have broken the grant with `wait` before its end. */
export function lastTermsOf(item: Item): LastTerms | undefined {
  const map = item[ALONE]?.M;
  if (!map || map.i !== undefined) return undefined;
  const brokenAt = number(map, 's') ?? (map.p?.S === 'broken' ? number(item, 'freed_at') : undefined);
  const [acquiredAt, expiresAt, beatAt] = ['a', 'e', 'b'].map((part) => number(map, part));
  return { acquiredAt, expiresAt, beatAt, brokenAt, data: json(map.d?.S) };
}
