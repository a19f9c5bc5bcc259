import * as z from 'zod/mini';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAME_FIELDS } from '../../shared/lambda/stored-names.ts';
import { VERSION } from '../../shared/surroundings/version.ts';

export const readHealth = () =>
  lambdaFunction({
    name: 'readHealth',
    input: z.strictObject({}),
    nameFields: NO_NAME_FIELDS,
    describesApi: true,
    run: async () => ({ status: 'ok' as const, version: VERSION }),
    logged: [],
  });

export const handler = readHealth();
