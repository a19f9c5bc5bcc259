import { integer, text } from '../aws/attributes.ts';
import type { Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { outcomeUnknown } from '../aws/send.ts';
import { isBelow, isUnchanged } from './conditions.ts';
import { type AliasWrite, writingTable } from './dependencies.ts';
import type { RecordKind } from './items.ts';
import { INDEX_REVISION, type Pointer, pointerNames, pointerOf, type Ref, samePointer } from './pointers.ts';
import { conflict, notFoundOrUnknown, type Published, published } from './results.ts';
import { updateConcern } from './update.ts';

/** The new value of a ref. A ref is never published as unborn. */
export interface RefValue {
  address: string;
  t: number;
}

export interface RefWrite extends AliasWrite {
  ref: Ref;
}

export const REF_CONCERNS = { commit: 'head', index: 'index' } as const;

/**
 * Raises a ref to a higher t with one conditional UpdateItem. If the t is not higher, the publish is stale. See
 * docs/protocols/nameservice.md#publish.
 * @param allowEqual whether a second UpdateItem may replace another address at an equal t (a reindex)
 * @throws HoldfastError NotFound, Throttled, Unavailable, OutcomeUnknown
 */
export async function publishRef(
  write: RefWrite,
  target: RefValue,
  { kind, allowEqual = false }: { kind: RecordKind; allowEqual?: boolean },
): Promise<Published<Pointer>> {
  const { alias, ref, dependencies } = write;
  for (let seen: Item | undefined; ; ) {
    const outcome = seen
      ? await replaceRef(write, target, { seen, kinds: [kind] })
      : await raiseRef(write, target, [kind]);
    if (outcome.won) return published(alias, target);
    const { old, unanswered } = outcome;
    if (!old) {
      const operation = writingTable(dependencies.table, write.request);
      throw notFoundOrUnknown(alias, kind, { found: outcome.kind, unanswered, operation });
    }
    const current = pointerOf(old, ref, dependencies.pointerStyle);
    if (samePointer(current, target)) return published(alias, current, { repeated: true });
    // A revision shows that an address at this t was replaced; a t below the target shows that the ref was set back. In
    // both cases the lost value may be the unanswered try's, which must not take effect twice.
    const mayHaveBeenUndone = current.t < target.t || (allowEqual && (old[INDEX_REVISION] || outcome.mayBeUndone));
    if (unanswered && mayHaveBeenUndone) throw outcomeUnknownAt(write, current);
    // The ref was set back or restored since it was read, so the publish can raise it after all.
    if (seen && current.t < target.t) {
      seen = undefined;
      continue;
    }
    // Stale, even if a try got no answer: whether or not that try landed, a newer value is there now.
    if (!allowEqual || current.t !== target.t) return published(alias, current, { outcome: 'stale' });
    seen = old;
  }
}

function outcomeUnknownAt({ dependencies, alias, ref, request }: RefWrite, actual: Pointer): Error {
  const verdict = conflict(alias, `${ref} ref`, actual);
  return outcomeUnknown(writingTable(dependencies.table, request), verdict, verdict.context);
}

export function raiseRef(write: RefWrite, target: RefValue, kinds: readonly RecordKind[]) {
  const names = pointerNames(write.ref, write.dependencies.pointerStyle);
  return setRef(write, target, { condition: isBelow(names, target.t), raises: true, kinds });
}

export function replaceRef(
  write: RefWrite,
  target: RefValue,
  { seen, kinds }: { seen: Item; kinds: readonly RecordKind[] },
) {
  const { ref, dependencies } = write;
  const { written, alsoRead, t } = pointerNames(ref, dependencies.pointerStyle);
  // Other clients do not write the revision, but they do write the time.
  const condition = isUnchanged(seen, [written, alsoRead, t, INDEX_REVISION, 'updated_at_ms']);
  const raises = target.t > pointerOf(seen, ref, dependencies.pointerStyle).t;
  return setRef(write, target, { condition, raises, kinds });
}

interface RefChange {
  condition: Condition;
  /** Whether the write raises t. */
  raises: boolean;
  kinds: readonly RecordKind[];
}

export function setRef(write: RefWrite, target: RefValue, { condition, raises, kinds }: RefChange) {
  const { dependencies, ref } = write;
  const { written, alsoRead, t } = pointerNames(ref, dependencies.pointerStyle);
  const remove = [alsoRead]; // a row must not name two addresses
  if (ref === 'index' && raises) remove.push(INDEX_REVISION);
  const revision = raises ? undefined : text(dependencies.ids.uuid());
  const update = {
    concern: REF_CONCERNS[ref],
    condition,
    set: `${written} = :address, ${t} = :t${revision ? `, ${INDEX_REVISION} = :revision` : ''}`,
    remove,
    values: { ':address': text(target.address), ':t': integer(target.t), ...(revision && { ':revision': revision }) },
    kinds,
  };
  return updateConcern(write, update);
}
