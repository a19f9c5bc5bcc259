import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { Released, ReleaseInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { attributesOf, isOf, isStill } from './conditions.ts';
import { FREED, isHandedOffWithBefore } from './freed.ts';
import { type Proof, proofOf } from './identity.ts';
import { entryOf, type PoolRecord } from './record.ts';
import { remember } from './ring.ts';
import { lostReason } from './views.ts';
import { updatePool, type Written } from './write.ts';

/**
 * Releases a permit with one conditional UpdateItem (docs/protocols/pools.md#release). A caller that does not hold it gets an answer and never an
 * error, because releases stand in `finally` blocks. A repeat of the caller's own release answers true, unless eight other permits have ended since.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function releasePermit(dependencies: LeaseDependencies) {
  return async ({ key, leaseId }: ReleaseInput, call: Call): Promise<Released> => {
    const proof = proofOf(leaseId);
    if (!proof) return { key, released: false, reason: 'unknown' };
    const { won, record, unanswered } = await endPermit(dependencies, { key, proof }, call);
    const reason = entryOf(record, proof.name) ? 'unknown' : lostReason(record, proof.name);
    // An earlier try may have died before it gave the room to the line.
    const isLeft = won && isHandedOffWithBefore(record, dependencies.clock.now());
    if (!isLeft && (won || (unanswered && reason === 'released'))) await handOffToLine(dependencies, { record }, call);
    if (won) return { key, released: true };
    return reason === 'released' ? { key, released: true } : { key, released: false, reason };
  };
}

/**
 * Gives the room of a permit that has ended to the line (docs/protocols/pools.md#hand-off). Every call that ends a permit does so.
 * @param ticket of the permit, if its task may not have been notified yet
 */
export async function handOffToLine(
  dependencies: LeaseDependencies,
  { record, ticket }: { record: PoolRecord; ticket?: string | undefined },
  call: Call,
): Promise<void> {
  if (record.mark === undefined && ticket === undefined) return;
  const { handOffAfter } = await import('./hand-off.ts');
  await handOffAfter(dependencies, record, call);
}

interface GivingBack {
  key: string;
  proof: Proof;
  /** The fence of the permit, if an operator breaks it. */
  brokenFence?: number;
  /** The version that the permit must have still. */
  seen?: string | undefined;
}

/** Ends a permit, and remembers its request. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export function endPermit(
  dependencies: LeaseDependencies,
  { key, proof, brokenFence, seen }: GivingBack,
  call: Call,
): Promise<Written> {
  const { name } = proof;
  const { set, names, values } = remember(name, brokenFence);
  const now = dependencies.clock.now();
  return updatePool(
    dependencies,
    {
      key,
      now,
      set: ['#used = #used - #h.w', '#turn_ms = :now - #h.a', ...FREED.set, ...set],
      remove: ['#h', '#f'],
      condition: seen === undefined ? isOf(proof) : all(isOf(proof), isStill({ name, version: seen })),
      names: { ...attributesOf(name), ...names, '#used': 'used', '#turn_ms': 'turn_ms', ...FREED.names },
      values: { ...values, ':now': integer(now) },
    },
    call,
  );
}
