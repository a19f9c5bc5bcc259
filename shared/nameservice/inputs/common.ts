import * as z from 'zod/mini';
import { name } from '../../fields.ts';
import { aliasText, parseAlias } from '../alias.ts';

/** The alias is a sort key of the index, and those end at 1,024 bytes. */
export const MOST_ALIAS_BYTES = 1024;

/** `name:branch`; a name alone means its branch `main`. */
export const alias = z
  .pipe(
    name(MOST_ALIAS_BYTES).check(
      z.refine((text) => parseAlias(text) !== undefined, 'must be name or name:branch, no part empty, no other colon'),
    ),
    z.transform((text) => parseAlias(text) ?? { name: text, branch: '' }),
  )
  .check(
    z.refine(
      (alias) => Buffer.byteLength(aliasText(alias)) <= MOST_ALIAS_BYTES,
      'must be at most 1,024 bytes of UTF-8 with its branch',
    ),
  );
