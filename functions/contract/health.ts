import * as z from 'zod/mini';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAMES } from '../../shared/lambda/stored-names.ts';
import { VERSION } from '../../shared/surroundings/version.ts';

export const readHealth = () =>
  lambdaFunction({
    name: 'readHealth',
    input: z.strictObject({}),
    names: NO_NAMES,
    describesApi: true,
    run: async () => ({ status: 'ok' as const, version: VERSION }),
    logged: [],
  });

export const handler = readHealth();
