import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { MUTATIONS } from '../../verification/mutations/mutations.ts';

describe('the mutations', () => {
  it.each(MUTATIONS)('can be applied: $name', ({ changes }) => {
    for (const { file, search } of changes) expect(readFileSync(file, 'utf8').split(search)).toHaveLength(2);
  });
});
