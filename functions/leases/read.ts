import { lambdaFunction } from '../../shared/lambda/function.ts';
import { SEALED_CURSORS } from '../../shared/lambda/sealed-cursor.ts';
import { lookUpLeases } from '../../shared/leases/read.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { readInput } from '../../shared/locks/inputs.ts';
import { LEASE_LISTS } from '../../shared/locks/names.ts';
import { namesPool, route } from '../../shared/locks/route.ts';

export const readLeases = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readLeases',
    input: readInput(),
    names: { ...LEASE_LISTS, cursors: SEALED_CURSORS },
    run: route(dependencies, {
      isForPermit: namesPool,
      lease: lookUpLeases,
      permit: async () => (await import('../../shared/permits/read.ts')).lookUpPool,
    }),
    logged: ['key', 'holder', 'fence', 'used'],
  });

export const handler = readLeases();
