import { lambdaFunction } from '../../shared/lambda/function.ts';
import { entrance } from '../../shared/leases/entrance.ts';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';
import { acquireInput } from '../../shared/leases/inputs.ts';

export const acquire = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'acquire',
    input: acquireInput(),
    run: entrance(dependencies),
    created: (answer) => 'parked' in answer || !answer.repeated,
  });

export const handler = acquire();
