/** Control characters and direction marks, which could hide or forge text on the terminal. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const escaped = (text: string, as: (code: number) => string): string =>
  text.replace(INVISIBLE, (character) => as(character.codePointAt(0) ?? 0));

const unicode = (code: number): string => `\\u${code.toString(16).padStart(4, '0')}`;

/** A text that is safe to print: a newline becomes `\n`, and every other control character its code. */
export const shown = (text: string): string =>
  escaped(text, (code) =>
    code === 10 ? '\\n' : code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : unicode(code),
  );

/** JSON that is safe to print. `JSON.stringify` escapes fewer characters. */
export const escapedJson = (value: unknown): string => escaped(JSON.stringify(value), unicode);
