import * as z from 'zod/mini';
import { key, leaseId, ttlSeconds } from './common.ts';

export const heartbeatInput = z.strictObject({ key, leaseId, ttlSeconds: z.optional(ttlSeconds) });
export type HeartbeatInput = z.infer<typeof heartbeatInput>;
