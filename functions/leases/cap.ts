import { lambdaFunction } from '../../shared/lambda/function.ts';
import { capKey as run } from '../../shared/locks/calls/cap.ts';
import { capInput, LEASE_NAMES } from '../../shared/locks/calls/inputs.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const capKey = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'capKey',
    input: capInput(),
    names: LEASE_NAMES,
    run: run(dependencies),
    logged: ['key', 'limit', 'rates', 'reason', 'forSeconds', 'kind'],
    audited: true,
  });

export const handler = capKey();
