import type { Call } from '../../aws/call.ts';
import { lineOf } from '../../line/waiters.ts';
import { isCancelled, leaveLine } from '../../line/waiting-calls.ts';
import { extend } from '../deliver.ts';
import type { PoolDependencies } from '../dependencies.ts';
import type { PoolEntry, PoolRecord } from '../record.ts';
import { giveBack, giveToLine } from '../release.ts';
import type { Granted, PermitRequest } from '../request.ts';
import { permitLost } from '../views.ts';
import { leaveForOtherWeight } from './leave.ts';

interface Own {
  request: PermitRequest;
  standing: PoolRecord;
  /** The request's own entry, as it was last seen. */
  own: PoolEntry;
  /** The place of this very call, where it has one. */
  ticket?: string | undefined;
}

/**
 * Answers a request with the permit that it has from the line. Claims it if no call has (docs/protocols/pools.md#claim). Otherwise
 * another call may be about to notify a task of it, and would hand it on if that task is gone. A new version prevents that.
 * @returns undefined if the permit has changed or ended meanwhile
 * @throws HoldfastError InvalidRequest (another weight), LeaseLost (`cancelled`), Throttled, Unavailable, OutcomeUnknown
 */
export async function repeatFromLine(
  dependencies: PoolDependencies,
  { request, own, ticket }: Own,
  call: Call,
): Promise<Granted | undefined> {
  const { key } = request;
  const { ticket: granted } = own;
  await leaveForOtherWeight(dependencies, { request, own, ticket }, call);
  const isClaim = own.claimTtlMs !== undefined;
  if (!isClaim && own.expiresAt <= dependencies.clock.now()) return undefined;
  const isOfAnotherPlace = ticket !== undefined && ticket !== granted;
  if (isOfAnotherPlace && (await isCancelled(dependencies, { key: lineOf(key), ticket }, call)))
    throw permitLost(key, 'cancelled');
  const { won, standing, entry } = await extend(
    dependencies,
    { key, entry: own, claimTtlMs: isClaim ? request.ttlMs : undefined },
    call,
  );
  if (!won || !entry) return undefined;
  for (const one of new Set([granted, ticket])) {
    if (one === undefined) continue;
    const { cancelled } = await leaveLine(dependencies, { key: lineOf(key), ticket: one }, call);
    if (!cancelled || !isClaim || one !== granted) continue;
    await giveUp(dependencies, { key, entry }, call);
    throw permitLost(key, 'cancelled');
  }
  return { won: true, standing, repeated: !isClaim, ended: [], previous: own.previous };
}

/** Ends a permit that its caller will not use. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export async function giveUp(
  dependencies: PoolDependencies,
  { key, entry: { name, id } }: { key: string; entry: PoolEntry },
  call: Call,
): Promise<void> {
  const { standing } = await giveBack(dependencies, { key, proof: { name, id } }, call);
  // Also where it was lost: a try without an answer may have ended the permit.
  await giveToLine(dependencies, { record: standing }, call);
}
