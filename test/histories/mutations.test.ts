import { expect, it } from 'vitest';
import { placeOfChange, readProduct } from '../../verification/mutations/mutation.ts';
import { MUTATIONS } from '../../verification/mutations/mutations.ts';

const product = readProduct('.');

it.each(MUTATIONS)('the mutation can be applied: $name', ({ changes }) => {
  for (const change of changes) expect(product.get(placeOfChange(change, product))).toContain(change.search);
});
