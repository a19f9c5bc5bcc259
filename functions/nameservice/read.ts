import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { aliasText } from '../../shared/nameservice/alias.ts';
import { nameserviceFromEnvironment } from '../../shared/nameservice/environment.ts';
import { ALIAS_LIST_FIELDS, readNamesInput } from '../../shared/nameservice/inputs.ts';
import { readAliasOrList } from '../../shared/nameservice/read.ts';

export const readNames = (dependencies = nameserviceFromEnvironment()) =>
  lambdaFunction({
    name: 'readNames',
    input: readNamesInput(),
    nameFields: { ...ALIAS_LIST_FIELDS, cursors: sealedCursors('names') },
    run: readAliasOrList(dependencies),
    logged: ['alias', 'kind'],
    derivedFields: ({ alias }) => (alias ? { alias: aliasText(alias) } : {}),
  });

export const handler = readNames();
