import { leasesFromEnvironment } from '../shared/locks/environment.ts';
import { permitAcquirer } from '../shared/permits/acquire.ts';
import { withPools } from '../shared/permits/dependencies.ts';
import { permitHeartbeater } from '../shared/permits/heartbeat.ts';
import { permitReleaser } from '../shared/permits/release.ts';

/** The domain functions of permits, without schema, door, log or metrics. */
const dependencies = withPools(leasesFromEnvironment());
const call = { signal: new AbortController().signal, timeLeftMs: () => 29_000 };
const domain = {
  acquire: permitAcquirer(dependencies),
  heartbeat: permitHeartbeater(dependencies),
  release: permitReleaser(dependencies),
};

interface Asked {
  key: string;
  holder: string;
  ttlSeconds: number;
  waitSeconds: number;
  limit: number;
  fair?: boolean;
}

export const acquire = (input: Asked) => domain.acquire(input, call);
export const heartbeat = (key: string, leaseId: string) => domain.heartbeat({ key, leaseId }, call);
export const release = (key: string, leaseId: string) => domain.release({ key, leaseId }, call);
