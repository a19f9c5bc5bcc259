import type { Call } from '../../shared/aws/call.ts';
import { REPORT_LEASE } from '../../shared/expiry/progress.ts';
import type { Guard } from '../../shared/expiry/report.ts';
import { acquirer } from '../../shared/leases/acquire.ts';
import type { LeaseDependencies } from '../../shared/leases/dependencies.ts';
import { heartbeater } from '../../shared/leases/heartbeat.ts';
import { releaser } from '../../shared/leases/release.ts';

const TTL_SECONDS = 60;

/** Well before half of the lease is over: a heartbeat may fail, and be tried again. */
const BEAT_MS = 15_000;

/**
 * Runs a report under a lease of this very service, and gives it back.
 * @throws HoldfastError LeaseHeld (another run is under way), and what `run` throws
 */
export async function underLease<Result>(
  leases: LeaseDependencies,
  call: Call,
  run: (guard: Guard) => Promise<Result>,
): Promise<Result> {
  const request = { key: REPORT_LEASE, holder: 'report', ttlSeconds: TTL_SECONDS, waitSeconds: 0 };
  const { key, leaseId, fence } = await acquirer(leases)(request, call);
  const beat = heartbeater(leases);
  let beatAt = leases.clock.now();
  const keep = async () => {
    const now = leases.clock.now();
    if (now - beatAt < BEAT_MS) return;
    beatAt = now; // segments that ask meanwhile need not beat too
    await beat({ key, leaseId }, call);
  };
  try {
    return await run({ fence, keep });
  } finally {
    // Best effort: the lease lapses on its own, and the outcome of the run matters more.
    await releaser(leases)({ key, leaseId }, call).catch(() => undefined);
  }
}
