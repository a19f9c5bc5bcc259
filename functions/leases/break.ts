import { lambdaFunction } from '../../shared/lambda/function.ts';
import { breakGrant } from '../../shared/locks/calls/break.ts';
import { breakInput, LEASE_NAME_FIELDS } from '../../shared/locks/calls/inputs.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const breakLease = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'breakLease',
    input: breakInput(),
    nameFields: LEASE_NAME_FIELDS,
    run: breakGrant(dependencies),
    logged: ['key', 'holder', 'fence', 'wait', 'ended', 'reason'],
    audited: true,
  });

export const handler = breakLease();
