import * as z from 'zod/mini';
import document from '../../contract/openapi.json' with { type: 'json' };
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAME_FIELDS } from '../../shared/lambda/stored-names.ts';

export const readContract = () =>
  lambdaFunction({
    name: 'readContract',
    input: z.strictObject({}),
    nameFields: NO_NAME_FIELDS,
    describesApi: true,
    run: async () => document,
    logged: [],
    // It changes only with a deployment. Private: a shared cache must not answer callers without permission.
    cacheControl: 'private, max-age=300',
  });

export const handler = readContract();
