import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import type { LockState } from '../landed.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { eventsOf } from './line.model.ts';
import { type Terms, termsOf } from './permits.model.ts';

// What an operator caps (docs/protocols/cap.md).

export const CAP_KEPT = 'no caller is granted the key while its cap is reached';
export const PAUSE_KEPT = 'no reservation is made and no slot begins under a pause';
export const LAST_COMMAND = 'only a later command changes a cap';

/** Longer than any call lasts, even in a function that stands still for a time. */
const MAX_CALL_MS = 160_000;

/** An answered command. Its cap counts from the answer until another command may have landed, or until the cap ends by itself. */
interface Order {
  entry: Entry;
  /** Null after a lift. */
  limit: number | null;
  from: number;
  until: number;
  untilMs: number;
}

const isOfPause = ({ input }: Entry): boolean => input.limit === 0 || input.limit === null;

/** The commands on a key, as a lock, as a rate, or as a key of `once`. */
function ordersOn(
  history: readonly Entry[],
  { key, kind }: { key: string; kind: 'lock' | 'rate' | 'once' },
  { spreadMs }: Pick<WorldFacts, 'spreadMs'>,
): Order[] {
  const commands = history.filter(({ call, input }) => {
    const isOnce = input.kind === 'once';
    return call === 'capKey' && input.key === key && input.limit !== undefined && isOnce === (kind === 'once');
  });
  return commands.flatMap((entry) => {
    const { input, outcome, calledAt, answeredAt } = entry;
    // Another limit than 0 lifts the pause of a rate.
    const limit = kind === 'rate' && !isOfPause(entry) ? null : (input.limit as number | null);
    if (outcome !== 'ok' || !answeredAt) return [];
    const others = commands.filter((one) => one !== entry);
    if (others.some((one) => mayComeAfter(one, entry, spreadMs))) return [];
    const next = others.filter((one) => one.calledAt.moment > calledAt.moment).map((one) => one.calledAt.moment);
    const lastsMs = Number(input.forSeconds ?? Number.POSITIVE_INFINITY) * 1000;
    const untilMs = calledAt.ms + lastsMs - spreadMs;
    return [{ entry, limit, from: answeredAt.moment, until: Math.min(...next), untilMs }];
  });
}

/** Whether a command may count after another one because it was called before the other one was answered. Clocks may order the two either way. */
function mayComeAfter(one: Entry, other: Entry, spreadMs: number): boolean {
  if (one.calledAt.moment > Number(other.answeredAt?.moment)) return false;
  const endedMs = one.answeredAt?.ms ?? one.calledAt.ms + MAX_CALL_MS;
  return endedMs + spreadMs >= other.calledAt.ms;
}

/** Whether a grant breaks a cap. @param used the weight in use, with that of the grant */
const isBeyond = (limit: number, { weight }: Pick<Terms, 'weight'>, used: number): boolean =>
  limit === 0 || used > Math.max(limit, weight);

/** The weight and the limit of a request under the cap on record. @param ms a moment: the cap counts then, unless it ended before by every clock */
export function termsUnder(
  { cap }: Pick<LockState, 'cap'>,
  entry: Entry,
  { ms, spreadMs }: { ms: number; spreadMs: number },
): Terms {
  const { weight, limit } = termsOf(entry);
  const isOver = cap?.until !== undefined && cap.until - BEGIN + CLOCK_SKEW_MS + spreadMs < ms;
  if (!cap || isOver) return { weight, limit };
  return { weight, limit: cap.limit === 0 ? -1 : Math.min(limit, Math.max(cap.limit, weight)) };
}

/** No grant exceeds a cap that was answered to an operator, or that is on record. */
export function capKept(history: readonly Entry[], key: string, facts: WorldFacts): Violation[] {
  // A third-party client that has the key replaces the record, and the cap with it.
  if (facts.foreignLeases || !history.some(({ call, input }) => call === 'capKey' && input.key === key)) return [];
  const orders = ordersOn(history, { key, kind: 'lock' }, facts);
  let before: LockState | undefined;
  for (const event of eventsOf(history, key)) {
    if (event.what !== 'lock') continue;
    const { state: after, entry, moment, ms } = event;
    const known = before?.entries ?? [];
    const granted = after.entries.filter(({ id }) => !known.some((one) => one.id === id));
    const { cap } = before ?? {};
    const isOnRecord = cap && !(cap.until !== undefined && cap.until - BEGIN - facts.spreadMs < ms);
    const limits = orders
      .filter(({ from, until, untilMs }) => from < moment && moment < until && ms < untilMs)
      .flatMap(({ limit, entry: command }) => (limit === null ? [] : [{ limit, command }]));
    if (isOnRecord) limits.push({ limit: cap.limit, command: entry });
    for (const one of granted) {
      const used = after.entries.filter(({ fence }) => fence <= one.fence).reduce((sum, { weight }) => sum + weight, 0);
      const broken = limits.find(({ limit }) => isBeyond(limit, one, used));
      if (!broken) continue;
      const detail = `${one.holder} is granted the key, to make ${used}, and the cap is ${broken.limit}`;
      return [{ promise: CAP_KEPT, detail, entries: [broken.command, entry] }];
    }
    const isOlder = Number(after.capAt) < Number(before?.capAt);
    const isOther = after.capAt === before?.capAt && after.cap?.limit !== before?.cap?.limit;
    if (isOlder || isOther || (isOnRecord && after.capAt === undefined))
      return [{ promise: LAST_COMMAND, detail: `${entry.actor} leaves ${after.cap?.limit}`, entries: [entry] }];
    before = after;
  }
  return [];
}

/** In a pause, no call reserves at a rate, and no slot begins. */
export function pauseKept(
  history: readonly Entry[],
  { key, kind }: { key: string; kind: 'rate' | 'once' },
  facts: WorldFacts,
): Violation[] {
  const orders = ordersOn(history, { key, kind }, facts).filter(({ limit }) => limit === 0);
  return orders.flatMap(({ entry: command, from, until, untilMs }) => {
    const isIn = ({ moment, ms }: { moment: number; ms: number }) => moment > from && moment < until && ms < untilMs;
    const begun = history.find(({ call, input, outcome, body, landed = [], calledAt, answeredAt }) => {
      if (input.key !== key) return false;
      if (kind === 'rate') return landed.some((one) => one.what === 'reserved' && isIn(one));
      const isRun = call === 'onceBegin' && outcome === 'ok' && body?.outcome === 'run';
      return isRun && body.repeated === false && isIn(calledAt) && answeredAt !== undefined && isIn(answeredAt);
    });
    if (!begun) return [];
    return [{ promise: PAUSE_KEPT, detail: `${begun.actor} under the pause of ${key}`, entries: [command, begun] }];
  });
}
