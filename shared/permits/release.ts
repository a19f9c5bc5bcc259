import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { Released, ReleaseInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { operatorOf } from '../line/ended.ts';
import { endAlone } from './alone.ts';
import { entryAt, isOf, isStill, isUnmarked } from './conditions.ts';
import { FREED, isHandedOffWithBefore } from './freed.ts';
import { ALONE, type Proof, proofOf, ticketOfLeaseId } from './identity.ts';
import { entryOf, type PoolRecord } from './record.ts';
import { remember } from './ring.ts';
import { lostReason } from './views.ts';
import { ttlAfter, updatePool, type Written } from './write.ts';

/**
 * Releases a permit with one conditional UpdateItem (docs/protocols/locks.md#release). A caller that does not hold it gets an answer and never an
 * error, because releases stand in `finally` blocks. A repeat of the caller's own release answers true, unless eight other permits have ended since.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function releasePermit(dependencies: LeaseDependencies) {
  return async ({ key, leaseId }: ReleaseInput, call: Call): Promise<Released> => {
    const proof = proofOf(leaseId);
    if (!proof) return { key, released: false, reason: 'unknown' };
    const quick =
      ticketOfLeaseId(leaseId) === undefined ? undefined : await releaseInLine(dependencies, { key, leaseId }, call);
    if (quick === 'handedOn') return { key, released: true };
    const { won, record, unanswered, isHandedOff } = await endGrant(dependencies, { key, proof }, call);
    const reason = entryOf(record, proof.name) ? 'unknown' : lostReason(record, proof);
    // An earlier try may have died before it gave the room to the line.
    const isLeft = won && (isHandedOff || isHandedOffWithBefore(record, dependencies.clock.now()));
    const isInDoubt = unanswered || quick === 'unanswered';
    if (!isLeft && (won || (isInDoubt && reason === 'released'))) await handOffToLine(dependencies, { record }, call);
    if (won) return { key, released: true };
    if (reason === 'released') return { key, released: true };
    // A try without an answer may have released the grant, and the record has forgotten it since.
    return { key, released: false, reason: reason === 'taken' && isInDoubt ? 'unknown' : reason };
  };
}

/** Others were in line when the key was granted. */
async function releaseInLine(dependencies: LeaseDependencies, input: ReleaseInput, call: Call) {
  const { releaseInLine: quick } = await import('./quick-release.ts');
  return quick(dependencies, input, call);
}

/**
 * Gives the room of a permit that has ended to the line (docs/protocols/queue.md#hand-off). Every call that ends a permit does so.
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
  /** With the ticket of the grant, if its row may still be there. */
  proof: Proof & { ticket?: string | undefined };
  /** The fence of the permit, if an operator breaks it. */
  brokenFence?: number;
  /** The version that the permit must have still. */
  seen?: string | undefined;
}

/** `isHandedOff`: the write has served the line. */
type Ended = Written & { isHandedOff?: boolean };

/** Another call may change an exclusive grant, or the mark, as often. */
const MOST_TRIES = 20;

/**
 * Ends a permit for its holder or for an operator. An exclusive grant passes to the next waiter in the same write, while the end of a permit of many frees its
 * room, which its caller then hands off.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endGrant(dependencies: LeaseDependencies, giving: GivingBack, call: Call): Promise<Ended> {
  const { proof, seen, brokenFence } = giving;
  let isInDoubt = false;
  for (let tries = 1; ; tries++) {
    const written = await endPermit(dependencies, giving, call);
    const { won, record } = written;
    isInDoubt ||= written.unanswered;
    const entry = record.entries.find(({ path, id }) => path === ALONE && id === proof.id);
    if (won || !entry || (seen !== undefined && entry.version !== seen) || tries === MOST_TRIES)
      return { ...written, unanswered: isInDoubt };
    if (record.mark === undefined) continue;
    const how = brokenFence === undefined ? 'released' : 'broken';
    const { handOff } = await import('./hand-off.ts');
    const ending = [{ entry, how, operator: brokenFence === undefined ? undefined : operatorOf(call) } as const];
    const { record: current, ended, unanswered } = await handOff(dependencies, { record, ending }, call);
    isInDoubt ||= unanswered === true;
    if (ended) return { won: true, record: current, unanswered: isInDoubt, isHandedOff: true };
  }
}

/** Ends a permit, and remembers its request. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
function endPermit(
  dependencies: LeaseDependencies,
  { key, proof, brokenFence, seen }: GivingBack,
  call: Call,
): Promise<Written> {
  const { name, path, ticket } = proof;
  const now = dependencies.clock.now();
  const isBroken = brokenFence !== undefined;
  const how = isBroken ? 'broken' : 'released';
  const ends = {
    key,
    entry: { name, fence: brokenFence },
    how,
    now,
    operator: isBroken ? operatorOf(call) : undefined,
  } as const;
  const { ttl, ...update } = path === ALONE ? { ...endAlone(dependencies, ends), ttl: undefined } : endShared(ends);
  const isItself = seen === undefined ? isOf(proof) : all(isOf(proof), isStill({ path, version: seen }));
  return updatePool(
    dependencies,
    {
      key,
      ...update,
      set: ['used = used - #h.w', ...update.set],
      condition: path === ALONE ? all(isItself, isUnmarked) : isItself,
      names: { ...entryAt(path), ...update.names },
      ...(ttl && { ttl }),
      // Without a mark and a row, nothing follows the end of an exclusive grant.
      ...(path === ALONE && ticket === undefined && { returns: 'NONE' as const }),
    },
    call,
  );
}

const endShared = ({
  entry: { name, fence },
  now,
}: {
  entry: { name: string; fence: number | undefined };
  now: number;
}) => {
  const { set, values } = remember(name, fence);
  return {
    set: ['turn_ms = :now - #h.a', ...FREED.set, ...set],
    remove: ['#h', '#f'],
    names: { '#f': `f${name}` },
    values: { ...values, ':now': integer(now) },
    ttl: ttlAfter(now),
  };
};
