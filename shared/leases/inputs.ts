import * as z from 'zod/mini';
import { json, limit, name, oneOf, whole } from '../fields.ts';
import { LEASE_STATES } from './rules.ts';

// Functions and not constants, so that each Lambda function builds its own schema alone: the others would cost it 1 ms
// of every cold start, and 3 kB.

const key = () => name(1024);
const leaseId = () => name(256);
const ttlSeconds = () => whole(2, 86_400);

export const acquireInput = () =>
  z.strictObject({
    key: key(),
    holder: name(256),
    ttlSeconds: z._default(ttlSeconds(), 60),
    waitSeconds: z._default(whole(0, 20), 0),
    /** One acquisition: a repeat of it is answered with the same grant. */
    requestId: z.optional(name(256)),
    /** Shown to whoever looks at the lease. */
    data: z.optional(json()),
  });
export type AcquireInput = z.infer<ReturnType<typeof acquireInput>>;

export const heartbeatInput = () =>
  z.strictObject({ key: key(), leaseId: leaseId(), ttlSeconds: z.optional(ttlSeconds()) });
export type HeartbeatInput = z.infer<ReturnType<typeof heartbeatInput>>;

export const releaseInput = () => z.strictObject({ key: key(), leaseId: leaseId() });
export type ReleaseInput = z.infer<ReturnType<typeof releaseInput>>;

export const breakInput = () => z.strictObject({ key: key(), fence: whole(0, Number.MAX_SAFE_INTEGER) });
export type BreakInput = z.infer<ReturnType<typeof breakInput>>;

export const readInput = () =>
  z
    .strictObject({
      key: z.optional(key()),
      prefix: z.optional(name(1024)),
      holder: z.optional(name(256)),
      state: z.optional(oneOf(LEASE_STATES)),
      limit: z.optional(limit()),
      cursor: z.optional(name(4096)),
    })
    .check(
      z.check((ctx) => {
        const { key, ...rest } = ctx.value;
        for (const field of Object.keys(rest))
          if (key !== undefined)
            ctx.issues.push({ code: 'custom', path: [field], message: 'cannot be combined with key', input: field });
      }),
    );
export type ReadInput = z.infer<ReturnType<typeof readInput>>;
