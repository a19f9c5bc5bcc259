import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';
import { cancelInput } from '../../shared/leases/inputs.ts';
import { LEASE_NAMES } from '../../shared/leases/names.ts';
import { cancelPermitOr } from '../../shared/leases/pools/routing/cancel.ts';
import { canceller } from '../../shared/leases/queue/cancel.ts';

export const cancelWaiter = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'cancelWaiter',
    input: cancelInput(),
    names: LEASE_NAMES,
    run: cancelPermitOr(dependencies, canceller(dependencies)),
    logged: ['key', 'ticket', 'cancelled'],
  });

export const handler = cancelWaiter();
