import * as z from 'zod/mini';
import { callersName, cursorText, limit, name } from '../fields.ts';
import type { NameFields } from '../namespace.ts';

/** The input of a call that reads one key, or lists keys of the same kind. */
export const keyOrPage = (maxKeyBytes: number) =>
  z
    .strictObject({
      key: z.optional(callersName(maxKeyBytes)),
      prefix: z.optional(name(maxKeyBytes)),
      limit: z.optional(limit()),
      cursor: z.optional(cursorText()),
    })
    .check(
      z.check((ctx) => {
        const { key, ...rest } = ctx.value;
        if (key === undefined) return;
        for (const field of Object.keys(rest))
          ctx.issues.push({ code: 'custom', path: [field], message: 'cannot be combined with key', input: field });
      }),
    );

export const KEY_OR_PAGE_NAME_FIELDS: NameFields = {
  stored: ['key'],
  listed: { unless: 'key', of: 'stored' },
  answered: ['key', 'keys.*.key'],
};
