import * as z from 'zod/mini';
import calls from '../../contract/calls.json' with { type: 'json' };
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { scopesFromEnvironment } from '../../shared/lambda/scopes.ts';
import { NO_NAME_FIELDS } from '../../shared/lambda/stored-names.ts';
import { whoami as answerWhoami } from '../../shared/lambda/whoami.ts';
import { VERSION } from '../../shared/surroundings/version.ts';

export const whoami = (scopes = scopesFromEnvironment()) =>
  lambdaFunction({
    name: 'whoami',
    input: z.strictObject({}),
    nameFields: NO_NAME_FIELDS,
    describesApi: true,
    run: answerWhoami({ ...calls, scopes, version: VERSION }),
    logged: ['authorizedBy'],
  });

export const handler = whoami();
