import type { Call } from '../aws/call.ts';
import { acquireGrant } from './calls/acquire.ts';
import { extendGrant } from './calls/heartbeat.ts';
import { releaseGrant } from './calls/release.ts';
import type { LeaseDependencies } from './dependencies.ts';

interface LeaseRequest<Result> {
  key: string;
  holder: string;
  ttlSeconds: number;
  work(lease: HeldLease): Promise<Result>;
}

interface HeldLease {
  fence: number;
  /** Extends the lease if a quarter of its ttl has passed. @throws HoldfastError as locks/calls/heartbeat.ts */
  keep(): Promise<void>;
}

/** The part of the ttl after which a heartbeat is due. If a heartbeat so early fails, there is time for another one. */
const BEAT_AFTER = 1 / 4;

/**
 * Runs work of the service itself under one of its leases, and releases the lease.
 * @throws HoldfastError LeaseHeld, and what `work` throws
 */
export async function underLease<Result>(
  dependencies: LeaseDependencies,
  { work, ...request }: LeaseRequest<Result>,
  call: Call,
): Promise<Result> {
  const { key, leaseId, fence } = await acquireGrant(dependencies)({ ...request, waitSeconds: 0 }, call);
  const beat = extendGrant(dependencies);
  let heartbeatAt = dependencies.clock.now();
  const keep = async () => {
    const now = dependencies.clock.now();
    if (now - heartbeatAt < request.ttlSeconds * 1000 * BEAT_AFTER) return;
    heartbeatAt = now; // several parts of the work may ask at once, and one heartbeat is enough
    await beat({ key, leaseId }, call);
  };
  try {
    return await work({ fence, keep });
  } finally {
    // Best effort: the lease expires by itself, and the outcome of the work matters more.
    await releaseGrant(dependencies)({ key, leaseId }, call).catch(() => undefined);
  }
}
