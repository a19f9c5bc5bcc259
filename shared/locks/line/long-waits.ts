import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { nameWithin } from '../../namespace.ts';
import { logLine } from '../../surroundings/log.ts';
import type { CapView } from '../calls/types.ts';
import type { LeaseDependencies, WaitEvents } from '../dependencies.ts';
import { capAt, capView } from '../record/capped.ts';
import { readKey } from '../record/requests.ts';
import { keySummary } from '../record/views.ts';
import { readWaiting } from './listed-waiters.ts';
import { BELOW_PLACES, isInLine, parkedAtOf, placeKeyOf, readWaiters, type Waiter } from './waiters.ts';

const LEASE_WAITED = 'Lease Waited';

/** The event about a key whose oldest waiter has waited for long (docs/events.md). */
interface LeaseWaited {
  /** The key as the oldest waiter names it. */
  key: string;
  namespace: string | null;
  /** How many tasks and callers are in line, counted up to 100. */
  waiting: number;
  /** How many periods the oldest waiter has waited. */
  times: number;
  oldest: { ticket: string; holder: string; waitedSeconds: number };
  /** The holder that has had the key for the longest time. Null if the key is free. */
  held: { holder: string | null; fence: number | null; since: string | null } | null;
  cap: CapView | null;
}

/**
 * For how long after a period its event may still be put: if a run fails, the next one puts the event. Sometimes two
 * runs put the same event.
 */
const JUST_PASSED_MS = 120_000;

/** The event that this process has put last about a key, and when. It spares consumers most repeats. */
export type LastPut = Map<string, { event: string; at: number }>;

/** How many waiters that are awake a search reads, and how many that sleep. Some of them may have grants. */
const MAX_FOUND = 10;

/**
 * The most rows that a search reads of each kind. If more expired rows come first, the key has no event until the
 * repair has deleted them.
 */
const MAX_ROWS_READ = 50;

/** The long waits that one run of the schedule finds. The run checks each key, and then puts the events of all. */
export class LongWaits {
  readonly #dependencies: LeaseDependencies;
  readonly #waitEvents: WaitEvents;
  readonly #lastPut: LastPut;
  readonly #events = new Map<string, LeaseWaited>();

  /** @param lastPut the events of earlier runs. This run updates it */
  constructor(dependencies: LeaseDependencies, waitEvents: WaitEvents, lastPut: LastPut) {
    [this.#dependencies, this.#waitEvents, this.#lastPut] = [dependencies, waitEvents, lastPut];
  }

  /**
   * Notes the event of a key, if its oldest waiter has just waited for a whole number of periods.
   * @throws HoldfastError Throttled, Unavailable
   */
  async check(key: string, call: Call): Promise<void> {
    const [{ clock }, { overdueMs }] = [this.#dependencies, this.#waitEvents];
    const rows = await oldestRows(this.#dependencies, key, call);
    if (!rows.some((row) => periodsWaited(row, { overdueMs, now: clock.now() }))) return;
    const record = await readKey(this.#dependencies, key, call);
    const granted = new Set(record.entries.map(({ ticket }) => ticket));
    const oldest = rows.find(({ ticket }) => !granted.has(ticket));
    const now = clock.now();
    const times = oldest && periodsWaited(oldest, { overdueMs, now });
    if (!times || this.#lastPut.get(key)?.event === eventName({ ticket: oldest.ticket, times })) return;
    const { waiting } = await readWaiting(this.#dependencies, { key, moved: undefined, granted, limit: 0 }, call);
    const { ticket, holder, namespace } = oldest;
    const summary = keySummary(record, now, { by: 'age' });
    const cap = capAt(record, { now, clockSkewMs: 0 });
    const isHeld = summary.state === 'held' || summary.state === 'expired';
    this.#events.set(key, {
      ...{ key: nameWithin(namespace, key), namespace: namespace ?? null, waiting, times },
      oldest: { ticket, holder, waitedSeconds: Math.floor((now - parkedAtOf(ticket)) / 1000) },
      held: isHeld ? { holder: summary.holder, fence: summary.fence, since: summary.acquiredAt } : null,
      cap: cap ? capView(cap) : null,
    });
  }

  /**
   * Puts the events. If the bus refuses them, only logs the error: the repair must go on, and the next run tries again.
   */
  async put({ signal }: Call): Promise<void> {
    const { clock } = this.#dependencies;
    // Forget old events, which no run would put again. Otherwise the map would grow with each key.
    for (const [key, { at }] of this.#lastPut) if (at + JUST_PASSED_MS <= clock.now()) this.#lastPut.delete(key);
    if (this.#events.size === 0) return;
    try {
      await this.#waitEvents.put(LEASE_WAITED, [...this.#events.values()], signal);
      for (const [key, { oldest, times }] of this.#events)
        this.#lastPut.set(key, { event: eventName({ ticket: oldest.ticket, times }), at: clock.now() });
    } catch (error) {
      const { name, message } = error as Error;
      logLine('ERROR', { message: 'the events of long waits were not put on the bus', cause: { name, message } });
    }
  }
}

const eventName = ({ ticket, times }: { ticket: string; times: number }): string => `${times} ${ticket}`;

/** How many periods a waiter has waited, if the last of them ended within the last two minutes. */
function periodsWaited({ ticket }: Waiter, { overdueMs, now }: { overdueMs: number; now: number }): number | undefined {
  const waitedMs = now - parkedAtOf(ticket);
  return waitedMs >= overdueMs && waitedMs % overdueMs < JUST_PASSED_MS ? Math.floor(waitedMs / overdueMs) : undefined;
}

/**
 * The oldest waiters of a key, awake or asleep, in the order of arrival. Places sort after all rows, so each kind needs
 * a query of its own.
 */
async function oldestRows(dependencies: LeaseDependencies, key: string, call: Call): Promise<Waiter[]> {
  const now = dependencies.clock.now();
  const places = {
    KeyConditionExpression: '#key = :key AND ticket BETWEEN :places AND :executions',
    ExpressionAttributeValues: { ':places': text(placeKeyOf('')) },
  };
  const found: Waiter[] = [];
  for (const query of [{ ExpressionAttributeValues: BELOW_PLACES }, places]) {
    const maxCount = found.length + MAX_FOUND;
    let read = 0;
    for await (const row of readWaiters(
      dependencies,
      { key, firstPage: MAX_FOUND, ConsistentRead: false, ...query },
      call,
    )) {
      if (isInLine(row, now)) found.push(row);
      if (++read === MAX_ROWS_READ || found.length === maxCount) break;
    }
  }
  return found.toSorted((a, b) => parkedAtOf(a.ticket) - parkedAtOf(b.ticket));
}
