import * as z from 'zod/mini';
import { whole } from '../../fields.ts';
import { key } from './common.ts';

export const breakInput = z.strictObject({ key, fence: whole(0, Number.MAX_SAFE_INTEGER) });
export type BreakInput = z.infer<typeof breakInput>;
