import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';
import { withdrawInput } from '../../shared/leases/inputs.ts';
import { LEASE_NAMES } from '../../shared/leases/names.ts';
import { withdrawer } from '../../shared/leases/queue/withdraw.ts';

export const withdraw = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'withdraw',
    input: withdrawInput(),
    names: LEASE_NAMES,
    run: withdrawer(dependencies),
    logged: ['key', 'holder', 'cancelled', 'reason'],
  });

export const handler = withdraw();
