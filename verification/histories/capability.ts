import type { Caller, WorldFacts } from './caller.ts';
import { BEGIN } from './clocks.ts';
import type { Entry, Violation } from './history.ts';
import { CLOCK_SKEW_MS } from './service.ts';

/**
 * What a capability brings to the histories, in files of its own under capabilities/: what its callers do, and what must be
 * true of what they were told. Another one joins by its place in `CAPABILITIES` (world.ts) and its handlers in service.ts;
 * the seeds of the mutations stay valid, because each names the capability that it plays alone.
 */
export interface Capability {
  name: string;
  /** In how many of the histories of all capabilities it takes part, 0 to 1, beside what else a seed decides; absent where chance picks it as the others. */
  occasional?: number;
  /** One thing that a caller does, on few keys, as `caller.random` decides. */
  act(caller: Caller): Promise<void>;
  /** The same of a third-party client that shares the stores; absent where there is none. */
  actForeign?(caller: Caller): Promise<void>;
  /** Actors besides the callers, such as a schedule. */
  others?: readonly Other[];
  /** What it acts among; absent where it has callers of its own. */
  among?: readonly string[];
  /** After all faults have stopped: what shows that nothing is stuck, and what became of everything unknown. */
  settle(caller: Caller): Promise<void>;
  /** The promises that the history of a world breaks. */
  check(history: readonly Entry[], facts: WorldFacts): Violation[];
}

/** An actor of its own name and number of steps. */
export interface Other {
  name: string;
  steps: number;
  /** In how many of the histories it takes part, 0 to 1; in all where absent. */
  share?: number;
  act(caller: Caller): Promise<void>;
}

/** The caller that comes when all faults have stopped. */
export const AFTERWARDS = 'afterwards';

/** A dead bound holder is gone so long after the first call that meets it. */
export const LOOKED_AFTER_MS = 120_000;
/** No grant with a ttl lasts this long, and every bound grant lasts longer. */
const LONGER_THAN_TTLS_MS = 300 * 86_400_000;

export const isBoundExpiry = (expiresAt: string | null | undefined): boolean =>
  Date.parse(expiresAt ?? '') - BEGIN > LONGER_THAN_TTLS_MS;

/** So long after the last end every call can know of it: no status is older than a minute, and no ttl is longer. */
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
