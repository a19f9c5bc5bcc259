import { lambdaFunction } from '../../shared/lambda/function.ts';
import { reader } from '../../shared/leases/read.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { readInput } from '../../shared/locks/inputs.ts';
import { LEASE_LISTS } from '../../shared/locks/names.ts';
import { readPoolOr } from '../../shared/locks/routing/read.ts';

export const readLeases = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readLeases',
    input: readInput(),
    names: LEASE_LISTS,
    run: readPoolOr(dependencies, reader(dependencies)),
    logged: ['key', 'holder', 'fence', 'used'],
  });

export const handler = readLeases();
