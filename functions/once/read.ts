import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { ONCE_LISTS, readOnceInput } from '../../shared/once/inputs.ts';
import { readOnce as run } from '../../shared/once/read.ts';

export const readOnce = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readOnce',
    input: readOnceInput(),
    names: { ...ONCE_LISTS, cursors: sealedCursors('once') },
    run: run(dependencies),
    logged: ['key', 'holder', 'fence', 'slot'],
  });

export const handler = readOnce();
