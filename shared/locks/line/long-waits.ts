import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { nameWithin } from '../../namespace.ts';
import { logLine } from '../../surroundings/log.ts';
import type { LeaseDependencies, WaitEvents } from '../dependencies.ts';
import { readKey } from '../record/requests.ts';
import { keySummary } from '../record/views.ts';
import { readWaiting } from './listed-waiters.ts';
import { BELOW_PLACES, isInLine, parkedAtOf, placeOf, readWaiters, type Waiter } from './waiters.ts';

const LEASE_WAITED = 'Lease Waited';

/** The event about a key (docs/events.md). */
interface LeaseWaited {
  /** As the oldest waiter names it. */
  key: string;
  namespace: string | null;
  /** How many tasks and callers are in line, counted up to 100. */
  waiting: number;
  /** How many periods the oldest waiter has waited. */
  times: number;
  oldest: { ticket: string; holder: string; waitedSeconds: number };
  /** The holder that has had the key for the longest time. */
  held: { holder: string | null; fence: number | null; since: string | null } | null;
}

/** The run after one that was cut short or skipped still puts the event. So each event may be put twice. */
const JUST_PASSED_MS = 120_000;

/** The oldest waiters of each kind that a look reads. Some may have grants already. */
const MOST_FOUND = 10;

/** Rows that are left behind come first, and the repair deletes them. A key with more of these has no event in this run. */
const MAX_READ = 50;

/** One run of the schedule, which looks at the oldest waiter of each key, whether that is awake or asleep. */
export class LongWaits {
  readonly #dependencies: LeaseDependencies;
  readonly #to: WaitEvents;
  readonly #told: Map<string, string>;
  readonly #events = new Map<string, LeaseWaited>();

  /** @param told by key, what earlier runs in this process have put. It spares consumers most repeats */
  constructor(dependencies: LeaseDependencies, to: WaitEvents, told: Map<string, string>) {
    [this.#dependencies, this.#to, this.#told] = [dependencies, to, told];
  }

  /** @throws HoldfastError Throttled, Unavailable */
  async look(key: string, call: Call): Promise<void> {
    const [{ clock }, { overdueMs }] = [this.#dependencies, this.#to];
    const rows = await oldestRows(this.#dependencies, key, call);
    if (!rows.some((row) => timesOf(row, { overdueMs, now: clock.now() }))) return;
    const record = await readKey(this.#dependencies, key, call);
    const granted = new Set(record.entries.map(({ ticket }) => ticket));
    const oldest = rows.find(({ ticket }) => !granted.has(ticket));
    const now = clock.now();
    const times = oldest && timesOf(oldest, { overdueMs, now });
    if (!times || this.#told.get(key) === toldOf({ ticket: oldest.ticket, times })) return;
    const { waiting } = await readWaiting(this.#dependencies, { key, granted, limit: 0 }, call);
    const { ticket, holder, namespace } = oldest;
    const summary = keySummary(record, now, { by: 'age' });
    const isHeld = summary.state === 'held' || summary.state === 'expired';
    this.#events.set(key, {
      ...{ key: nameWithin(namespace, key), namespace: namespace ?? null, waiting, times },
      oldest: { ticket, holder, waitedSeconds: Math.floor((now - parkedAtOf(ticket)) / 1000) },
      held: isHeld ? { holder: summary.holder, fence: summary.fence, since: summary.acquiredAt } : null,
    });
  }

  /** If the bus takes no events, the next run puts them again. The waiters are served all the same. */
  async put({ signal }: Call): Promise<void> {
    if (this.#events.size === 0) return;
    try {
      await this.#to.put(LEASE_WAITED, [...this.#events.values()], signal);
      for (const [key, { oldest, times }] of this.#events)
        this.#told.set(key, toldOf({ ticket: oldest.ticket, times }));
    } catch (error) {
      const { name, message } = error as Error;
      logLine('ERROR', { message: 'the events of long waits were not put on the bus', cause: { name, message } });
    }
  }
}

const toldOf = ({ ticket, times }: { ticket: string; times: number }): string => `${times} ${ticket}`;

/** How many periods a waiter has waited, if the last one has just passed; otherwise undefined. */
function timesOf({ ticket }: Waiter, { overdueMs, now }: { overdueMs: number; now: number }): number | undefined {
  const waitedMs = now - parkedAtOf(ticket);
  return waitedMs >= overdueMs && waitedMs % overdueMs < JUST_PASSED_MS ? Math.floor(waitedMs / overdueMs) : undefined;
}

/** The oldest waiters first. Places sort after all rows in line, even if they are older. */
async function oldestRows(dependencies: LeaseDependencies, key: string, call: Call): Promise<Waiter[]> {
  const now = dependencies.clock.now();
  const places = {
    KeyConditionExpression: '#key = :key AND ticket BETWEEN :places AND :executions',
    ExpressionAttributeValues: { ':places': text(placeOf('')) },
  };
  const found: Waiter[] = [];
  for (const query of [{ ExpressionAttributeValues: BELOW_PLACES }, places]) {
    const most = found.length + MOST_FOUND;
    let read = 0;
    for await (const row of readWaiters(
      dependencies,
      { key, firstPage: MOST_FOUND, ConsistentRead: false, ...query },
      call,
    )) {
      if (isInLine(row, now)) found.push(row);
      if (++read === MAX_READ || found.length === most) break;
    }
  }
  return found.toSorted((one, other) => parkedAtOf(one.ticket) - parkedAtOf(other.ticket));
}
