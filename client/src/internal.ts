/** The exports of the main module for modules that are loaded later. */
export { once, persist } from './attempt.ts';
export { invalidRequest } from './errors.ts';
export { escaped } from './query.ts';
export { interruptible, stayAlive, systemSurroundings } from './surroundings.ts';
