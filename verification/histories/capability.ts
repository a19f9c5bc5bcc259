import type { Answer } from '../../test/support/stack/adapters.ts';
import type { Caller, WorldFacts } from './caller.ts';
import { BEGIN } from './clocks.ts';
import type { Entry, Violation } from './history.ts';

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
interface Other {
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

interface Told {
  expiresAt?: string | null;
}

export const isBoundExpiry = (expiresAt: string | null | undefined): boolean =>
  Date.parse(expiresAt ?? '') - BEGIN > LONGER_THAN_TTLS_MS;

/** True if a refusal names a bound holder: its execution may have ended, and the events be lost. By then, the ttl of every other holder is over. */
function isRefusedByBound({ outcome, body = {} }: Pick<Entry, 'outcome' | 'body'>): boolean {
  if (outcome !== 'LeaseHeld' && outcome !== 'WrongKind') return false;
  const { holders = [body as Told] } = body as { holders?: Told[] };
  return holders.some(({ expiresAt }) => isBoundExpiry(expiresAt));
}

/** Asks for a key in the end. If bound holders keep the key, this call makes the service ask about their executions, and the same request comes once more. */
export async function acquireInTheEnd(caller: Caller, request: Record<string, unknown>): Promise<Answer | undefined> {
  const answer = await caller.call('acquire', request);
  if (!answer || !isRefusedByBound(answer)) return answer;
  await caller.sleep(LOOKED_AFTER_MS);
  return caller.call('acquire', request);
}

/** What that caller must not meet. A dead bound holder is gone two minutes after the first request. */
export function stuck(entries: readonly Entry[], promise: string): Violation[] {
  const last = entries.filter(({ actor }) => actor === AFTERWARDS);
  const isAskedAgain = ({ input, calledAt }: Entry) =>
    last.some(
      (later) =>
        later.call === 'acquire' &&
        later.input.key === input.key &&
        later.input.requestId === input.requestId &&
        later.calledAt.ms >= calledAt.ms + LOOKED_AFTER_MS,
    );
  return last
    .filter((entry) => entry.outcome !== 'ok' && !(isRefusedByBound(entry) && isAskedAgain(entry)))
    .map((entry) => ({
      promise,
      detail: `${entry.call} was answered ${entry.outcome ?? 'nothing'}`,
      entries: [entry],
    }));
}
