import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { KEY_OR_PAGE_NAME_FIELDS } from '../../shared/listings/key-or-page.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { readOnceInput } from '../../shared/once/inputs.ts';
import { readOnce as run } from '../../shared/once/read.ts';

export const readOnce = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readOnce',
    input: readOnceInput(),
    nameFields: { ...KEY_OR_PAGE_NAME_FIELDS, cursors: sealedCursors('once') },
    run: run(dependencies),
    logged: ['key', 'holder', 'fence', 'slot'],
  });

export const handler = readOnce();
