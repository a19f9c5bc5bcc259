import * as z from 'zod/mini';
import { limit, name, oneOf } from '../../fields.ts';
import { KINDS } from '../items.ts';
import { alias, MOST_ALIAS_BYTES } from './common.ts';

export const readInput = z
  .strictObject({
    alias: z.optional(alias),
    kind: z.optional(oneOf(KINDS)),
    prefix: z.optional(name(MOST_ALIAS_BYTES)),
    limit: z.optional(limit()),
    cursor: z.optional(name(4096)),
  })
  .check(
    z.check((ctx) => {
      const { alias, ...rest } = ctx.value;
      for (const field of Object.keys(rest))
        if (alias !== undefined)
          ctx.issues.push({ code: 'custom', path: [field], message: 'cannot be combined with alias', input: field });
    }),
  );
export type ReadInput = z.infer<typeof readInput>;
