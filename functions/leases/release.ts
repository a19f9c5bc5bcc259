import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';
import { releaseInput } from '../../shared/leases/inputs.ts';
import { LEASE_NAMES } from '../../shared/leases/names.ts';
import { releasePermitOr } from '../../shared/leases/pools/routing/release.ts';
import { releaser } from '../../shared/leases/release.ts';

export const release = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'release',
    input: releaseInput(),
    names: LEASE_NAMES,
    run: releasePermitOr(dependencies, releaser(dependencies)),
    logged: ['key', 'holder', 'fence', 'released', 'reason'],
  });

export const handler = release();
