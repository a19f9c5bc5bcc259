import * as z from 'zod/mini';
import { limit, name, oneOf } from '../../fields.ts';
import { LEASE_STATES } from '../rules.ts';
import { key } from './common.ts';

export const readInput = z
  .strictObject({
    key: z.optional(key),
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
export type ReadInput = z.infer<typeof readInput>;
