import { all } from '../aws/condition.ts';
import { HoldfastError } from '../errors.ts';
import { readRows } from './alias-rows.ts';
import { isAt, isFirstAtItsT } from './conditions.ts';
import { putNew, transactIdempotently } from './create.ts';
import { writingTable } from './dependencies.ts';
import { ledgerItems, RECORD_KINDS, type RecordKind } from './items.ts';
import { type Pointer, pointerNames, pointerOf, type Ref, samePointer } from './pointers.ts';
import { type ItemsByConcern, kindOf } from './record.ts';
import { type RefWrite, raise, replace, setRef, type Target } from './refs.ts';
import { alreadyExists, conflict, lost, type Published, published } from './results.ts';

/** Graph sources have an index and no commits. */
const KINDS_WITH: Record<Ref, readonly RecordKind[]> = { commit: ['ledger'], index: RECORD_KINDS };

/**
 * Sets a ref if it is as expected, with one conditional UpdateItem, or with two if an index was replaced at its t before.
 * A commit must raise t; an index may keep it. With `expected: null` the alias must not exist: the call creates it as a
 * ledger with the ref. See docs/protocols/nameservice.md#compare-and-set.
 * @throws HoldfastError Conflict (`actual` is the ref, null if there is none), AlreadyExists (a graph source has the
 *   alias), Throttled, Unavailable, OutcomeUnknown
 */
export async function compareAndSetRef(
  write: RefWrite,
  expected: Pointer | null,
  next: Target,
): Promise<Published<Pointer>> {
  const { alias, ref, dependencies, call } = write;
  if (!expected) return createWithRef(write, next);
  if (ref === 'commit' ? next.t <= expected.t : next.t < expected.t)
    throw conflict(alias, `${ref} ref`, actualIn(write, await readRows(dependencies, alias, call)));

  const { pointerStyle } = dependencies;
  const isExpected = isAt(pointerNames(ref, pointerStyle), expected);
  const condition = ref === 'index' ? all(isExpected, isFirstAtItsT) : isExpected;
  const kinds = KINDS_WITH[ref];
  let outcome = await setRef(write, next, { condition, raises: next.t > expected.t, kinds });
  while (!outcome.won) {
    const { old, unanswered } = outcome;
    const actual = old ? pointerOf(old, ref, pointerStyle) : null;
    // Others have replaced the address at this t, and it is as expected again. The item names the revision.
    const isAsExpected = actual !== null && samePointer(actual, expected);
    if (!old || !isAsExpected || unanswered) return repeatOrLost(write, { actual, unanswered }, next);
    outcome = await replace(write, next, { seen: old, kinds });
  }
  return published(alias, next);
}

async function createWithRef(write: RefWrite, next: Target): Promise<Published<Pointer>> {
  const { alias, ref, dependencies } = write;
  const { table, pointerStyle } = dependencies;
  const outcome = await transactIdempotently(write, 'create', (stamp) =>
    putNew(table, ledgerItems(alias, { now: stamp.now, style: pointerStyle }, { [ref]: next }), stamp),
  );
  if (outcome.won) return published(alias, next, { created: true });

  const { rows } = outcome;
  const kind = kindOf(rows.meta);
  const actual = actualIn(write, rows);
  if (outcome.repeated && kind === 'ledger' && actual) return published(alias, actual, { repeated: true });
  // An actual of null would equal what was expected: the caller could never win, and could not see why.
  if (!actual) throw alreadyExists(alias, kind);
  // DynamoDB knows the tries of a transaction by their token, so none of them can have landed.
  return repeatOrLost(write, { actual, unanswered: false }, next);
}

function repeatOrLost(
  { alias, ref, request, dependencies }: RefWrite,
  { actual, unanswered }: { actual: Pointer | null; unanswered: boolean },
  next: Target,
): Published<Pointer> {
  if (actual && samePointer(actual, next)) return published(alias, actual, { repeated: true });
  const operation = writingTable(dependencies.table, request);
  throw lost({ alias, what: `${ref} ref`, actual, unanswered }, operation);
}

/** Null if there is no such ref. A ref whose item is missing is unborn, because the next write restores it. */
function actualIn({ ref, dependencies }: RefWrite, rows: ItemsByConcern): Pointer | null {
  const item = ref === 'commit' ? rows.head : rows.index;
  const kind = kindOf(rows.meta);
  const exists = item !== undefined || (kind !== undefined && KINDS_WITH[ref].includes(kind));
  return exists ? pointerOf(item, ref, dependencies.pointerStyle) : null;
}

/**
 * Raises the commit head to a higher t, and creates the ledger if there is none. One condition decides, so other writers
 * cause no retries. Only a lost race to create the ledger leads to another try.
 * @param maxRetries how often to try again
 * @throws HoldfastError Conflict (`actual` is at or beyond t), AlreadyExists, Throttled, Unavailable, OutcomeUnknown
 */
export async function fastForwardCommit(
  write: RefWrite,
  target: Target,
  maxRetries: number,
): Promise<Published<Pointer>> {
  const { alias, dependencies } = write;
  for (let retries = 0; ; retries++) {
    const outcome = await raise(write, target, ['ledger']);
    if (outcome.won) return published(alias, target);
    if (outcome.old) {
      const actual = pointerOf(outcome.old, 'commit', dependencies.pointerStyle);
      return repeatOrLost(write, { actual, unanswered: outcome.unanswered }, target);
    }
    // The try without an answer may have raised a head that was removed since, and must not take effect twice.
    if (outcome.unanswered) return repeatOrLost(write, { actual: null, unanswered: true }, target);
    try {
      return await createWithRef(write, target);
    } catch (error) {
      if (retries >= maxRetries || !isConflict(error)) throw error;
    }
  }
}

const isConflict = (error: unknown) => error instanceof HoldfastError && error.code === 'Conflict';
