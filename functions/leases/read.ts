import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { LEASE_LIST_FIELDS, readInput } from '../../shared/locks/calls/inputs.ts';
import { readKeyOrList } from '../../shared/locks/calls/read.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const readLeases = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readLeases',
    input: readInput(),
    nameFields: { ...LEASE_LIST_FIELDS, cursors: sealedCursors('leases') },
    run: readKeyOrList(dependencies),
    logged: ['key', 'holder', 'fence', 'used'],
  });

export const handler = readLeases();
