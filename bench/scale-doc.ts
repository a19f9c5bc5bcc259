import { scaleTables } from './scale-arithmetic.ts';

/** @throws Error if the document does not have a place for a table */
export function withScaleTables(document: string): string {
  let filled = document;
  for (const [name, table] of Object.entries(scaleTables())) {
    const place = new RegExp(`(<!-- ${name} -->\\n\\n)[\\s\\S]*?(<!-- end -->)`);
    if (!place.test(filled)) throw new Error(`docs/scale.md has no place for "${name}"`);
    filled = filled.replace(place, (_, begin, end) => `${begin}${table}\n\n${end}`);
  }
  return filled;
}
