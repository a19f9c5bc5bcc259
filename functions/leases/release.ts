import { lambdaFunction } from '../../shared/lambda/function.ts';
import { releaseLease } from '../../shared/leases/release.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { releaseInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { hasPermitId, route } from '../../shared/locks/route.ts';

export const release = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'release',
    input: releaseInput(),
    names: LEASE_NAMES,
    run: route(dependencies, {
      isForPermit: hasPermitId,
      lease: releaseLease,
      permit: async () => (await import('../../shared/permits/release.ts')).releasePermit,
    }),
    logged: ['key', 'holder', 'fence', 'released', 'reason'],
  });

export const handler = release();
