/** The exports of the main module for modules that are loaded later, and for other entries. */
export { obtain } from './acquire.ts';
export { assertTimes, attempt, insist, inTime, isTransient, persist } from './attempt.ts';
export { invalidRequest, isHeld, leaseLost } from './errors.ts';
export { giveBack, RELEASE_MS } from './give-back.ts';
export { escaped } from './query.ts';
export { interruptible, moment, since, sleep, stayAlive, systemSurroundings, watch } from './surroundings.ts';
