import { lambdaFunction } from '../../shared/lambda/function.ts';
import { aliasText } from '../../shared/nameservice/alias.ts';
import { nameserviceFromEnvironment } from '../../shared/nameservice/environment.ts';
import { publishInput } from '../../shared/nameservice/inputs.ts';
import { publisher } from '../../shared/nameservice/publish.ts';

export const publish = (dependencies = nameserviceFromEnvironment()) =>
  lambdaFunction({
    name: 'publish',
    input: publishInput(),
    run: publisher(dependencies),
    created: ({ created }) => created,
    logged: ({ alias }) => ({ alias: aliasText(alias) }),
  });

export const handler = publish();
