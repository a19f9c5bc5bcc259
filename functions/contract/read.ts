import * as z from 'zod/mini';
import document from '../../contract/openapi.json' with { type: 'json' };
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAMES } from '../../shared/lambda/stored-names.ts';

export const readContract = () =>
  lambdaFunction({
    name: 'readContract',
    input: z.strictObject({}),
    names: NO_NAMES,
    describesApi: true,
    run: async () => document,
    logged: [],
    // It changes only with a deployment. Private: a shared cache must not answer callers without permission.
    cacheControl: 'private, max-age=300',
  });

export const handler = readContract();
