import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { aliasText } from '../../shared/nameservice/alias.ts';
import { nameserviceFromEnvironment } from '../../shared/nameservice/environment.ts';
import { ALIAS_LIST_FIELDS, readInput } from '../../shared/nameservice/inputs.ts';
import { reader } from '../../shared/nameservice/read.ts';

export const readNames = (dependencies = nameserviceFromEnvironment()) =>
  lambdaFunction({
    name: 'readNames',
    input: readInput(),
    nameFields: { ...ALIAS_LIST_FIELDS, cursors: sealedCursors('names') },
    run: reader(dependencies),
    logged: ['alias', 'kind'],
    loggedAs: ({ alias }) => (alias ? { alias: aliasText(alias) } : {}),
  });

export const handler = readNames();
