import type * as z from 'zod/mini';
import { ERRORS } from '../shared/errors.ts';
import { ERROR_CODES, ERROR_CONTRACTS } from './errors.ts';

/** The table of docs/api.md, in Markdown. */
export function errorTable(): string {
  const rows = ERROR_CODES.map((code) => {
    const { retry, when, fields } = ERROR_CONTRACTS[code];
    const names = Object.entries(fields).map(
      ([name, field]) => `\`${name}\`${field._zod.optout ? '?' : ''}${members(field as z.core.$ZodTypes)}`,
    );
    return `| \`${code}\` | ${ERRORS[code].status} | ${retry} | ${names.join(', ')} | ${when} |\n`;
  });
  return `| code | status | retry | with | when |\n|---|---|---|---|---|\n${rows.join('')}`;
}

/** The words that a field may hold, or the fields of the objects that it lists. */
function members(field: z.core.$ZodTypes): string {
  const { def } = field._zod;
  if (def.type === 'enum') return ` (${ticked(Object.values(def.entries).map(String))})`;
  if (def.type === 'nullable' || def.type === 'optional') return members(def.innerType as z.core.$ZodTypes);
  if (def.type !== 'array') return '';
  const of = (def.element as z.core.$ZodTypes)._zod.def;
  return of.type === 'object' ? ` (each with ${ticked(Object.keys(of.shape))})` : '';
}

const ticked = (names: string[]) => names.map((name) => `\`${name}\``).join(', ');
