import { requestName } from '../../../shared/permits/identity.ts';
import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import type { Landed } from '../landed.ts';
import { CLOCK_SKEW_MS } from '../service.ts';

/** A place in line, as the tables have it. */
interface Place {
  ticket: string;
  request: string;
  deadline: number;
  entry: Entry;
  /** The moment since which it is there, or is there again. */
  since: number;
  isMarked: boolean;
  wasGranted: boolean;
}

type Event = Landed & { entry: Entry };

/** What the tables of a key have seen, in its order. */
export const eventsOf = (history: readonly Entry[], key: string): Event[] =>
  history
    .flatMap((entry) => (entry.landed ?? []).map((one) => ({ ...one, entry })))
    .filter((one) => one.key === key)
    .sort((a, b) => a.moment - b.moment);
/** The name of a task's request, for leases and for pools. */
export const namesOf = ({ input }: Entry): string[] => {
  const [holder, requestId] = [String(input.holder), String(input.requestId)];
  return [`${requestId} of ${holder}`, requestName({ holder, requestId })];
};

type Grant = Extract<Event, { what: 'grant' }>;

/** What is known of one key at a moment. */
class Line {
  readonly #isPool: boolean;
  readonly #places = new Map<string, Place>();
  /** The requests that have had a grant. */
  readonly #granted = new Set<string>();
  /** The moments of each call's looks at the line. */
  readonly #looks = new Map<Entry, number[]>();
  #last: Grant | undefined;

  constructor(isPool: boolean) {
    this.#isPool = isPool;
  }

  take(event: Event): void {
    const { moment, entry } = event;
    switch (event.what) {
      case 'row': {
        const { ticket, request, deadline } = event;
        const place = { ticket, request, deadline, entry, since: moment, isMarked: false, wasGranted: false };
        this.#places.set(ticket, place);
        break;
      }
      case 'deadline': {
        // Until the mark is raised again, it may have gone while the place did not count.
        const place = this.#places.get(event.ticket);
        if (!place) break;
        // A call that looked before saw that its time was over, by some clock.
        const wasPresent = place.deadline - BEGIN > event.ms + 2 * CLOCK_SKEW_MS;
        Object.assign(place, { deadline: event.deadline, isMarked: false, ...(!wasPresent && { since: moment }) });
        break;
      }
      case 'mark': {
        const place = this.#places.get(event.ticket);
        if (place) place.isMarked = true;
        break;
      }
      case 'flag':
      case 'deletion':
        this.#places.delete(event.ticket);
        break;
      case 'query':
        this.#looks.set(entry, [...(this.#looks.get(entry) ?? []), moment]);
        break;
      case 'grant': {
        const place = this.#places.get(event.ticket ?? '');
        if (place) place.wasGranted = true;
        this.#granted.add(event.request);
        this.#last = event;
      }
    }
  }

  /** Who is there and should have been granted the lease instead. @param slackMs by how much clocks differ */
  passedOver(grant: Grant, slackMs: number): Place | undefined {
    const lookedAt = this.#looks.get(grant.entry)?.findLast((moment) => moment < grant.sent) ?? 0;
    return [...this.#places.values()].find((place) => {
      const { ticket, request, deadline, since, isMarked, wasGranted } = place;
      // The place of the grant that ends here goes, and so does another one of its request.
      const isOfLast = this.#isPool
        ? wasGranted || this.#granted.has(request)
        : ticket === this.#last?.ticket || request === this.#last?.request;
      // In front of a task, a caller that is about to leave by any clock is passed over.
      const isPresent = deadline - BEGIN > grant.ms + slackMs + CLOCK_SKEW_MS;
      if (isOfLast || !isPresent || request === grant.request) return false;
      return grant.ticket === undefined ? isMarked && !wasGranted : ticket < grant.ticket && since < lookedAt;
    });
  }
}

interface Where {
  key: string;
  /** Whether another client or a clean-up may drop the record, and the mark with it. */
  mayLoseMark: boolean;
  /** Whether it is the key of a pool: many grants stand beside each other. */
  isPool?: boolean;
}

/**
 * Promise 6, as the tables saw it: nobody is granted the lease by the queue while a place in front is present, and no plain caller while
 * anybody is whom the mark tells of. A place in front counts if it was there when the call that granted the lease looked at the line. A place
 * that has been granted the lease already keeps nobody without a place out: word of that grant may have been lost.
 */
export function overtaken(
  history: readonly Entry[],
  { key, mayLoseMark, isPool = false }: Where,
  { spreadMs }: WorldFacts,
): Violation[] {
  const line = new Line(isPool);
  for (const event of eventsOf(history, key)) {
    const isChecked = event.what === 'grant' && !(event.ticket === undefined && mayLoseMark);
    const place = isChecked ? line.passedOver(event, spreadMs) : undefined;
    if (place)
      return [
        {
          promise: 'nobody in line is overtaken',
          detail: `${event.entry.actor} granted the lease past ${place.entry.actor}, who was in line since ${place.ticket}`,
          entries: [place.entry, event.entry],
        },
      ];
    line.take(event);
  }
  return [];
}
