/** The exports of the main module for modules that are loaded later, and for other entries. */
export { isTransient, once, persist } from './attempt.ts';
export { invalidRequest } from './errors.ts';
export { escaped } from './query.ts';
export { interruptible, moment, since, stayAlive, systemSurroundings } from './surroundings.ts';
export { watch } from './watched-signal.ts';
