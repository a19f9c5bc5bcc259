import { lambdaFunction } from '../../shared/lambda/function.ts';
import { breaker } from '../../shared/leases/break.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { breakInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { breakPermitOr } from '../../shared/locks/routing/break.ts';

export const breakLease = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'breakLease',
    input: breakInput(),
    names: LEASE_NAMES,
    run: breakPermitOr(dependencies, breaker(dependencies)),
    logged: ['key', 'holder', 'fence', 'wait', 'ended', 'reason'],
  });

export const handler = breakLease();
