import { lambdaFunction } from '../../shared/lambda/function.ts';
import { breakLeaseByFence } from '../../shared/leases/break.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { breakInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { namesPool, route } from '../../shared/locks/route.ts';

export const breakLease = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'breakLease',
    input: breakInput(),
    names: LEASE_NAMES,
    run: route(dependencies, {
      isForPermit: namesPool,
      lease: breakLeaseByFence,
      permit: async () => (await import('../../shared/permits/break.ts')).breakPermitByFence,
    }),
    logged: ['key', 'holder', 'fence', 'wait', 'ended', 'reason'],
  });

export const handler = breakLease();
