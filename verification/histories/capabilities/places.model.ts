import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { type LockState, NO_LOCK } from '../landed.ts';
import { eventsOf, type Grant, MOVED_FIRST, Moves, nameOf } from './line.model.ts';

// Callers that sleep between two calls (docs/protocols/places.md).

const MARK_STAYS = 'the mark stays while a place is live';
const NOT_PASSED = 'a caller that sleeps is not passed by one that does not wait';
const KEEPS_POSITION = 'a caller that comes back in time keeps its position';
const WITHDRAWN = 'a withdrawn request holds no lease';

/** How long the line waits for a sleeper that is next, after the sleeper was due. */
const WAITED_FOR_MS = 10_000;

type Event = ReturnType<typeof eventsOf>[number];

/** A place that was not withdrawn. */
interface Place {
  ticket: string;
  request: string;
  entry: Entry;
  /** Until when the place is kept, and since which write. */
  kept: { since: number; until: number }[];
  /** When its caller is due. */
  awakeMs: number;
  /** Whether its caller has raised the mark. */
  isMarked: boolean;
}

interface Where {
  key: string;
  /** Whether a third-party client or a clean-up may delete the record, and the mark with it. */
  mayLoseMark: boolean;
}

/** Whether the record shows a grant of the request, or remembers its end. */
const isKnown = ({ entries, ring }: LockState, request: string): boolean =>
  [...entries, ...ring].some(({ name }) => name === request);

/** The places of a key at a moment of the history. */
class Places {
  readonly #where: Where;
  readonly #spreadMs: number;
  readonly #places = new Map<string, Place>();
  /** The requests that have had a whole grant. */
  readonly #served = new Set<string>();
  /** The moments in which each call read the line. */
  readonly #reads = new Map<Entry, number[]>();
  #state = NO_LOCK;
  readonly #moves = new Moves();

  constructor(where: Where, spreadMs: number) {
    this.#where = where;
    this.#spreadMs = spreadMs;
  }

  take(event: Event): void {
    const { moment, entry } = event;
    this.#moves.take(event);
    switch (event.what) {
      case 'place': {
        const { ticket, request, keepUntil } = event;
        const kept = [{ since: moment, until: keepUntil - BEGIN }];
        const awakeMs = Number(event.awakeAt) - BEGIN;
        this.#places.set(ticket, { ticket, request, entry, kept, awakeMs, isMarked: false });
        break;
      }
      case 'extension': {
        const place = this.#places.get(event.ticket);
        if (place) place.awakeMs = Number(event.awakeAt) - BEGIN;
        place?.kept.push({ since: moment, until: event.keepUntil - BEGIN });
        break;
      }
      case 'placeFlag':
      case 'placeDeletion':
        this.#places.delete(event.ticket);
        break;
      case 'mark': {
        const place = this.#places.get(event.ticket);
        if (place?.entry === entry) place.isMarked = true;
        break;
      }
      case 'query':
        this.#reads.set(entry, [...(this.#reads.get(entry) ?? []), moment]);
        break;
      case 'grant':
        if (!event.isWindow) this.#served.add(event.request);
        // A second ticket of a request waits for the outcome of the first, and the grant may have removed the mark.
        for (const place of this.#places.values())
          if (place.request === event.request && place.ticket !== event.ticket) place.isMarked = false;
        break;
      case 'claim':
        this.#served.add(nameOf(entry));
        break;
      case 'lock':
        // If the caller has not claimed that grant, it comes back to a record without a mark.
        if (!event.state.isMarked)
          for (const place of this.#places.values()) if (isKnown(this.#state, place.request)) place.isMarked = false;
        this.#state = event.state;
    }
  }

  /** @returns the promise that the event breaks, and the place that it harms */
  broken(event: Event): { promise: string; place: Place } | undefined {
    const { mayLoseMark } = this.#where;
    if (event.what === 'lock' && !event.state.isMarked) return this.#unmarked(event, event.state);
    if (event.what === 'grant' && event.ticket === undefined && !mayLoseMark) return this.#passed(event);
    if (event.what === 'grant') return this.#servedBefore(event);
    if (event.what === 'row' || event.what === 'place') return this.#moved(event);
    return undefined;
  }

  /** The line waits for a sleeper that an operator has moved until ten seconds after the sleeper was due. */
  #servedBefore(grant: Grant) {
    const place = this.#places.get(this.#moves.before(grant) ?? '');
    if (!place || grant.ticket === undefined || grant.ticket === place.ticket) return undefined;
    if (this.#moves.isServed(place.ticket) || this.#mayHaveHad(place)) return undefined;
    const isDue = grant.ms > place.awakeMs + WAITED_FOR_MS - this.#spreadMs;
    return isDue || Number.isNaN(place.awakeMs) ? undefined : { promise: MOVED_FIRST, place };
  }

  /** A write must not remove the mark if its call has read a live place. */
  #unmarked(event: Event, after: LockState) {
    const { entry, sent } = event;
    const isOurs = !entry.foreign && entry.call !== 'clean';
    if (!this.#state.isMarked || !isOurs) return undefined;
    const readAt = this.#reads.get(entry)?.findLast((moment) => moment < sent) ?? 0;
    const place = [...this.#places.values()].find(
      (one) =>
        this.#isLive(one, { ms: event.ms, moment: readAt }) &&
        !isKnown(this.#state, one.request) &&
        !isKnown(after, one.request),
    );
    return place && { promise: MARK_STAYS, place };
  }

  #passed({ ms, moment }: Event) {
    const place = [...this.#places.values()].find(
      (one) => one.isMarked && this.#isLive(one, { ms, moment }) && !this.#mayHaveHad(one),
    );
    return place && { promise: NOT_PASSED, place };
  }

  /** A call that names its ticket must not put a row or a place with another ticket. */
  #moved({ entry, ticket, ms }: Extract<Event, { what: 'row' | 'place' }>) {
    if (entry.input.ticket === undefined || entry.input.ticket === ticket) return undefined;
    const place = this.#places.get(String(entry.input.ticket));
    const isOwn = place?.request === nameOf(entry) && entry.input.taskToken === undefined;
    if (!isOwn || this.#mayHaveHad(place) || !this.#isLive(place, { ms, moment: entry.calledAt.moment }))
      return undefined;
    return { promise: KEEPS_POSITION, place };
  }

  /** Whether the place, as it was at `moment`, is kept past `ms` by every clock. */
  #isLive({ kept }: Place, { ms, moment }: { ms: number; moment: number }): boolean {
    const last = kept.findLast(({ since }) => since < moment);
    return last !== undefined && last.until > ms + this.#spreadMs;
  }

  #mayHaveHad({ request }: Place): boolean {
    return this.#served.has(request) || isKnown(this.#state, request);
  }
}

