import { expect, it } from 'vitest';
import * as z from 'zod/mini';
import { component, count, text } from '../../contract/schema.ts';

interface Domain {
  key: string;
  fence?: number;
}

it('a schema that is not exactly what the domain answers does not compile', () => {
  const key = text('A key.');
  const fence = z.exactOptional(count('A fence.'));
  const tied = component<Domain>();
  // Each of these must be an error: the compiler complains of a comment that expects none.
  const refused = () => [
    // @ts-expect-error a field too few
    tied('A', 'a', z.strictObject({ key })),
    // @ts-expect-error a field too many
    tied('A', 'a', z.strictObject({ key, fence, surplus: key })),
    // @ts-expect-error a field that is always there
    tied('A', 'a', z.strictObject({ key, fence: count('A fence.') })),
    // @ts-expect-error a field of another type
    tied('A', 'a', z.strictObject({ key, fence: z.exactOptional(text('A fence.')) })),
    // @ts-expect-error a field that may be null
    tied('A', 'a', z.strictObject({ key: z.nullable(key), fence })),
  ];
  expect(refused).toBeTypeOf('function');
  const schema = tied('TiedForTest', 'As the domain has it.', z.strictObject({ key, fence }));
  expect(schema.safeParse({ key: 'k', fence: 1 }).success).toBe(true);
  expect(schema.safeParse({ key: 'k', surplus: 1 }).success).toBe(false);
});
