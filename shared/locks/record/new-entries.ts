import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { EndedGrant } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ALONE, IN_LINE, pathOf } from './identity.ts';
import { type HolderEntry, isAloneIn, type NewGrant } from './record.ts';

const endedAttribute = ({ holder, fence, ended, at }: EndedGrant): AttributeValue => ({
  M: { h: text(holder), f: integer(fence), e: text(ended), a: integer(at) },
});

/** The entry of a new holder, as DynamoDB stores it (docs/protocols/records.md#entries). */
export function entryItem(
  entry: Omit<
    HolderEntry,
    'fence' | 'beatAt' | 'answeredAt' | 'unnotifiedVersion' | 'isEnding' | 'endingAt' | 'brokenBy' | 'newer'
  > &
    Pick<EntryTerms, 'hasPrevious' | 'staysSeconds'>,
): AttributeValue {
  const { name, path, id, version, holder, expiresAt, ttlMs, acquiredAt, weight } = entry;
  const isAlone = path === ALONE;
  const { data, execution, target, graceMs, bound, ticket, previous, metNoFence, claimTtlMs, limitBefore } = entry;
  const times = { e: expiresAt, b: acquiredAt, t: ttlMs, a: acquiredAt, w: weight };
  return {
    M: {
      i: text(id),
      v: text(version),
      h: text(holder),
      ...Object.fromEntries(Object.entries(times).map(([part, value]) => [part, { N: String(value) }])),
      ...(data !== undefined && { d: text(JSON.stringify(data)) }),
      ...(isAlone && { m: text(name), u: integer(entry.staysSeconds ?? Math.ceil(ttlMs / 1000)) }),
      ...(execution !== undefined && !isAlone && { x: text(execution) }),
      ...(target !== undefined && { y: text(target) }),
      ...(graceMs && { n: integer(graceMs) }),
      ...(bound && { z: { BOOL: true } }),
      ...(ticket !== undefined && { k: text(ticket) }),
      ...(previous && !isAlone && { q: endedAttribute(previous) }),
      ...((previous || entry.hasPrevious) && isAlone && { q: { BOOL: true } }),
      ...(metNoFence && { f: { BOOL: true } }),
      ...(claimTtlMs !== undefined && { c: integer(claimTtlMs) }),
      ...(limitBefore !== undefined && { l: integer(limitBefore) }),
      ...(entry.replace === 'running' && { R: { BOOL: true } }),
    },
  };
}

interface EntryTerms {
  grant: NewGrant;
  /** Whether the record has the attributes that name the holder before. */
  hasPrevious?: boolean | undefined;
  now: number;
  hasOthers?: boolean | undefined;
  /** Whether the record had no fence. */
  metNoFence?: boolean | undefined;
  /** How long the record of `once` stays after each write on the grant. For a key, that is the ttl. */
  staysSeconds?: number | undefined;
}

export function entryOfNew(
  { ids }: Pick<LeaseDependencies, 'ids'>,
  { grant, now, hasOthers, metNoFence, hasPrevious, staysSeconds }: EntryTerms,
) {
  const { name, ttlMs, limit: _, room: __, ...terms } = grant;
  const times = { expiresAt: now + ttlMs, ttlMs, acquiredAt: now };
  const isAlone = isAloneIn(grant);
  const path = pathOf(name, isAlone);
  const [id, version] = [`${ids.uuid()}${hasOthers && isAlone ? IN_LINE : ''}`, ids.uuid()];
  const item = entryItem({ ...terms, name, path, id, version, metNoFence, hasPrevious, staysSeconds, ...times });
  return { name, path, id, version, item };
}
