import { acquireGrant } from '../shared/locks/calls/acquire.ts';
import { extendGrant } from '../shared/locks/calls/heartbeat.ts';
import { releaseGrant } from '../shared/locks/calls/release.ts';
import { leasesFromEnvironment } from '../shared/locks/dependencies.ts';

/** The domain functions without schema, adapter, log and metrics, in the process of the caller, as with `directTransport`. */
const { quotas: _, ...dependencies } = leasesFromEnvironment();
const call = { signal: new AbortController().signal, timeLeftMs: () => 29_000 };
const domain = {
  acquire: acquireGrant(dependencies),
  heartbeat: extendGrant(dependencies),
  release: releaseGrant(dependencies),
};

interface Asked {
  key: string;
  holder: string;
  ttlSeconds: number;
  waitSeconds: number;
  /** Undefined for an exclusive grant. */
  limit?: number;
  fair?: boolean;
}

export const acquire = (input: Asked) => domain.acquire(input, call);
export const heartbeat = (key: string, leaseId: string) => domain.heartbeat({ key, leaseId }, call);
export const release = (key: string, leaseId: string) => domain.release({ key, leaseId }, call);
