import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { withdrawInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { withdrawOwnRequest } from '../../shared/locks/withdraw.ts';

export const withdraw = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'withdraw',
    input: withdrawInput(),
    names: LEASE_NAMES,
    run: withdrawOwnRequest(dependencies),
    logged: ['key', 'holder', 'cancelled', 'reason'],
  });

export const handler = withdraw();
