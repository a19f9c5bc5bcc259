import type { Json } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { naming } from '../aws/send.ts';
import type { Acquired, AcquireInput } from '../line/calls.ts';
import { durations, previousView } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { DEFAULT_QUOTAS } from '../line/limits/quotas.ts';
import { deadlineOf, isBackInLine } from '../line/times.ts';
import { type Granted, tryOnce } from './first-try.ts';
import type { GrantRequest } from './grant.ts';
import { race } from './race.ts';
import { endsAt } from './rules.ts';
import { grantView, leaseHeld, leaseLost } from './views.ts';

/** An acquire without a task to park. */
type PlainAcquire = Omit<AcquireInput, 'taskToken' | 'parkSeconds' | 'fair'> & { fair?: boolean };

/**
 * Takes a lease with one conditional PutItem (docs/protocols/leases.md#acquire). Takes an expired one over on the first call,
 * unless another caller is in line for it. With `waitSeconds`, the call waits in line (in-line/wait.ts) or beside it (race.ts). It waits no
 * longer than the deployment allows (`maxWaitSeconds`), and not at all if it would use up the reserved concurrency (waits.ts).
 * @throws HoldfastError LeaseHeld, LeaseLost (the request's own grant was released, or it was withdrawn), QueueFull, Throttled,
 * OutcomeUnknown, Unavailable (also for a record of another client that no condition fits)
 */
export function acquirer(dependencies: LeaseDependencies) {
  const { clock, ids } = dependencies;
  return async (input: PlainAcquire, call: Call): Promise<Acquired> => {
    const { waitSeconds, fair = true, ticket, requestId = ids.uuid(), data, ...asked } = input;
    // The schema has checked that data is JSON.
    const request: GrantRequest = { ...asked, requestId, principal: call.principal, data: data as Json | undefined };
    const arrivedAt = clock.now();
    const asking = { request, waitSeconds, fair, ticket, arrivedAt };
    const granted = await tryAndWait(dependencies, asking, call).catch(naming({ requestId }));
    const { standing, repeated, previous } = granted;
    const now = clock.now();
    const told = durations({ since: arrivedAt, expiresAt: endsAt(standing), now });
    return { ...grantView(standing, now), ...told, repeated, previous: previousView(previous) };
  };
}

interface Asking {
  request: GrantRequest;
  waitSeconds: number;
  fair: boolean;
  /** The place that an earlier call of the request had. */
  ticket: string | undefined;
  arrivedAt: number;
}

async function tryAndWait(
  dependencies: LeaseDependencies,
  { request, waitSeconds, fair, ticket, arrivedAt }: Asking,
  call: Call,
): Promise<Omit<Granted, 'won'>> {
  const { clock, clockSkewMs } = dependencies;
  const outcome = await tryOnce(dependencies, request, call);
  if (outcome.won) {
    if (ticket !== undefined) await leaveLine(dependencies, { request, ticket, granted: outcome }, call);
    return outcome;
  }
  const now = clock.now();
  const deadline = deadlineOf(dependencies, { waitSeconds, arrivedAt, now }, call);
  const isLate = deadline <= now;
  const isBack = isBackInLine(dependencies, { waitSeconds, fair, ticket });
  if (isLate && !isBack) throw leaseHeld(outcome.standing, now, clockSkewMs);
  const wait = async (): Promise<Omit<Granted, 'won'>> => {
    if (!fair) return race(dependencies, { request, heldBy: outcome.standing, deadline }, call);
    const { waitInLine } = await import('./in-line/wait.ts');
    const joining = { request, ticket, deadline: Math.max(deadline, now) };
    const { standing, repeated } = await waitInLine(dependencies, joining, call);
    return { standing, repeated, previous: standing.previous };
  };
  const { acquireConcurrency: concurrency } = dependencies.quotas ?? DEFAULT_QUOTAS;
  if (concurrency === undefined || isLate) return wait();
  const { countedWait } = await import('../line/limits/concurrent-waits.ts');
  const counted = {
    deadline,
    isBack,
    concurrency,
    held: () => leaseHeld(outcome.standing, clock.now(), clockSkewMs),
  };
  return countedWait(dependencies, { ...counted, wait }, call);
}

/** A call that asks again and gets the lease at once leaves the line, unless its request was withdrawn meanwhile. */
async function leaveLine(
  dependencies: LeaseDependencies,
  { request, ticket, granted }: { request: GrantRequest; ticket: string; granted: Granted },
  call: Call,
): Promise<void> {
  const { leaveOwnLine } = await import('../line/waiting-calls.ts');
  const { cancelled } = await leaveOwnLine(dependencies, { ticket, asker: request }, call);
  if (!cancelled) return;
  // The grant came by another place, so perhaps another call of the request has returned it.
  if (granted.repeated && granted.standing.ticket !== ticket) throw leaseLost(request.key, 'cancelled', undefined);
  const { giveUp } = await import('./in-line/claim.ts');
  await giveUp(dependencies, granted.standing, call);
}
