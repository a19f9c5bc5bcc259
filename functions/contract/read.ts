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
    // The contract changes only with a deployment. The answer is private, because a shared cache would answer callers
    // without permission.
    cacheControl: 'private, max-age=300',
  });

export const handler = readContract();
