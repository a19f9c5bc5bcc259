import { lambdaFunction } from '../../shared/lambda/function.ts';
import { canceller } from '../../shared/line/cancel.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { cancelInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { cancelPermitOr } from '../../shared/locks/routing/cancel.ts';

export const cancelWaiter = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'cancelWaiter',
    input: cancelInput(),
    names: LEASE_NAMES,
    run: cancelPermitOr(dependencies, canceller(dependencies)),
    logged: ['key', 'ticket', 'cancelled'],
  });

export const handler = cancelWaiter();
