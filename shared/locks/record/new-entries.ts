import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { EndedGrant } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ALONE, IN_LINE, pathOf } from './identity.ts';
import { type HolderEntry, isAloneIn, type NewGrant } from './record.ts';

const endedAttribute = ({ holder, fence, ended, at }: EndedGrant): AttributeValue => ({
  M: { h: text(holder), f: integer(fence), e: text(ended), a: integer(at) },
});

/** What is written for a new holder. */
export function entryItem(
  entry: Omit<
    HolderEntry,
    'fence' | 'beatAt' | 'answeredAt' | 'unnotifiedVersion' | 'isEnding' | 'endingAt' | 'brokenBy' | 'newer'
  > &
    Pick<Granting, 'hasPrevious' | 'staysSeconds'>,
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

interface Granting {
  grant: NewGrant;
  /** Whether the record names the holder before it, which the write that grants knows only by the record. */
  hasPrevious?: boolean | undefined;
  now: number;
  /** Whether others are in line behind it. */
  others?: boolean | undefined;
  metNoFence?: boolean | undefined;
  /** How long the record stays after each write on an exclusive grant, if that is not the ttl (shared/once). */
  staysSeconds?: number | undefined;
}

/** The entry of a grant that is made now. */
export function entryOfNew(
  { ids }: Pick<LeaseDependencies, 'ids'>,
  { grant, now, others, metNoFence, hasPrevious, staysSeconds }: Granting,
) {
  const { name, ttlMs, limit: _, room: __, ...asked } = grant;
  const times = { expiresAt: now + ttlMs, ttlMs, acquiredAt: now };
  const isAlone = isAloneIn(grant);
  const path = pathOf(name, isAlone);
  const [id, version] = [`${ids.uuid()}${others && isAlone ? IN_LINE : ''}`, ids.uuid()];
  const item = entryItem({ ...asked, name, path, id, version, metNoFence, hasPrevious, staysSeconds, ...times });
  return { name, path, id, version, item };
}
