import * as z from 'zod/mini';
import { key, leaseId } from './common.ts';

export const releaseInput = z.strictObject({ key, leaseId });
export type ReleaseInput = z.infer<typeof releaseInput>;
