/** Percent-encodes all but the unreserved characters of RFC 3986. */
export const escaped = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** The query in the one form that signatures know: a blank is %20, and the names are in order. */
export const queryOf = (fields: object): string =>
  Object.entries(fields)
    .map((field) => field.map((part) => escaped(String(part))).join('\0'))
    .sort()
    .join('&')
    .replaceAll('\0', '=');
