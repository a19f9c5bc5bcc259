import { lambdaFunction } from '../../shared/lambda/function.ts';
import { LEASE_NAME_FIELDS, withdrawInput } from '../../shared/locks/calls/inputs.ts';
import { withdrawOwnRequest } from '../../shared/locks/calls/withdraw.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const withdraw = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'withdraw',
    input: withdrawInput(),
    nameFields: LEASE_NAME_FIELDS,
    run: withdrawOwnRequest(dependencies),
    logged: ['key', 'holder', 'cancelled', 'reason'],
  });

export const handler = withdraw();
