import { lambdaFunction } from '../../shared/lambda/function.ts';
import { cancelInput, LEASE_NAME_FIELDS } from '../../shared/locks/calls/inputs.ts';
import { cancelWaiter as run } from '../../shared/locks/calls/withdraw.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const cancelWaiter = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'cancelWaiter',
    input: cancelInput(),
    nameFields: LEASE_NAME_FIELDS,
    run: run(dependencies),
    logged: ['key', 'ticket', 'cancelled'],
    audited: true,
  });

export const handler = cancelWaiter();
