import * as z from 'zod/mini';
import { json, name, whole } from '../../fields.ts';
import { key, ttlSeconds } from './common.ts';

export const acquireInput = z.strictObject({
  key,
  holder: name(256),
  ttlSeconds: z._default(ttlSeconds, 60),
  waitSeconds: z._default(whole(0, 20), 0),
  /** One acquisition: a repeat of it is answered with the same grant. */
  requestId: z.optional(name(256)),
  /** Shown to whoever looks at the lease. */
  data: z.optional(json()),
});
export type AcquireInput = z.infer<typeof acquireInput>;
