import { lambdaFunction } from '../../shared/lambda/function.ts';
import { breakGrant } from '../../shared/locks/break.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { breakInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';

export const breakLease = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'breakLease',
    input: breakInput(),
    names: LEASE_NAMES,
    run: breakGrant(dependencies),
    logged: ['key', 'holder', 'fence', 'wait', 'ended', 'reason'],
    audited: true,
  });

export const handler = breakLease();
