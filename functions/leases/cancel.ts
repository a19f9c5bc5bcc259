import { lambdaFunction } from '../../shared/lambda/function.ts';
import { cancelWaiter as run } from '../../shared/locks/cancel.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { cancelInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';

export const cancelWaiter = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'cancelWaiter',
    input: cancelInput(),
    names: LEASE_NAMES,
    run: run(dependencies),
    logged: ['key', 'ticket', 'cancelled'],
    audited: true,
  });

export const handler = cancelWaiter();
