/** What the parts take from the main one that are loaded later. */
export { once, persist } from './attempt.ts';
export { invalidRequest } from './errors.ts';
export { escaped } from './query.ts';
