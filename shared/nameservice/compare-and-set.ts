import { all } from '../aws/condition.ts';
import { HoldfastError } from '../errors.ts';
import { readRows } from './alias-rows.ts';
import { isAt, isFirstAtItsT } from './conditions.ts';
import { putNew, transactIdempotently } from './create.ts';
import { writingTable } from './dependencies.ts';
import { ledgerItems, RECORD_KINDS, type RecordKind } from './items.ts';
import { type Pointer, pointerNames, pointerOf, type Ref, samePointer } from './pointers.ts';
import { type ItemsByConcern, kindOf } from './record.ts';
import { type RefValue, type RefWrite, raiseRef, replaceRef, setRef } from './refs.ts';
import { alreadyExists, conflict, conflictOrUnknown, type Published, published } from './results.ts';

/** The kinds of records that have each ref. A graph source has an index, but does not have commits. */
const KINDS_WITH: Record<Ref, readonly RecordKind[]> = { commit: ['ledger'], index: RECORD_KINDS };

/**
 * Sets a ref if it is as expected. Usually this takes one conditional UpdateItem. It takes a second one if the address
 * of the index was replaced at this t before. A commit must raise t; an index may keep it. With `expected: null` the
 * alias must not exist, and the call creates a ledger with the ref. See docs/protocols/nameservice.md#compare-and-set.
 * @throws HoldfastError Conflict (`actual` is the ref, null if there is none), AlreadyExists (a graph source has the
 *   alias), Throttled, Unavailable, OutcomeUnknown
 */
export async function compareAndSetRef(
  write: RefWrite,
  expected: Pointer | null,
  next: RefValue,
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
    // Other callers have replaced the address at this t, and now the ref is as expected again. The condition then needs
    // the revision in the item.
    const isAsExpected = actual !== null && samePointer(actual, expected);
    if (!old || !isAsExpected || unanswered) return repeatOrLost(write, { actual, unanswered }, next);
    outcome = await replaceRef(write, next, { seen: old, kinds });
  }
  return published(alias, next);
}

async function createWithRef(write: RefWrite, next: RefValue): Promise<Published<Pointer>> {
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
  // A Conflict whose `actual` is null would equal `expected`: the caller could not see why it lost, and would lose
  // again.
  if (!actual) throw alreadyExists(alias, kind);
  // All tries had one token. If one of them had landed, DynamoDB would have said so, so none has.
  return repeatOrLost(write, { actual, unanswered: false }, next);
}

function repeatOrLost(
  { alias, ref, request, dependencies }: RefWrite,
  { actual, unanswered }: { actual: Pointer | null; unanswered: boolean },
  next: RefValue,
): Published<Pointer> {
  if (actual && samePointer(actual, next)) return published(alias, actual, { repeated: true });
  const operation = writingTable(dependencies.table, request);
  throw conflictOrUnknown({ alias, what: `${ref} ref`, actual, unanswered }, operation);
}

/**
 * @returns null if there is no such ref. A ref whose item is missing counts as unborn, because the next write restores
 *   its item without an address
 */
function actualIn({ ref, dependencies }: RefWrite, rows: ItemsByConcern): Pointer | null {
  const item = ref === 'commit' ? rows.head : rows.index;
  const kind = kindOf(rows.meta);
  const exists = item !== undefined || (kind !== undefined && KINDS_WITH[ref].includes(kind));
  return exists ? pointerOf(item, ref, dependencies.pointerStyle) : null;
}

/**
 * Raises the commit head to a higher t, or creates the ledger. The write on an existing ledger has a single condition,
 * so other writers do not cause retries. The call tries again only if another caller creates the ledger at the same
 * time.
 * @param maxRetries how often to try again
 * @throws HoldfastError Conflict (`actual` is at or beyond t), AlreadyExists, Throttled, Unavailable, OutcomeUnknown
 */
export async function fastForwardCommit(
  write: RefWrite,
  target: RefValue,
  maxRetries: number,
): Promise<Published<Pointer>> {
  const { alias, dependencies } = write;
  for (let retries = 0; ; retries++) {
    const outcome = await raiseRef(write, target, ['ledger']);
    if (outcome.won) return published(alias, target);
    if (outcome.old) {
      const actual = pointerOf(outcome.old, 'commit', dependencies.pointerStyle);
      return repeatOrLost(write, { actual, unanswered: outcome.unanswered }, target);
    }
    // The unanswered try may have raised a head that an operator has purged since. Creating the ledger now would let
    // the write take effect twice.
    if (outcome.unanswered) return repeatOrLost(write, { actual: null, unanswered: true }, target);
    try {
      return await createWithRef(write, target);
    } catch (error) {
      if (retries >= maxRetries || !isConflict(error)) throw error;
    }
  }
}

const isConflict = (error: unknown) => error instanceof HoldfastError && error.code === 'Conflict';
