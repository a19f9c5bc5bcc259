import fc from 'fast-check';

/** Any code point but a half surrogate. `unit: 'binary'` says the same, and takes a second to make in each worker. */
const codePoint = fc
  .integer({ min: 0, max: 0x10ffff - 0x800 })
  .map((nth) => String.fromCodePoint(nth < 0xd800 ? nth : nth + 0x800));

/** Text of any characters, control characters among them. It is well-formed. */
export const anyText = (length: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ unit: codePoint, ...length });
