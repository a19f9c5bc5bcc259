import { lambdaFunction } from '../../shared/lambda/function.ts';
import { LEASE_NAME_FIELDS, releaseInput } from '../../shared/locks/calls/inputs.ts';
import { release as run } from '../../shared/locks/calls/release.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const release = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'release',
    input: releaseInput(),
    nameFields: LEASE_NAME_FIELDS,
    run: run(dependencies),
    logged: ['key', 'holder', 'fence', 'released', 'reason'],
  });

export const handler = release();
