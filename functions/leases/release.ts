import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { releaseInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { release as run } from '../../shared/locks/release.ts';

export const release = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'release',
    input: releaseInput(),
    names: LEASE_NAMES,
    run: run(dependencies),
    logged: ['key', 'holder', 'fence', 'released', 'reason'],
  });

export const handler = release();
