import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { type Broken, holderTerms } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { operatorOf } from '../line/ended.ts';
import { hasNoEndMark, isInUse, isOf } from './conditions.ts';
import { readPool } from './read.ts';
import { entryOf, type PoolEntry, unusable } from './record.ts';
import { endPermit, handOffToLine } from './release.ts';
import { permitLost } from './views.ts';
import { updatePool, type Written } from './write.ts';

interface BreakInput {
  key: string;
  fence: number;
  wait?: boolean | undefined;
}

/**
 * Ends the permit that an operator saw, named by its fence: one read, and one conditional UpdateItem (docs/protocols/pools.md#break). With `wait`
 * it ends when its holder releases it or its ttl ends. Only the fence stops what the holder still writes. A repeat gives the same answer, unless
 * eight other permits have ended since, or the holder has released it.
 * @throws HoldfastError NotFound (no permit has the fence), Throttled, Unavailable, OutcomeUnknown
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
        return brokenView(key, { fence, entry: seen, ended: true });
      }
      const entry = record.entries.find((one) => one.fence === fence);
      if (!entry && unanswered) throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key });
      if (!entry)
        throw new HoldfastError('NotFound', 'no permit of the key has the fence: read the key for its holders', {
          key,
        });
      seen = entry;
      const { name, id, ticket } = entry;
      const stays = wait && !isUnnotified && isHeld(dependencies, entry);
      if (stays && entry.isEnding) {
        isUnnotified = ticket !== undefined && (await endUnnotifiedTask(dependencies, { key, ticket }, call));
        if (!isUnnotified) return brokenView(key, { fence, entry, ended: false });
      }
      const ends = { key, proof: { name, id }, brokenFence: fence, seen: wait ? entry.version : undefined };
      const marks = stays && !entry.isEnding;
      const written = await (marks
        ? markEnding(dependencies, { key, entry }, call)
        : endPermit(dependencies, ends, call));
      record = written.record;
      unanswered ||= written.unanswered;
      if (!written.won || marks) continue;
      await handOffToLine(dependencies, { record, ticket }, call);
      return brokenView(key, { fence, entry, ended: true });
    }
  };
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
  const { name, id } = entry;
  const { clock, clockSkewMs, ids } = dependencies;
  const now = clock.now();
  const operator = operatorOf(call);
  const written = await updatePool(
    dependencies,
    {
      key,
      now,
      set: ['#h.s = :now', '#h.v = :version', ...(operator === undefined ? [] : ['#h.o = :operator'])],
      condition: all(isOf({ name, id }), hasNoEndMark(name), isInUse(name, now - clockSkewMs)),
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
    throw unusable(written.record, `h${name}`);
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

function brokenView(
  key: string,
  { fence, entry, ended }: { fence: number; entry: PoolEntry | undefined; ended: boolean },
): Broken {
  const { holder = null, expiresAt, acquiredAt, beatAt } = entry ?? {};
  return { key, broken: true, fence, holder, ended, ...holderTerms({ expiresAt, acquiredAt, heartbeatAt: beatAt }) };
}
