import { leasesFromEnvironment } from '../shared/locks/environment.ts';
import { acquirePermit } from '../shared/permits/acquire.ts';
import { extendPermit } from '../shared/permits/heartbeat.ts';
import { releasePermit } from '../shared/permits/release.ts';

/** The domain functions, without schema, door, log or metrics. */
const dependencies = leasesFromEnvironment();
const call = { signal: new AbortController().signal, timeLeftMs: () => 29_000 };
const domain = {
  acquire: acquirePermit(dependencies),
  heartbeat: extendPermit(dependencies),
  release: releasePermit(dependencies),
};

interface Asked {
  key: string;
  holder: string;
  ttlSeconds: number;
  waitSeconds: number;
  /** Absent for an exclusive grant. */
  limit?: number;
  fair?: boolean;
}

export const acquire = (input: Asked) => domain.acquire(input, call);
export const heartbeat = (key: string, leaseId: string) => domain.heartbeat({ key, leaseId }, call);
export const release = (key: string, leaseId: string) => domain.release({ key, leaseId }, call);
