import { lambdaFunction } from '../../shared/lambda/function.ts';
import { releaser } from '../../shared/leases/release.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { releaseInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { releasePermitOr } from '../../shared/locks/routing/release.ts';

export const release = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'release',
    input: releaseInput(),
    names: LEASE_NAMES,
    run: releasePermitOr(dependencies, releaser(dependencies)),
    logged: ['key', 'holder', 'fence', 'released', 'reason'],
  });

export const handler = release();
