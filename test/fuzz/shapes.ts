/** Texts of JSON, of about as many bytes as that. */
export const SHAPES: Record<string, (bytes: number) => string> = {
  'names, all different': (bytes) => `{${many(bytes / 14, (at) => `"N-${at}":"x"`)}}`,
  'names of numbers': (bytes) => `{${many(bytes / 11, (at) => `"${at}":0`)}}`,
  'texts, none right': (bytes) => `[${many(bytes / 6, '"xxx"')}]`,
  numbers: (bytes) => `[${many(bytes / 2, '0')}]`,
  'empty objects': (bytes) => `[${many(bytes / 3, '{}')}]`,
  'empty lists': (bytes) => `[${many(bytes / 3, '[]')}]`,
  'lists, nested': (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'objects, nested': (bytes) => `${'{"a":'.repeat(bytes / 6)}0${'}'.repeat(bytes / 6)}`,
  'a text of letters': (bytes) => `"${'a'.repeat(bytes)}"`,
  'a text of slashes': (bytes) => `"${'/'.repeat(bytes)}"`,
  'a text of quotes': (bytes) => `"${'\\"'.repeat(bytes / 2)}"`,
  'a text of control characters': (bytes) => `"${'\\u0001'.repeat(bytes / 6)}"`,
  'a text of lone surrogates': (bytes) => `"${'\\ud800'.repeat(bytes / 6)}"`,
  'a text of JSON': (bytes) => JSON.stringify(`[${many(bytes / 3, '{}')}]`),
  'a number of many digits': (bytes) => '9'.repeat(bytes),
  'a number of many zeros': (bytes) => `1${'0'.repeat(bytes)}1`,
};
const many = (count: number, item: ((at: number) => string) | string) =>
  typeof item === 'string'
    ? `${`${item},`.repeat(count - 1)}${item}`
    : Array.from({ length: Math.floor(count) }, (_, at) => item(at)).join(',');
