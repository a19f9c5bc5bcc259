import { lambdaFunction } from '../../shared/lambda/function.ts';
import { aliasText } from '../../shared/nameservice/alias.ts';
import { nameserviceFromEnvironment } from '../../shared/nameservice/environment.ts';
import { ALIAS_NAME_FIELDS, MAX_PUBLISH_BYTES, publishInput } from '../../shared/nameservice/inputs.ts';
import { publishName } from '../../shared/nameservice/publish.ts';

export const publish = (dependencies = nameserviceFromEnvironment()) =>
  lambdaFunction({
    name: 'publish',
    input: publishInput(),
    nameFields: ALIAS_NAME_FIELDS,
    run: publishName(dependencies),
    logged: ['op', 'alias', 'kind', 'outcome', 'created', 'repeated'],
    maxBytes: MAX_PUBLISH_BYTES,
    created: ({ created }) => created,
    derivedFields: ({ alias }) => ({ alias: aliasText(alias) }),
  });

export const handler = publish();
