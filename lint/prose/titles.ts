/** Finds titles of tests that lack their subject or are too long: a part of `lint/prose/check.ts`. */

export const HAS_TITLES = /^(test\/(?!lint\/)|verification\/).*\.ts$/;

/** The text after `it(` and after `it.each(…)(`. */
const TITLE =
  /(?:\b(?:it|test)(?:\.(?:concurrent|skipIf|runIf|for|only|skip))?|[\])])\(\s*(['"`])((?:\\.|(?!\1)[^\\\n])+)\1,/g;

/** A title that begins so continues another text, or begins with its verb. */
const FRAGMENT = new RegExp(
  [
    '^(of|by|with|without|where|that|which|whose|who|and|or|but|also|to|as|than|although|though|because|so|until)\\b',
    '^(is|are|was|were|has|have|had|can|cannot|may|must|does|do|did|not|never|keep|say|give|come|take|read)\\b',
    '^(?!.*: )[a-z]+s (a|an|the|no|its|it|each|every|once|what|who|how|only|nothing|nobody|all)\\b',
    '^%[sij]$',
  ].join('|'),
);

/** A longer title is a list of the assertions, and is not read to its end. */
export const MAX_WORDS = 14;

/** A value that a template inserts counts as one word. */
const wordsIn = (title: string): number =>
  title
    .replace(/\$\{[^}]*\}/g, '$')
    .trim()
    .split(/\s+/).length;

interface Title {
  title: string;
  /** The place in the code, in characters. */
  at: number;
}

export const titlesIn = (code: string): Title[] =>
  [...code.matchAll(TITLE)].map(({ 2: title = '', index }) => ({ title, at: index }));

/** @returns the titles that cannot be read alone */
export const fragmentsIn = (code: string): Title[] => titlesIn(code).filter(({ title }) => FRAGMENT.test(title));

/** @returns the titles with more than `MAX_WORDS` words */
export const longTitlesIn = (code: string): Title[] => titlesIn(code).filter(({ title }) => wordsIn(title) > MAX_WORDS);
