import { lambdaFunction } from '../../shared/lambda/function.ts';
import { cancelLeaseWaiter } from '../../shared/leases/cancel.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { cancelInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { namesPool, route } from '../../shared/locks/route.ts';

export const cancelWaiter = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'cancelWaiter',
    input: cancelInput(),
    names: LEASE_NAMES,
    run: route(dependencies, {
      isForPermit: namesPool,
      lease: cancelLeaseWaiter,
      permit: async () => (await import('../../shared/permits/cancel.ts')).cancelPermitWaiter,
    }),
    logged: ['key', 'ticket', 'cancelled'],
  });

export const handler = cancelWaiter();
