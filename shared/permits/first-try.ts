import type { Call } from '../aws/call.ts';
import { MAX_DUPLICATE_CONFLICTS } from '../line/acquisition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isHandedOff } from './freed.ts';
import { endPermits, grantPermits, latestRelease, MOST_ENDED } from './grants.ts';
import { ownOf } from './marks.ts';
import { type Granted, type Outcome, type PermitRequest, refuseOtherWeight } from './permit-request.ts';
import { ending, entryOf, type PoolEntry, type PoolRecord, unusable } from './record.ts';
import { toEnd } from './room.ts';
import { permitLost } from './views.ts';
import type { Written } from './write.ts';

/** A take-over is tried again only if one of the expired holders has extended its permit, or has gone, since it was seen. */
const MAX_TRIES = 5;

/**
 * Acquires without waiting (docs/protocols/pools.md#acquire). One write, or two if the key was a lease, or if the request needs the places of
 * expired holders. While the mark is there, gives what is free to the line.
 * @throws OtherKind; HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function tryOnce(dependencies: LeaseDependencies, request: PermitRequest, call: Call): Promise<Outcome> {
  const { clock, clockSkewMs } = dependencies;
  let ended: PoolEntry[] = [];
  let seen: PoolRecord | undefined;
  let { over } = request;
  let lineSeenEmpty = false;
  let meetings = 1;
  const mayMeetAgain = () => meetings++ < MAX_DUPLICATE_CONFLICTS;
  for (let tries = 1; ; ) {
    const triedAt = clock.now();
    const isFull = ended.length <= MOST_ENDED;
    const isSecond = seen !== undefined && over === undefined;
    const latest = latestRelease(dependencies, { seen, now: triedAt });
    const { won, record } = await write(
      dependencies,
      { request: { ...request, over }, ended, seen, now: triedAt },
      call,
    );
    [seen, over] = [record, undefined];
    const own = entryOf(record, request.name);
    if (isFull && won && own) return { won: true, record, repeated: false, ended };
    refuseEnded(record, request);
    if (own && own.expiresAt > triedAt) refuseOtherWeight(request, own);
    // If the permit names an execution, each repeat records the time of its answer.
    if (own && (isFromLine(own) || own.execution !== undefined)) {
      const repeated = await repeat(dependencies, { request, record }, call);
      if (repeated) return repeated;
      // A duplicate call has changed it. The next write meets it as that call has left it.
      if (ownOf(record, request.name, clock.now()) && mayMeetAgain()) {
        ended = [];
        continue;
      }
    } else if (own && own.expiresAt > triedAt) return { won: true, record, repeated: true, ended: [] };
    const next = toEnd(record, request, { now: clock.now(), clockSkewMs });
    if (record.mark !== undefined) {
      const outcome: PoolRecord | 'empty' = lineSeenEmpty
        ? record
        : await handOffIfNext(
            dependencies,
            { record, isFree: next !== undefined && !isHandedOff(record, clock.now()) },
            call,
          );
      if (outcome === 'empty') lineSeenEmpty = true;
      else {
        // The line may have served an earlier waiter of the request, or a duplicate call may have a permit.
        refuseEnded(outcome, request);
        const granted = ownOf(outcome, request.name, clock.now());
        const claimed =
          granted?.claimTtlMs !== undefined && (await repeat(dependencies, { request, record: outcome }, call));
        if (claimed) return claimed;
        if (!granted || !mayMeetAgain()) return { won: false, record: outcome };
      }
      ended = [];
      continue;
    }
    const isInTime = (record.freedAt ?? 0) <= latest;
    // With the fence and the release as seen, nothing but an attribute of a wrong type can refuse such a write, unless a lease had the key in between.
    if (isFull && isInTime && isSecond && ended.length === 0 && next?.length === 0)
      throw unusable(record, `h${request.name}`);
    if (!won) tries++;
    if (!next || tries > MAX_TRIES) return { won: false, record };
    ended = next;
  }
}

interface Trying {
  request: PermitRequest;
  seen: PoolRecord | undefined;
  ended: readonly PoolEntry[];
  now: number;
}

/** If more have to go than one write can end, the first of them go in a write of their own. */
const write = async (
  dependencies: LeaseDependencies,
  { request, ended, seen, now }: Trying,
  call: Call,
): Promise<Written> => {
  const { key, over } = request;
  return ended.length <= MOST_ENDED
    ? grantPermits(dependencies, { key, permits: [request], ended, seen, over, now }, call)
    : endPermits(dependencies, { key, ended: ended.slice(0, MOST_ENDED), now }, call);
};

/** @throws HoldfastError LeaseLost if the request has had a permit, as far as the record remembers, or has one that is ending */
function refuseEnded(record: PoolRecord, { key, name }: PermitRequest): void {
  const how = ending(record, name);
  if (how) throw permitLost(key, how);
}

/** The call that wrote it may be about to notify a task, or its caller has not claimed it. */
const isFromLine = ({ ticket, claimTtlMs }: PoolEntry): boolean => ticket !== undefined || claimTtlMs !== undefined;

async function repeat(
  dependencies: LeaseDependencies,
  { request, record }: { request: PermitRequest; record: PoolRecord },
  call: Call,
): Promise<Granted | undefined> {
  const { permitLock } = await import('./lock.ts');
  const { claim } = await import('../line/claim.ts');
  const at = { dependencies, lock: permitLock(dependencies, request, call), call };
  const claimed = await claim(at, { record, maxConflicts: 1 });
  return claimed && { ...claimed, won: true };
}

/** Gives room to the callers and tasks that came before. @returns the record that keeps the request out, or that the line is empty */
async function handOffIfNext(
  dependencies: LeaseDependencies,
  { record, isFree }: { record: PoolRecord; isFree: boolean },
  call: Call,
): Promise<PoolRecord | 'empty'> {
  if (!isFree) return record;
  const { handOff } = await import('./hand-off.ts');
  const { end, record: current } = await handOff(dependencies, { record }, call);
  return end === 'empty' ? 'empty' : current;
}
