import type { Call } from '../aws/call.ts';
import { all } from '../aws/conditions.ts';
import type { Alias } from './alias.ts';
import { isBelow, isBelowOrElsewhere, isThere } from './conditions.ts';
import type { NameserviceDependencies, Request } from './dependencies.ts';
import type { Kind } from './items.ts';
import { type Pointer, pointerNames, pointerOf, type Ref, samePointer } from './pointers.ts';
import { notFound, type Published, published } from './results.ts';
import { type Update, updateConcern } from './update.ts';
import { integer, text } from './values.ts';

/** A pointer that is published, never unborn. */
export interface Target {
  address: string;
  t: number;
}

/** Everything an operation on a ref works with. */
export interface RefWrite {
  dependencies: NameserviceDependencies;
  alias: Alias;
  ref: Ref;
  request: Request;
  call: Call;
}

const REF_CONCERNS = { commit: 'head', index: 'index' } as const;

/**
 * Raises a ref to a higher t with one conditional UpdateItem; a lower or equal one is stale and changes nothing.
 * @param allowEqual an equal t with another address is written too (a reindex)
 * @throws HoldfastError NotFound, Throttled, Unavailable, OutcomeUnknown
 */
export async function publishRef(
  write: RefWrite,
  target: Target,
  options: { kind: Kind; allowEqual?: boolean },
): Promise<Published<Pointer>> {
  const outcome = await raise(write, target, { kinds: [options.kind], allowEqual: options.allowEqual ?? false });
  if (outcome.won) return published(write.alias, target);
  if (!outcome.old) throw notFound(write.alias, options.kind, outcome.kind);
  const current = pointerOf(outcome.old, write.ref, write.dependencies.pointerStyle);
  // Stale is right also where a try got no answer: whether or not ours stood there, something newer does now.
  return published(write.alias, current, samePointer(current, target) ? { repeated: true } : { outcome: 'stale' });
}

export function raise(write: RefWrite, target: Target, options: { kinds: readonly Kind[]; allowEqual: boolean }) {
  const names = pointerNames(write.ref, write.dependencies.pointerStyle);
  const guard = options.allowEqual
    ? { condition: isBelowOrElsewhere(names), values: { ':string': text('S') } }
    : { condition: isBelow(names), values: {} };
  return setRef(write, target, { ...guard, kinds: options.kinds });
}

/** What must hold for a ref to be set. */
type Guard = Pick<Update, 'condition' | 'values' | 'kinds'>;

export function setRef({ dependencies, alias, ref, request, call }: RefWrite, target: Target, guard: Guard) {
  const { written, alsoRead, t } = pointerNames(ref, dependencies.pointerStyle);
  const update: Update = {
    concern: REF_CONCERNS[ref],
    condition: all(isThere, guard.condition),
    set: `${written} = :address, ${t} = :t`,
    remove: alsoRead, // a row must not tell two addresses
    values: { ...guard.values, ':address': text(target.address), ':t': integer(target.t) },
    kinds: guard.kinds,
  };
  return updateConcern(dependencies, alias, update, request, call);
}
