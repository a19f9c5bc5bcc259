import { lambdaFunction } from '../../shared/lambda/function.ts';
import { acquirer } from '../../shared/leases/acquire.ts';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';
import { acquireInput } from '../../shared/leases/inputs.ts';

export const acquire = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'acquire',
    input: acquireInput(),
    run: acquirer(dependencies),
    created: (acquired) => !acquired.repeated,
  });

export const handler = acquire();
