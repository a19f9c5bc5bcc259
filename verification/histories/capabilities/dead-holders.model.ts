import { ASK_EVERY_MS } from '../../../shared/locks/dependencies.ts';
import type { WorldFacts } from '../caller.ts';
import { isBoundExpiry, LOOKED_AFTER_MS } from '../capability.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { eventsOf, nameOf } from './line.model.ts';

// When the bound grant of an ended execution must be gone, although no ttl ends it (docs/protocols/bound.md).

const DEAD_HOLDER_GONE = 'a dead bound holder is gone two minutes after a caller or task wants the key';

/** How long AWS may show an ended execution as running (work.ts). */
const STATUS_LAG_MS = 1000;
/** A status is at most this old, so that an end is certain after this time. */
const SURE_AFTER_MS = 60_000;
/** Longer than any call lasts, even in a function that stands still for a time. */
const MAX_CALL_MS = 160_000;
/** The most permits that a look at a key asks about. */
const MAX_ASKED = 5;

interface Holder {
  holder: string | null;
  fence: number | null;
  expiresAt: string | null;
}

/** The bound holders that an answer shows. */
function boundHoldersIn({ call, outcome, body = {} }: Entry): Holder[] {
  const isRefusal = call === 'acquire' && outcome === 'LeaseHeld';
  if (!isRefusal && !(call === 'readLeases' && outcome === 'ok')) return [];
  const { holders = [body as unknown as Holder] } = body as { holders?: Holder[] };
  return holders.filter(({ expiresAt }) => isBoundExpiry(expiresAt));
}

const lastMs = ({ answeredAt, calledAt, strays }: Entry): number =>
  answeredAt && strays === 0 ? answeredAt.ms : calledAt.ms + MAX_CALL_MS;

/** When a call or a task of a holder may last have been answered with its grant. */
export const lastAnsweredMs = (history: readonly Entry[], { key, holder }: Readonly<Record<string, unknown>>): number =>
  Math.max(
    ...history
      .filter(({ call, input }) => call === 'acquire' && input.key === key && input.holder === holder)
      .map(lastMs),
    ...history
      .filter(({ call, input }) => call === 'task' && input.key === key && input.holder === holder)
      .map(({ answeredAt, calledAt }) => answeredAt?.ms ?? calledAt.ms),
  );

/** Calls that no fault has struck and that ask about the holders of a key: a plain caller that is refused, and the schedule if a caller or task waits. */
function wantsOf(history: readonly Entry[], key: string): Entry[] {
  const events = eventsOf(history, key);
  const isInLine = (moment: number) => {
    const rows = new Set<string>();
    for (const event of events) {
      if (event.moment > moment) break;
      if (event.what === 'row') rows.add(event.ticket);
      if (event.what === 'deletion' || event.what === 'flag') rows.delete(event.ticket);
    }
    return rows.size > 0;
  };
  return history.filter((entry) => {
    const { call, input, body, faults, answeredAt, calledAt } = entry;
    if (faults.length > 0 || !answeredAt) return false;
    if (call === 'repairQueues')
      return (
        input.key === undefined && body?.complete === true && isInLine(calledAt.moment) && isInLine(answeredAt.moment)
      );
    const isPlain = call === 'acquire' && input.key === key && !input.waitSeconds && !input.taskToken;
    return isPlain && boundHoldersIn(entry).length > 0;
  });
}

/**
 * Since when every call can know that the execution of a grant has ended, or that it was redriven and not answered with the grant again. If a clock may
 * date the last answer less than the margin before the redrive, the grant lasts until the next end.
 */
function deadSince(
  ofKey: readonly Entry[],
  { key, holder, fence, spreadMs }: Pick<Holder, 'holder' | 'fence'> & { key: string; spreadMs: number },
): number | undefined {
  const grant = eventsOf(ofKey, key).find((event) => event.what === 'grant' && event.fence === fence);
  const ofGrant = ofKey.filter((one) => grant?.what !== 'grant' || nameOf(one) === grant.request);
  const answeredMs = Math.max(Number(fence) - BEGIN, lastAnsweredMs(ofGrant, { key, holder }));
  const lastOf = (what: string) => ofKey.findLast(({ call, input }) => call === what && input.holder === holder);
  const [end, redriven] = [lastOf('executionEnds'), lastOf('executionRedriven')];
  if (redriven && answeredMs + spreadMs + CLOCK_SKEW_MS < redriven.calledAt.ms)
    return redriven.calledAt.ms + SURE_AFTER_MS + ASK_EVERY_MS;
  if (!end || (redriven && redriven.calledAt.moment > end.calledAt.moment)) return undefined;
  return Math.max(end.calledAt.ms + STATUS_LAG_MS + ASK_EVERY_MS, answeredMs + SURE_AFTER_MS);
}

/** Whether another call may have asked in place of this one, and learned nothing, because a fault struck it. */
export const isDisturbed = (
  { calledAt, answeredAt }: Entry,
  history: readonly Entry[],
  { key, spreadMs }: { key: string; spreadMs: number },
): boolean =>
  history.some(
    (one) =>
      (one.input.key === key || one.call === 'repairQueues') &&
      one.faults.length > 0 &&
      one.calledAt.ms < Number(answeredAt?.ms) &&
      lastMs(one) + ASK_EVERY_MS + spreadMs > calledAt.ms,
  );

/** The lease of an execution that has a target passes to the target. */
export function deadHolderGone(
  history: readonly Entry[],
  key: string,
  { spreadMs }: Pick<WorldFacts, 'spreadMs'>,
): Violation[] {
  const ofKey = history.filter(({ input }) => input.key === key);
  const wants = wantsOf(history, key);
  for (const seen of ofKey)
    for (const { holder, fence } of boundHoldersIn(seen)) {
      const deadMs = deadSince(ofKey, { key, holder, fence, spreadMs });
      const hasTarget = ofKey.some(({ input }) => input.holder === holder && input.target !== undefined);
      if (deadMs === undefined || hasTarget) continue;
      const want = wants.find(
        (one) =>
          one.calledAt.ms > deadMs + spreadMs &&
          one.calledAt.ms + LOOKED_AFTER_MS <= seen.calledAt.ms &&
          boundHoldersIn(one).length <= MAX_ASKED &&
          !isDisturbed(one, history, { key, spreadMs }),
      );
      if (!want) continue;
      const detail = `${seen.actor} meets ${holder}, and every call can know since ${deadMs.toFixed(0)} ms that its execution ended`;
      return [{ promise: DEAD_HOLDER_GONE, detail, entries: [want, seen] }];
    }
  return [];
}
