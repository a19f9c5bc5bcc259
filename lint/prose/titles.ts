/** Finds titles of tests that lack their subject: a part of `lint/prose/check.ts`. */

export const HAS_TITLES = /^(test\/(?!lint\/)|verification\/).*\.ts$/;

/** The text behind `it(`, and behind `it.each(…)(`. */
const TITLE =
  /(?:\b(?:it|test)(?:\.(?:concurrent|skipIf|runIf|for|only|skip))?|[\])])\(\s*(['"`])((?:\\.|(?!\1)[^\\\n])+)\1,/g;

/** With these a title begins that continues the text around it, or that begins with its verb. */
const FRAGMENT = new RegExp(
  [
    '^(of|by|with|without|where|that|which|whose|who|and|or|but|also|to|as|than|although|though|because|so|until)\\b',
    '^(is|are|was|were|has|have|had|can|cannot|may|must|does|do|did|not|never|keep|say|give|come|take|read)\\b',
    '^(?!.*: )[a-z]+s (a|an|the|no|its|it|each|every|once|what|who|how|only|nothing|nobody|all)\\b',
    '^%[sij]$',
  ].join('|'),
);

interface Title {
  title: string;
  /** Where it stands in the code. */
  at: number;
}

export const titlesIn = (code: string): Title[] =>
  [...code.matchAll(TITLE)].map(({ 2: title = '', index }) => ({ title, at: index }));

/** @returns the titles that cannot be read alone */
export const fragmentsIn = (code: string): Title[] => titlesIn(code).filter(({ title }) => FRAGMENT.test(title));
