/** What the main module exports for the other entries, and for the modules that it loads later. */
export { acquireOrReadSlot } from './acquire.ts';
export { assertTimes, attempt, call, inTime, isTransient, retry } from './attempt.ts';
export { invalidRequest, isHeld, leaseLost } from './errors.ts';
export { escaped } from './query.ts';
export { RELEASE_MS, tryRelease } from './release.ts';
export { interruptible, moment, since, sleep, stayAlive, systemSurroundings, watch } from './surroundings.ts';
