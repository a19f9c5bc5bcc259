import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';
import { readInput } from '../../shared/leases/inputs.ts';
import { LEASE_LISTS } from '../../shared/leases/names.ts';
import { readPoolOr } from '../../shared/leases/pools/routing/read.ts';
import { reader } from '../../shared/leases/read.ts';

export const readLeases = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readLeases',
    input: readInput(),
    names: LEASE_LISTS,
    run: readPoolOr(dependencies, reader(dependencies)),
    logged: ['key', 'holder', 'fence', 'used'],
  });

export const handler = readLeases();
