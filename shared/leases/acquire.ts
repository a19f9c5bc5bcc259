import type { Json } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { naming } from '../aws/send.ts';
import type { Acquired, AcquireInput, Parked } from '../line/calls.ts';
import { durations, previousView } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { parkedBy } from '../line/parked-by.ts';
import { DEFAULT_PARK_SECONDS } from '../line/times.ts';
import { tryThenWait } from '../line/try-then-wait.ts';
import { tryOnce } from './first-try.ts';
import type { GrantRequest } from './grant.ts';
import type { LeaseRecord } from './record.ts';
import { endsAt, isBound } from './rules.ts';
import { grantView, leaseHeld } from './views.ts';

/** An acquire without a task to park. */
type PlainAcquire = Omit<AcquireInput, 'taskToken' | 'callbackId' | 'parkSeconds' | 'fair'> & { fair?: boolean };

/**
 * Takes a lease with one conditional PutItem (docs/protocols/leases.md#acquire). Takes an expired one over on the first call,
 * unless another caller is in line for it. With `waitSeconds`, the call waits (line/try-then-wait.ts).
 * @throws HoldfastError LeaseHeld, LeaseLost (the request's own grant was released, or it was withdrawn), QueueFull, Throttled,
 * OutcomeUnknown, Unavailable (also for a record of another client that no condition fits)
 */
export function acquireLease(dependencies: LeaseDependencies) {
  const { clock, ids } = dependencies;
  return async (input: PlainAcquire, call: Call): Promise<Acquired> => {
    const { waitSeconds, fair = true, ticket, requestId = ids.uuid(), data, ...asked } = input;
    // The schema has checked that data is JSON.
    const request: GrantRequest = { ...asked, requestId, principal: call.principal, data: data as Json | undefined };
    const arrivedAt = clock.now();
    const asking = {
      ...{ waitSeconds, fair, ticket, arrivedAt },
      attempt: () => tryOnce(dependencies, request, call),
      look: async (record: LeaseRecord) =>
        isBound(record) && (await import('./holder-look.ts')).lookBeside(dependencies, record, call),
      lock: async () => (await import('./lock.ts')).leaseLock(dependencies, request, call),
      held: (record: LeaseRecord) => leaseHeld(record, clock.now(), dependencies.clockSkewMs),
    };
    const granted = await tryThenWait(dependencies, asking, call).catch(naming({ requestId }));
    const { record: current, repeated, previous } = granted;
    const now = clock.now();
    const told = durations({ since: arrivedAt, expiresAt: endsAt(current), now });
    return { ...grantView(current, now), ...told, repeated, previous: previousView(previous) };
  };
}

/**
 * Takes a lease for the caller. With a `taskToken` or a `callbackId`, grants it to that task or callback, or parks it.
 * @throws HoldfastError InvalidRequest (line/executions/allowed.ts), and as `acquireLease` and line/park.ts
 */
export function acquireOrParkLease(dependencies: LeaseDependencies) {
  const acquire = acquireLease(dependencies);
  return async (input: AcquireInput, call: Call): Promise<Acquired | Parked> => {
    const { execution, target } = input;
    if (execution !== undefined || target !== undefined) {
      const { ANY_EXECUTION, refuseForeignExecutions } = await import('../line/executions/allowed.ts');
      refuseForeignExecutions(dependencies.executions ?? ANY_EXECUTION, { execution, target }, call);
    }
    const { taskToken, callbackId, parkSeconds = DEFAULT_PARK_SECONDS, ...plain } = input;
    const parked = parkedBy({ taskToken, callbackId });
    if (!parked) return acquire(plain, call);
    const { waitSeconds: _, fair: __, ticket: ___, requestId = dependencies.ids.uuid(), data, ...waiter } = plain;
    // The schema has checked that data is JSON.
    const request = { ...waiter, requestId, principal: call.principal, data: data as Json | undefined };
    const [{ park }, { leaseLock }] = [await import('../line/park.ts'), await import('./lock.ts')];
    return park(dependencies, { lock: leaseLock(dependencies, request, call), parked, parkSeconds }, call);
  };
}
