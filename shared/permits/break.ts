import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { type BreakInput, type Broken, holderTerms } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { operatorOf } from '../line/ended.ts';
import { hasNoEndMark, isInUse, isOf } from './conditions.ts';
import { ALONE } from './identity.ts';
import { readPool } from './read.ts';
import { entryOf, type PoolEntry, type PoolRecord, unusable } from './record.ts';
import { endGrant, handOffToLine } from './release.ts';
import { keySummary, permitLost } from './views.ts';
import { updatePool, type Written } from './write.ts';

/**
 * Ends the permit that an operator saw, named by its fence: one read, and one conditional UpdateItem (docs/protocols/locks.md#break). With `wait`
 * it ends when its holder releases it or its ttl ends. Only the fence stops what the holder still writes. A repeat gives the same answer, unless
 * eight other permits have ended since, or the holder has released it.
 * @throws HoldfastError Conflict (another has the key alone), NotFound (no grant has the fence), Throttled, Unavailable, OutcomeUnknown
 */
export function breakPermitByFence(dependencies: LeaseDependencies) {
  return async ({ key, fence, wait = false }: BreakInput, call: Call): Promise<Broken> => {
    let record = await readPool(dependencies, key, call);
    let unanswered = false;
    let seen: PoolEntry | undefined;
    /** A mark whose task took the message that the permit is broken, so that no holder works. */
    let isUnnotified = false;
    for (;;) {
      if (record.ring.some(({ broken }) => broken === fence)) {
        if (unanswered) await handOffToLine(dependencies, { record }, call);
        return brokenView(key, { fence, entry: seen ?? lastUnder(record, fence), ended: true });
      }
      const entry = record.entries.find((one) => one.fence === fence);
      if (!entry && unanswered) throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key });
      if (!entry) throw otherFence(record, dependencies.clock.now());
      seen = entry;
      const { ticket } = entry;
      const stays = wait && !isUnnotified && isHeld(dependencies, entry);
      if (stays && entry.isEnding) {
        isUnnotified = ticket !== undefined && (await endUnnotifiedTask(dependencies, { key, ticket }, call));
        if (!isUnnotified) return brokenView(key, { fence, entry, ended: false });
      }
      const ends = { key, proof: entry, brokenFence: fence, seen: wait ? entry.version : undefined };
      const marks = stays && !entry.isEnding;
      const written = await (marks
        ? markEnding(dependencies, { key, entry }, call)
        : endGrant(dependencies, ends, call));
      record = written.record;
      unanswered ||= written.unanswered;
      if (!written.won || marks) continue;
      if (!('isHandedOff' in written)) await handOffToLine(dependencies, { record, ticket }, call);
      return brokenView(key, { fence, entry, ended: true });
    }
  };
}

/** A holder that has the key alone stands in the answer, so that the operator need not read the key. */
function otherFence(record: PoolRecord, now: number): HoldfastError {
  const { key, entries, thirdParty } = record;
  if (!thirdParty && entries.every(({ path }) => path !== ALONE))
    return new HoldfastError('NotFound', 'no grant of the key has the fence: read the key for its holders', { key });
  const detail = 'the grant of the key has another fence: read the key, and break the grant by its present fence';
  return new HoldfastError('Conflict', detail, { key, actual: keySummary(record, now) });
}

interface OnRecord {
  key: string;
  entry: PoolEntry;
}

/** Its caller has claimed it, and no other caller may take its place yet. */
const isHeld = ({ clock, clockSkewMs }: LeaseDependencies, { claimTtlMs, expiresAt }: PoolEntry): boolean =>
  claimTtlMs === undefined && expiresAt >= clock.now() - clockSkewMs;

/** Gives the permit a new version, so that no call that has read the permit before extends it. */
async function markEnding(dependencies: LeaseDependencies, { key, entry }: OnRecord, call: Call): Promise<Written> {
  const { name, path } = entry;
  const { clock, clockSkewMs, ids } = dependencies;
  const now = clock.now();
  const operator = operatorOf(call);
  const written = await updatePool(
    dependencies,
    {
      key,
      set: ['#h.s = :now', '#h.v = :version', ...(operator === undefined ? [] : ['#h.o = :operator'])],
      condition: all(isOf(entry), hasNoEndMark(path), isInUse(path, now - clockSkewMs)),
      values: {
        ...{ ':now': integer(now), ':version': text(ids.uuid()) },
        ...(operator !== undefined && { ':operator': text(operator) }),
      },
    },
    call,
  );
  const after = entryOf(written.record, name);
  // Another client has written a part of the entry with another type, and no call would ever mark it.
  if (!written.won && after?.version === entry.version && isHeld(dependencies, after))
    throw unusable(written.record, path);
  return written;
}

async function endUnnotifiedTask(
  dependencies: LeaseDependencies,
  { key, ticket }: { key: string; ticket: string },
  call: Call,
): Promise<boolean> {
  const { endUnnotified } = await import('../line/notify.ts');
  const ended = { waiter: { key: key, ticket }, error: permitLost(key, 'broken') };
  const delivery = await endUnnotified(dependencies, ended, call);
  return delivery === 'delivered';
}

/** Its fence is that of the last grant of the key. */
const lastUnder = ({ last, lastTerms }: PoolRecord, fence: number): Terms | undefined =>
  last?.fence === fence ? { ...lastTerms, holder: last.holder } : undefined;

/** Those of an exclusive holder stay on record until the next grant. */
type Terms = Partial<{ [Part in 'holder' | 'expiresAt' | 'acquiredAt' | 'beatAt']: PoolEntry[Part] | undefined }>;

function brokenView(
  key: string,
  { fence, entry, ended }: { fence: number; entry: Terms | undefined; ended: boolean },
): Broken {
  const { holder = null, expiresAt, acquiredAt, beatAt } = entry ?? {};
  return { key, broken: true, fence, holder, ended, ...holderTerms({ expiresAt, acquiredAt, heartbeatAt: beatAt }) };
}
