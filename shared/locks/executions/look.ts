import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { ASK_EVERY_MS, type LeaseDependencies } from '../dependencies.ts';
import { type HolderEntry, isBound, type KeyRecord } from '../record/record.ts';
import { readKey, updateKey } from '../record/requests.ts';
import { endGrantsOf } from './ended.ts';
import {
  canAsk,
  type DueKey,
  isDue,
  type Looked,
  logFailedLook,
  MAX_QUESTIONS_OF_LOOK,
  NOTHING_ENDED,
} from './questions.ts';

interface LookOptions {
  record: KeyRecord;
  /** About how many executions the call may ask. */
  maxQuestions?: number;
  /** Whether to ask about grants with a ttl too, if others wait. */
  withTtl?: boolean;
}

/**
 * Asks about the executions that hold a key, and ends the grants of executions that have ended
 * (docs/protocols/bound.md#the-look). Does nothing if a call has asked in the last 30 seconds. One question serves all
 * grants of an execution.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function lookAtGrants(
  dependencies: LeaseDependencies,
  { record, maxQuestions = MAX_QUESTIONS_OF_LOOK, withTtl = false }: LookOptions,
  call: Call,
): Promise<Looked> {
  const now = dependencies.clock.now();
  if (!isDue(record, now)) return NOTHING_ENDED;
  const executionsToAsk: ExecutionToAsk[] = [];
  for (const candidate of executionsInOrder(record, { withTtl, now })) {
    if (executionsToAsk.length === maxQuestions) break;
    if (await canAsk(dependencies, candidate.execution)) executionsToAsk.push(candidate);
  }
  const last = executionsToAsk.at(-1);
  if (!last) return NOTHING_ENDED;
  let seen = await noteLook(dependencies, { record, now, to: last.fence }, call);
  if (!seen) return NOTHING_ENDED;
  const looked = { ...NOTHING_ENDED };
  for (const { execution } of executionsToAsk) {
    const { freed, granted } = await endGrantsOf(dependencies, { key: record.key, execution, seen }, call);
    looked.ended += freed;
    looked.granted += granted;
    // The write has changed the record, so the next execution needs a fresh read.
    if (freed > 0) seen = undefined;
  }
  return looked;
}

/** An execution that holds grants, and the lowest fence of these grants. */
interface ExecutionToAsk {
  execution: string;
  fence: number;
}

/**
 * The executions about which a look may ask, by the fences of their grants: first those after the last execution that
 * was asked about, and then from the beginning, so that each has its turn before any has a second one.
 */
function executionsInOrder(
  { entries, mark, lookedToFence = 0 }: KeyRecord,
  { withTtl, now }: { withTtl: boolean; now: number },
): ExecutionToAsk[] {
  const isMarked = withTtl && mark !== undefined;
  const lowest = new Map<string, number>();
  for (const entry of entries.toSorted((a, b) => a.fence - b.fence))
    if (isWorthAsking(entry, { isMarked, now }) && !lowest.has(entry.execution))
      lowest.set(entry.execution, entry.fence);
  const turns = [...lowest].map(([execution, fence]) => ({ execution, fence }));
  return [
    ...turns.filter(({ fence }) => fence > lookedToFence),
    ...turns.filter(({ fence }) => fence <= lookedToFence),
  ];
}

/**
 * A grant with a ttl is worth a question only if it is older than this: usually the event of the end arrives within
 * seconds.
 */
const ASK_ABOUT_TTL_AFTER_MS = 60_000;

/**
 * Whether to ask about the execution of a grant. A grant with a ttl is worth a question only if others wait for the
 * key, which the mark shows. A bound grant is worth it even without a mark, because a task that was not notified may
 * have the only ticket. A grant that is not claimed yet ends with the grant window.
 */
const isWorthAsking = (
  entry: HolderEntry,
  { isMarked, now }: { isMarked: boolean; now: number },
): entry is HolderEntry & { execution: string } =>
  entry.execution !== undefined &&
  entry.claimTtlMs === undefined &&
  (isBound(entry) || (isMarked && entry.acquiredAt + ASK_ABOUT_TTL_AFTER_MS <= now));

/**
 * Notes the look in the record, so that no other call asks for a while.
 * @returns the record after the write, or undefined if another call asks now
 */
async function noteLook(
  dependencies: LeaseDependencies,
  { record: { key }, now, to }: { record: KeyRecord; now: number; to: number },
  call: Call,
): Promise<KeyRecord | undefined> {
  const update = {
    key,
    set: ['looked_at = :now', 'looked_to = :to'],
    condition: { expression: 'attribute_exists(used) AND (attribute_not_exists(looked_at) OR looked_at < :due)' },
    values: { ':now': integer(now), ':to': integer(to), ':due': integer(now - ASK_EVERY_MS) },
  };
  const { won, record } = await updateKey(dependencies, update, call);
  return won ? record : undefined;
}

/**
 * Looks at the holders of a key for a call that is refused. A failure of the look is logged, and does not fail the
 * call.
 * @returns whether a grant has ended, so that another try is worth it
 */
export async function lookForRefusedCall(
  dependencies: LeaseDependencies,
  record: KeyRecord,
  call: Call,
): Promise<boolean> {
  const { ended } = await lookAtGrants(dependencies, { record }, call).catch(logFailedLook);
  return ended > 0;
}

/** Reads a key, and looks at its holders, for the schedule. */
export const lookAtKey = async (
  dependencies: LeaseDependencies,
  { key, ...looking }: Omit<LookOptions, 'record'> & { key: string },
  call: Call,
): Promise<Looked> => lookAtGrants(dependencies, { ...looking, record: await readKey(dependencies, key, call) }, call);

/**
 * @returns the key, if the schedule should ask about the executions of its holders.
 * @param withTtl whether grants with a ttl count too
 */
export function dueKeyOf(record: KeyRecord, { withTtl, now }: { withTtl: boolean; now: number }): DueKey | undefined {
  const questionCount = Math.min(MAX_QUESTIONS_OF_LOOK, executionsInOrder(record, { withTtl, now }).length);
  return questionCount > 0 && isDue(record, now)
    ? { key: record.key, lookedAt: record.lookedAt ?? 0, questionCount }
    : undefined;
}
