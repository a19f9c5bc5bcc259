import * as z from 'zod/mini';
import document from '../../contract/openapi.json' with { type: 'json' };
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAMES } from '../../shared/lambda/names.ts';

export const readContract = () =>
  lambdaFunction({
    name: 'readContract',
    input: z.strictObject({}),
    names: NO_NAMES,
    describesApi: true,
    run: async () => document,
    logged: [],
    // It changes with a deployment only. Private: a shared cache must not answer those who have no permission.
    cacheControl: 'private, max-age=300',
  });

export const handler = readContract();
