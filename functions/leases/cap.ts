import { lambdaFunction } from '../../shared/lambda/function.ts';
import { capKey as run } from '../../shared/locks/calls/cap.ts';
import { capInput, LEASE_NAME_FIELDS } from '../../shared/locks/calls/inputs.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const capKey = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'capKey',
    input: capInput(),
    nameFields: LEASE_NAME_FIELDS,
    run: run(dependencies),
    logged: ['key', 'limit', 'rates', 'reason', 'forSeconds', 'kind'],
    audited: true,
  });

export const handler = capKey();
