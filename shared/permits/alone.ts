import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { ALONE } from './identity.ts';
import { hasMemory } from './memory.ts';
import type { HowEnded } from './previous.ts';
import { remember } from './ring.ts';
import { ttlAfter } from './write.ts';

// The parts of writes on the entry of an exclusive holder, which other clients of the table see (docs/protocols/locks.md).

/** A part of a write. */
export interface Part {
  set: string[];
  remove: string[];
  names: Record<string, string>;
  values: Item;
}

/** The expiry of an exclusive grant as the Rust crate sees it, and DynamoDB. */
export const secondsOf = (expiresAt: number) => integer(Math.ceil(expiresAt / 1000));

/** Another grant, its release, and a third-party client's take and delete are four requests, and hardly fit into this time. */
const PROMPT_MS = 50;

/** Whether other grants may have come and gone since a grant that met no fence took its fence from the clock. */
export const isLate = (triedAt: number, now: number): boolean => now - triedAt > PROMPT_MS;

/** The TTL attribute after a write that sets the expiry of an entry. */
export const ttlOf = (path: string, { now, expiresAt }: { now: number; expiresAt: number }): AttributeValue =>
  path === ALONE ? secondsOf(expiresAt) : ttlAfter(now);

/** Where the execution of a holder stands. The index finds that of an exclusive holder. A row in the table of the waiters finds the others. */
export const executionAt = (path: string): string => (path === ALONE ? 'execution' : '#h.x');

interface EndingAlone {
  key: string;
  entry: { name: string; fence?: number | undefined; claimTtlMs?: number | undefined };
  how: HowEnded;
  operator?: string | undefined;
  now: number;
}

/** Whether nobody received the grant. Then the record forgets the holder, and the next grant names the one before. */
const reachedNobody = ({ how, entry }: Pick<EndingAlone, 'how' | 'entry'>): boolean =>
  how === 'undelivered' || (how === 'expired' && entry.claimTtlMs !== undefined);

/** Whether the record remembers the request of a grant after this end. After all other ends, the request may ask again. */
export const isRemembered = (how: HowEnded): how is 'released' | 'broken' => how === 'released' || how === 'broken';

/** The ring, for a write that replaces the entry of an exclusive grant as the grant ends. */
export const ringAfter = ({ entry, how }: Pick<EndingAlone, 'how' | 'entry'>): Pick<Part, 'set' | 'values'> =>
  isRemembered(how) ? remember(entry.name, how === 'broken' ? entry.fence : undefined) : { set: [], values: {} };

/**
 * Ends an exclusive grant, and leaves the key free for every client of the table. The last holder stays, for readers and for the next grant. The write
 * has the value `:now`, and the name `#h`, unless `at` names the entry otherwise.
 */
export function endAlone(
  { fenceRetentionSeconds }: Pick<LeaseDependencies, 'fenceRetentionSeconds'>,
  { key, entry, how, operator, now }: EndingAlone,
  at = '#h',
): Part {
  const isForgotten = reachedNobody({ how, entry });
  const retention = hasMemory(key) ? {} : { ':retention': secondsOf(now + fenceRetentionSeconds * 1000) };
  return {
    set: [
      'freed_at = :now',
      ...(hasMemory(key) ? [] : ['lease_expiry = :retention']),
      ...(isForgotten ? [] : [`${at}.p = :ended`]),
      ...(operator === undefined ? [] : [`${at}.o = if_not_exists(${at}.o, :operator)`]),
    ],
    remove: [
      ...['lease_version', 'execution', `${at}.i`, `${at}.v`],
      ...(isForgotten ? [`${at}.h`] : []),
      ...(isRemembered(how) ? [] : [`${at}.m`]),
    ],
    names: { [at]: ALONE },
    values: {
      ...{ ':now': integer(now), ...retention },
      ...(!isForgotten && { ':ended': text(how) }),
      ...(operator !== undefined && { ':operator': text(operator) }),
    },
  };
}
