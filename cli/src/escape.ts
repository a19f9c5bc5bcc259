/** Control characters and direction marks: they could hide or forge text on the terminal. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const escaped = (text: string, as: (code: number) => string): string =>
  text.replace(UNSEEN, (mark) => as(mark.codePointAt(0) ?? 0));

const unicode = (code: number): string => `\\u${code.toString(16).padStart(4, '0')}`;

/** For a terminal: a newline becomes `\n`, and every other control character its code. */
export const shown = (text: string): string =>
  escaped(text, (code) =>
    code === 10 ? '\\n' : code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : unicode(code),
  );

/** For JSON, which escapes fewer by itself. */
export const escapedJson = (value: unknown): string => escaped(JSON.stringify(value), unicode);
