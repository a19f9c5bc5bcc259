import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import { outcomeUnknown, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { hasLeaseId, isInUse, isNotEnding } from '../record/conditions.ts';
import { EXCLUSIVE_PATH } from '../record/identity.ts';
import { instantOrNull } from '../record/outcomes.ts';
import { entryOf, type HolderEntry, type KeyRecord, unusable } from '../record/record.ts';
import { leaseLost } from '../record/refusals.ts';
import { readKey, updateKey, type Written } from '../record/requests.ts';
import { takeOverAt } from '../record/room.ts';
import { keySummary } from '../record/views.ts';
import type { BreakInput } from './inputs.ts';
import { endGrant, handOffToLine } from './release.ts';
import { type Broken, operatorOf } from './types.ts';

/**
 * Breaks a grant of a key or, with the kind `once`, the run of a slot. The fence names the grant.
 * @throws HoldfastError as `breakByFence`
 */
export function breakGrant(dependencies: LeaseDependencies) {
  const run = breakByFence(dependencies);
  return async ({ kind, ...input }: BreakInput, call: Call): Promise<Broken> => {
    if (kind === undefined) return run(input, call);
    const { onRow } = await import('../../once/row-key.ts');
    return onRow(run)(input, call);
  };
}

/**
 * Ends the grant with a fence, for an operator: one read, and one conditional UpdateItem
 * (docs/protocols/locks.md#break). With `wait`, the grant ends when its holder releases it or the ttl is over. A break
 * does not stop the holder itself: only stores that check the fence refuse what it still writes. A repeat gives the
 * same answer while the record remembers the break, unless the holder has released the grant.
 * @throws HoldfastError Conflict (another holder has the key alone), NotFound (no grant has the
 * fence), Throttled, Unavailable, OutcomeUnknown
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
  let found: HolderEntry | undefined;
  /** Whether the holder may still work under the grant, and the operator lets it. */
  let mayWork = wait;
  for (;;) {
    if (isBroken(record, fence)) {
      if (unanswered) await handOffToLine(dependencies, { record }, call);
      return brokenView(key, { fence, entry: found ?? lastUnder(record, fence), ended: true });
    }
    const entry = record.entries.find((held) => held.fence === fence);
    if (!entry) throw holderNotFound(dependencies, { record, unanswered });
    found = entry;
    const stays = mayWork && isProtected(dependencies, entry);
    if (stays && entry.isEnding) {
      // If the task accepts the message that the grant is broken, it never received the grant, so no holder works under
      // it.
      mayWork = !(await endUnnotifiedTask(dependencies, { key, entry }, call));
      if (mayWork) return brokenView(key, { fence, entry, ended: false });
    }
    const onlyAsksToStop = stays && !entry.isEnding;
    const written = onlyAsksToStop
      ? await askToStop(dependencies, { key, entry }, call)
      : await endAndHandOff(dependencies, { key, entry, seenVersion: wait ? entry.version : undefined }, call);
    record = written.record;
    unanswered ||= written.unanswered;
    if (written.won && !onlyAsksToStop) return brokenView(key, { fence, entry, ended: true });
  }
}

/** Whether an operator has already ended the grant with this fence, as far as the record remembers. */
const isBroken = ({ ring }: KeyRecord, fence: number): boolean => ring.some(({ broken }) => broken === fence);

/**
 * The error for a fence that no grant has. It names a holder that has the key alone, so that the operator need not read
 * the key.
 * @param unanswered whether a try of this call may have ended the grant
 */
function holderNotFound(
  { table, clock }: LeaseDependencies,
  { record, unanswered }: { record: KeyRecord; unanswered: boolean },
): HoldfastError {
  const { key, entries, thirdParty } = record;
  if (unanswered) return outcomeUnknown(writing(`table ${table}`), undefined, { key });
  if (!thirdParty && entries.every(({ path }) => path !== EXCLUSIVE_PATH))
    return new HoldfastError('NotFound', 'no grant of the key has the fence: read the key for its holders', { key });
  const detail = thirdParty
    ? 'a third-party client has the key: its lease has no fence, and ends when it expires'
    : 'the grant of the key has another fence: read the key, and break the grant with its current fence';
  return new HoldfastError('Conflict', detail, { key, actual: keySummary(record, clock.now()) });
}

interface HolderOnRecord {
  key: string;
  entry: HolderEntry;
}

async function endAndHandOff(
  dependencies: LeaseDependencies,
  { key, entry, seenVersion }: HolderOnRecord & { seenVersion: string | undefined },
  call: Call,
): Promise<Written> {
  const written = await endGrant(dependencies, { key, proof: entry, brokenFence: entry.fence, seenVersion }, call);
  const { won, record, hasServedLine } = written;
  if (won && !hasServedLine) await handOffToLine(dependencies, { record, ticket: entry.ticket }, call);
  return written;
}

/** Whether the holder has claimed the grant, and no other grant may replace it yet. */
const isProtected = ({ clock, clockSkewMs }: LeaseDependencies, entry: HolderEntry): boolean =>
  entry.claimTtlMs === undefined && takeOverAt(entry, clockSkewMs) > clock.now();

/** Marks a grant as ending. The new version keeps every call that read the grant before from extending it. */
async function askToStop(
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
      condition: all(hasLeaseId(entry), isNotEnding(path), isInUse(path, now - clockSkewMs)),
      values: {
        ...{ ':now': integer(now), ':version': text(ids.uuid()) },
        ...(operator !== undefined && { ':operator': text(operator) }),
      },
    },
    call,
  );
  const current = entryOf(written.record, name);
  // The entry is unchanged, and still the write lost: another client has written a part of it with a wrong type, so
  // every try would fail.
  if (!written.won && current?.version === entry.version && isProtected(dependencies, current))
    throw unusable(written.record, path);
  return written;
}

/**
 * Sends the task of the grant the error that the grant is broken.
 * @returns whether the task accepted the error, as only an unnotified task does
 */
async function endUnnotifiedTask(
  dependencies: LeaseDependencies,
  { key, entry: { ticket } }: HolderOnRecord,
  call: Call,
): Promise<boolean> {
  if (ticket === undefined) return false;
  const { failUnnotifiedTask } = await import('../line/notify.ts');
  const ended = { rowKey: { key, ticket }, error: leaseLost(key, 'broken') };
  return (await failUnnotifiedTask(dependencies, ended, call)) === 'accepted';
}

/** The terms of the last exclusive holder, if its grant had this fence. */
const lastUnder = ({ last, lastTerms }: KeyRecord, fence: number): HolderTerms | undefined =>
  last?.fence === fence ? { ...lastTerms, holder: last.holder } : undefined;

/**
 * What the operator receives about the holder. The record keeps these terms of the last exclusive
 * holder, so a repeated break returns them too.
 */
type HolderTerms = Partial<{
  [Part in 'holder' | 'expiresAt' | 'acquiredAt' | 'heartbeatAt']: HolderEntry[Part] | undefined;
}>;

function brokenView(
  key: string,
  { fence, entry, ended }: { fence: number; entry: HolderTerms | undefined; ended: boolean },
): Broken {
  const { holder = null, expiresAt, acquiredAt, heartbeatAt } = entry ?? {};
  const lastHeartbeatAt = instantOrNull(Number(heartbeatAt) > Number(acquiredAt) ? heartbeatAt : undefined);
  return { key, broken: true, fence, holder, ended, holderUntil: instantOrNull(expiresAt), lastHeartbeatAt };
}
