import { acquireLease } from '../shared/leases/acquire.ts';
import { extendLease } from '../shared/leases/heartbeat.ts';
import { releaseLease } from '../shared/leases/release.ts';
import { leasesFromEnvironment } from '../shared/locks/environment.ts';

/** The domain functions, without schema, door, log or metrics. */
const dependencies = leasesFromEnvironment();
const call = { signal: new AbortController().signal, timeLeftMs: () => 29_000 };
const domain = {
  acquire: acquireLease(dependencies),
  heartbeat: extendLease(dependencies),
  release: releaseLease(dependencies),
};

export const acquire = (input: { key: string; holder: string; ttlSeconds: number; waitSeconds: number }) =>
  domain.acquire(input, call);
export const heartbeat = (key: string, leaseId: string) => domain.heartbeat({ key, leaseId }, call);
export const release = (key: string, leaseId: string) => domain.release({ key, leaseId }, call);
