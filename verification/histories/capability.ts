import type { Caller, WorldFacts } from './caller.ts';
import { BEGIN } from './clocks.ts';
import type { Entry, Violation } from './history.ts';
import { CLOCK_SKEW_MS } from './service.ts';

/**
 * A capability in the histories, with files of its own in capabilities/: what its callers do, and which promises must hold
 * for what they were answered. A new one is added to `CAPABILITIES` (world.ts), and its handlers to service.ts. The seeds
 * of the mutations stay valid, because each mutation plays a single capability.
 */
export interface Capability {
  name: string;
  /** The share of histories that it joins, 0 to 1, whatever else the seed decides. Undefined if chance picks it like the others. */
  occasional?: number;
  /** A step of a caller on one of a few keys, as `caller.random` decides. */
  act(caller: Caller): Promise<void>;
  /** A step of a third-party client that shares the stores. */
  actForeign?(caller: Caller): Promise<void>;
  /** Actors besides the callers, such as a schedule. */
  others?: readonly Other[];
  /** The capabilities whose callers it joins. Undefined if it has callers of its own. */
  among?: readonly string[];
  /** After all faults have stopped, shows that nothing is stuck, and resolves each unknown outcome. */
  settle(caller: Caller): Promise<void>;
  /** The promises that the history of a world breaks. */
  check(history: readonly Entry[], facts: WorldFacts): Violation[];
}

/** An actor besides the callers, with its own number of steps. */
export interface Other {
  name: string;
  steps: number;
  /** The share of histories that it joins, 0 to 1. Undefined for all. */
  share?: number;
  act(caller: Caller): Promise<void>;
}

/** The caller that comes when all faults have stopped. */
export const AFTERWARDS = 'afterwards';

/** How long after the first call that meets a dead bound holder its grant must be gone. */
export const LOOKED_AFTER_MS = 120_000;
/** No grant with a ttl lasts this long, and every bound grant lasts longer. */
const LONGER_THAN_TTLS_MS = 300 * 86_400_000;

export const isBoundExpiry = (expiresAt: string | null | undefined): boolean =>
  Date.parse(expiresAt ?? '') - BEGIN > LONGER_THAN_TTLS_MS;

/** How long after the end of an execution every call can know of it: a status is at most a minute old, and so is a ttl. */
export const CERTAIN_AFTER_MS = 62_000 + CLOCK_SKEW_MS;

/**
 * The errors that the last caller must not receive, as its last answer about a key. If a holder whose execution has ended has a bound grant, this
 * caller asks about the execution, and receives the key when its grace is over.
 */
export const stuck = (entries: readonly Entry[], promise: string): Violation[] =>
  entries
    .filter(({ actor, outcome }) => actor === AFTERWARDS && outcome !== 'ok')
    .filter((entry) => entry.call !== 'acquire' || !isAskedAgain(entry, entries))
    .map((entry) => ({
      promise,
      detail: `${entry.call} was answered ${entry.outcome ?? 'nothing'}`,
      entries: [entry],
    }));

const isAskedAgain = ({ actor, call, input }: Entry, entries: readonly Entry[]): boolean =>
  entries.findLast((one) => one.actor === actor && one.call === call && one.input.key === input.key)?.input !== input;
