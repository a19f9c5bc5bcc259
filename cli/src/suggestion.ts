import { closestMatch } from 'leven';

/** The most letters that may differ: two of them may have changed their places. */
const MAX_DISTANCE = 2;

/** What a mistyped word may have meant, as the end of a message; an empty text if no name is like it. */
export function suggestion(word = '', names: readonly string[]): string {
  const letters = word.replace(/^-+/, '').length;
  const meant = closestMatch(word, [...names], { maxDistance: Math.min(MAX_DISTANCE, letters - 1) });
  return meant === undefined ? '' : `: did you mean ${meant}?`;
}
