/** Percent-encodes all characters except the unreserved ones of RFC 3986. */
export const escaped = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Writes a query in the canonical form that signatures need: a blank is %20, and the names are sorted. */
export const queryOf = (fields: object): string =>
  Object.entries(fields)
    .map((field) => field.map((part) => escaped(String(part))).join('\0'))
    .sort()
    .join('&')
    .replaceAll('\0', '=');