/** A caller does not lose a live place, neither by the removal of the mark nor by a new ticket behind all others. */
export function placeRules(history: readonly Entry[], where: Where, { spreadMs }: WorldFacts): Violation[] {
  const { key } = where;
  const places = new Places(where, spreadMs);
  for (const event of eventsOf(history, key)) {
    const broken = places.broken(event);
    if (broken) {
      const { promise, place } = broken;
      const detail = `${event.entry.actor} against ${place.entry.actor}, who has the place ${place.ticket}`;
      return [{ promise, detail, entries: [place.entry, event.entry] }];
    }
    places.take(event);
  }
  return withdrawnForGood(history, key);
}

/** Promise 10: no call that was in line receives a grant that it wrote, or claimed, after a withdrawal or a cancellation was answered. */
function withdrawnForGood(history: readonly Entry[], key: string): Violation[] {
  const grants = eventsOf(history, key).filter((event) => event.what === 'grant');
  const ended = history.filter(
    ({ call, input, body }) =>
      (call === 'withdraw' || call === 'cancelWaiter') && input.key === key && body?.cancelled === true,
  );
  return ended.flatMap((end) => {
    const endedAt = Number(end.answeredAt?.moment);
    const isOfIt = (one: Entry) => {
      if (end.call === 'withdraw') return nameOf(one) === nameOf(end) && wasInLine(one, end);
      const { ticket } = end.input;
      return grants.some((grant) => grant.ticket === ticket && grant.leaseId === one.body?.leaseId);
    };
    const holder = history.find(
      (one) =>
        one.call === 'acquire' &&
        one.outcome === 'ok' &&
        one.input.key === key &&
        isOfIt(one) &&
        one.landed?.some(
          ({ what, moment, ...landed }) =>
            moment > endedAt &&
            (what === 'claim' || (what === 'grant' && 'leaseId' in landed && landed.leaseId === one.body?.leaseId)),
        ),
    );
    if (!holder) return [];
    return [{ promise: WITHDRAWN, detail: `${holder.actor} was granted the key`, entries: [end, holder] }];
  });
}

/** The call had a row or a place when the withdrawal was sent, under the ticket that the withdrawal names if it names one. */
const wasInLine = ({ landed = [] }: Entry, { calledAt, input }: Entry): boolean =>
  landed.some(
    (one) =>
      one.moment < calledAt.moment &&
      (one.what === 'row' || one.what === 'deadline' || one.what === 'place' || one.what === 'extension') &&
      (input.ticket === undefined || input.ticket === one.ticket),
  );
