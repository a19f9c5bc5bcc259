import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import { outcomeUnknown, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { hasLeaseId, hasNoEndMark, isInUse } from '../record/conditions.ts';
import { ALONE } from '../record/identity.ts';
import { instantOrNull } from '../record/outcomes.ts';
import { entryOf, type HolderEntry, type KeyRecord, unusable } from '../record/record.ts';
import { leaseLost } from '../record/refusals.ts';
import { readKey, updateKey, type Written } from '../record/requests.ts';
import { takeoverAt } from '../record/room.ts';
import { keySummary } from '../record/views.ts';
import type { BreakInput } from './inputs.ts';
import { endGrant, handOffToLine } from './release.ts';
import { type Broken, operatorOf } from './types.ts';

/** Ends the grant of a key or, with the kind `once`, the run of a slot. The fence says which. @throws HoldfastError as `breakByFence` */
export function breakGrant(dependencies: LeaseDependencies) {
  const run = breakByFence(dependencies);
  return async ({ kind, ...input }: BreakInput, call: Call): Promise<Broken> => {
    if (kind === undefined) return run(input, call);
    const { onRow } = await import('../../once/row-key.ts');
    return onRow(run)(input, call);
  };
}

/**
 * Ends the grant that an operator saw, named by its fence: one read, and one conditional UpdateItem (docs/protocols/locks.md#break). With `wait`,
 * the grant ends when its holder releases it, or its ttl is over. Only the fence stops what the holder still writes. A repeat gives the same answer while
 * the record remembers the break, unless the holder has released the grant.
 * @throws HoldfastError Conflict (another has the key alone), NotFound (no grant has the fence), Throttled, Unavailable, OutcomeUnknown
 */
export const breakByFence = (dependencies: LeaseDependencies) => (input: BreakInput, call: Call) =>
  endByFence(dependencies, input, call);

async function endByFence(
  dependencies: LeaseDependencies,
  { key, fence, wait = false }: BreakInput,
  call: Call,
): Promise<Broken> {
  let record = await readKey(dependencies, key, call);
  let unanswered = false;
  let seen: HolderEntry | undefined;
  let mayWork = wait;
  for (;;) {
    if (isBroken(record, fence)) {
      if (unanswered) await handOffToLine(dependencies, { record }, call);
      return brokenView(key, { fence, entry: seen ?? lastUnder(record, fence), ended: true });
    }
    const entry = record.entries.find((one) => one.fence === fence);
    if (!entry) throw holderNotFound(dependencies, { record, unanswered });
    seen = entry;
    const stays = mayWork && isProtected(dependencies, entry);
    if (stays && entry.isEnding) {
      // If its task took the message that the grant is broken, no holder works under the grant.
      mayWork = !(await endUnnotifiedTask(dependencies, { key, entry }, call));
      if (mayWork) return brokenView(key, { fence, entry, ended: false });
    }
    const marks = stays && !entry.isEnding;
    const written = marks
      ? await markEnding(dependencies, { key, entry }, call)
      : await endAndHandOff(dependencies, { key, entry, seen: wait ? entry.version : undefined }, call);
    record = written.record;
    unanswered ||= written.unanswered;
    if (written.won && !marks) return brokenView(key, { fence, entry, ended: true });
  }
}

/** An operator has ended the grant with this fence, and the record remembers it. */
const isBroken = ({ ring }: KeyRecord, fence: number): boolean => ring.some(({ broken }) => broken === fence);

/**
 * A holder that has the key alone stands in the answer, so that the operator need not read the key.
 * @param unanswered whether a try of this call may have ended the grant
 */
function holderNotFound(
  { table, clock }: LeaseDependencies,
  { record, unanswered }: { record: KeyRecord; unanswered: boolean },
): HoldfastError {
  const { key, entries, thirdParty } = record;
  if (unanswered) return outcomeUnknown(writing(`table ${table}`), undefined, { key });
  if (!thirdParty && entries.every(({ path }) => path !== ALONE))
    return new HoldfastError('NotFound', 'no grant of the key has the fence: read the key for its holders', { key });
  const detail = thirdParty
    ? 'a third-party client has the key, whose lease has no fence: it ends by its expiry'
    : 'the grant of the key has another fence: read the key, and break the grant by its present fence';
  return new HoldfastError('Conflict', detail, { key, actual: keySummary(record, clock.now()) });
}

interface HolderOnRecord {
  key: string;
  entry: HolderEntry;
}

async function endAndHandOff(
  dependencies: LeaseDependencies,
  { key, entry, seen }: HolderOnRecord & { seen: string | undefined },
  call: Call,
): Promise<Written> {
  const written = await endGrant(dependencies, { key, proof: entry, brokenFence: entry.fence, seen }, call);
  const { won, record, isHandedOff } = written;
  if (won && !isHandedOff) await handOffToLine(dependencies, { record, ticket: entry.ticket }, call);
  return written;
}

/** Its caller has claimed the grant, and no other grant may replace it yet. */
const isProtected = ({ clock, clockSkewMs }: LeaseDependencies, entry: HolderEntry): boolean =>
  entry.claimTtlMs === undefined && takeoverAt(entry, clockSkewMs) > clock.now();

/** Gives the grant a new version, so that no call that has read the grant before extends it. */
async function markEnding(
  dependencies: LeaseDependencies,
  { key, entry }: HolderOnRecord,
  call: Call,
): Promise<Written> {
  const { name, path } = entry;
  const { clock, clockSkewMs, ids } = dependencies;
  const now = clock.now();
  const operator = operatorOf(call);
  const written = await updateKey(
    dependencies,
    {
      key,
      set: ['#h.s = :now', '#h.v = :version', ...(operator === undefined ? [] : ['#h.o = :operator'])],
      condition: all(hasLeaseId(entry), hasNoEndMark(path), isInUse(path, now - clockSkewMs)),
      values: {
        ...{ ':now': integer(now), ':version': text(ids.uuid()) },
        ...(operator !== undefined && { ':operator': text(operator) }),
      },
    },
    call,
  );
  const after = entryOf(written.record, name);
  // Another client has written a part of the entry with another type, and no call would ever mark it.
  if (!written.won && after?.version === entry.version && isProtected(dependencies, after))
    throw unusable(written.record, path);
  return written;
}

/** @returns whether the task of the grant took the message that the grant is broken */
async function endUnnotifiedTask(
  dependencies: LeaseDependencies,
  { key, entry: { ticket } }: HolderOnRecord,
  call: Call,
): Promise<boolean> {
  if (ticket === undefined) return false;
  const { endUnnotified } = await import('../line/notify.ts');
  const ended = { waiter: { key, ticket }, error: leaseLost(key, 'broken') };
  return (await endUnnotified(dependencies, ended, call)) === 'accepted';
}

/** The last exclusive holder, if its grant had this fence. */
const lastUnder = ({ last, lastTerms }: KeyRecord, fence: number): HolderTerms | undefined =>
  last?.fence === fence ? { ...lastTerms, holder: last.holder } : undefined;

/** What the operator receives about the holder. The record keeps it of the last exclusive holder, so a repeated break has it too. */
type HolderTerms = Partial<{
  [Part in 'holder' | 'expiresAt' | 'acquiredAt' | 'beatAt']: HolderEntry[Part] | undefined;
}>;

function brokenView(
  key: string,
  { fence, entry, ended }: { fence: number; entry: HolderTerms | undefined; ended: boolean },
): Broken {
  const { holder = null, expiresAt, acquiredAt, beatAt } = entry ?? {};
  const lastHeartbeatAt = instantOrNull(Number(beatAt) > Number(acquiredAt) ? beatAt : undefined);
  return { key, broken: true, fence, holder, ended, holderUntil: instantOrNull(expiresAt), lastHeartbeatAt };
}
