import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { readInput } from '../../shared/locks/inputs.ts';
import { LEASE_LISTS } from '../../shared/locks/names.ts';
import { lookUp } from '../../shared/locks/read.ts';

export const readLeases = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readLeases',
    input: readInput(),
    names: { ...LEASE_LISTS, cursors: sealedCursors('leases') },
    run: lookUp(dependencies),
    logged: ['key', 'holder', 'fence', 'used'],
  });

export const handler = readLeases();
