/** The product's times in ticks: how old a status may be, how far clocks differ, when a status is believed, how late an event may come. */
export const LAG = 2;
export const MARGIN = 1;
export const SETTLE = 3;
export const DELAY = 1;
/** How often a caller that wants the key asks about its holder, and how long code goes on after a stop. */
export const PERIOD = 2;
export const GRACE = 2;
export const GUESSED_TTL = 3;
/** After this time, the grant of an ended execution must be gone. */
export const BOUND = SETTLE + 2 * PERIOD + LAG + DELAY + GRACE + 2;

export const MUTANTS = {
  silentRepeat: 'a repeat of the grant writes neither a version nor a time',
  eventBelieved: 'the first pass does not compare the end with the last answer',
  staleBelieved: 'a look does not compare the end with the last answer',
  noQuestion: 'the first pass believes an event about an answer within the margin before its end',
  noRedrive: 'an execution that runs keeps what it received before its redrive',
  noMargin: 'the time of a redrive is compared without the margin',
  noVersion: 'the write that frees names the execution, and not the version that was read',
  noLooks: 'nothing but the events frees the lease',
  firstPassAlone: 'only the first pass frees the lease',
  noGrace: 'the lease of a stopped execution is free at once',
  guessedTtl: 'an ordinary lease has a ttl that is too short',
  secondPassEndsGrace: 'the second pass frees a lease in its grace',
} as const;
export type Mutant = keyof typeof MUTANTS;
