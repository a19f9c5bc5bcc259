import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { EndedGrant } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { EXCLUSIVE_PATH, IN_LINE_SUFFIX, pathOf } from './identity.ts';
import { type HolderEntry, isExclusiveGrant, type NewGrant } from './record.ts';

const endedAttribute = ({ holder, fence, ended, at }: EndedGrant): AttributeValue => ({
  M: { h: text(holder), f: integer(fence), e: text(ended), a: integer(at) },
});

/** The entry of a new holder, as DynamoDB stores it (docs/protocols/records.md#entries). */
export function entryItem(
  entry: Omit<
    HolderEntry,
    'fence' | 'heartbeatAt' | 'answeredAt' | 'unnotifiedVersion' | 'isEnding' | 'endingAt' | 'brokenBy' | 'newer'
  > &
    Pick<EntryTerms, 'hasPrevious' | 'staysSeconds'>,
): AttributeValue {
  const { name, path, id, version, holder, expiresAt, ttlMs, acquiredAt, weight } = entry;
  const isExclusive = path === EXCLUSIVE_PATH;
  const { data, execution, target, graceMs, bound, ticket, previous, metNoFence, claimTtlMs, limitBefore } = entry;
  const times = { e: expiresAt, b: acquiredAt, t: ttlMs, a: acquiredAt, w: weight };
  return {
    M: {
      i: text(id),
      v: text(version),
      h: text(holder),
      ...Object.fromEntries(Object.entries(times).map(([part, value]) => [part, { N: String(value) }])),
      ...(data !== undefined && { d: text(JSON.stringify(data)) }),
      ...(isExclusive && { m: text(name), u: integer(entry.staysSeconds ?? Math.ceil(ttlMs / 1000)) }),
      ...(execution !== undefined && !isExclusive && { x: text(execution) }),
      ...(target !== undefined && { y: text(target) }),
      ...(graceMs && { n: integer(graceMs) }),
      ...(bound && { z: { BOOL: true } }),
      ...(ticket !== undefined && { k: text(ticket) }),
      ...(previous && !isExclusive && { q: endedAttribute(previous) }),
      ...((previous || entry.hasPrevious) && isExclusive && { q: { BOOL: true } }),
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
  const isExclusive = isExclusiveGrant(grant);
  const path = pathOf(name, isExclusive);
  const [id, version] = [`${ids.uuid()}${hasOthers && isExclusive ? IN_LINE_SUFFIX : ''}`, ids.uuid()];
  const item = entryItem({ ...terms, name, path, id, version, metNoFence, hasPrevious, staysSeconds, ...times });
  return { name, path, id, version, item };
}
