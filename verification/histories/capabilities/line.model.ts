import { nameOfRequest } from '../../../shared/locks/record/identity.ts';
import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { type Landed, type LockState, NO_LOCK } from '../landed.ts';
import { CLOCK_SKEW_MS } from '../service.ts';

/** A waiter, as the tables have it. */
interface Place {
  ticket: string;
  request: string;
  deadline: number;
  entry: Entry;
  /** The moment since which the row is there, or is there again. */
  since: number;
  isMarked: boolean;
  /** Whether its request has had a grant since the row is there, by this row or by another one. */
  wasGranted: boolean;
}

type Seen = Extract<Landed, { what: 'lock' }>;
type Event = (Exclude<Landed, Seen> | (Seen & { state: LockState })) & { entry: Entry };

/** The effects on the rows and the record of a key, in their order. */
export function eventsOf(history: readonly Entry[], key: string): Event[] {
  const landed = history
    .flatMap((entry) => (entry.landed ?? []).map((one) => ({ ...one, entry })))
    .filter((one) => one.key === key)
    .sort((a, b) => a.moment - b.moment);
  let state = NO_LOCK;
  return landed.map((event) => {
    if (event.what !== 'lock') return event;
    state = event.state === 'released' ? released(state) : event.state;
    return { ...event, state };
  });
}

/** The record after the release of its only grant. Its entry remembers the request. */
const released = ({ entries, ring, cap, capAt, latest }: LockState): LockState => ({
  ...{ ...NO_LOCK, cap, capAt, latest },
  ring: [{ name: entries[0]?.name, broken: undefined }, ...ring.slice(-8)],
});

/** The name of a request, as the record has it. */
export const nameOf = ({ input }: Entry): string =>
  nameOfRequest({ holder: String(input.holder), requestId: String(input.requestId) });

export type Grant = Extract<Event, { what: 'grant' }>;

export const MOVED_FIRST = 'a waiter that an operator has moved is served before all others';
const MOVED_ONCE = 'a moved waiter comes first once';

/** A call without a fault reads the record, and then the line, within this time. */
const READ_MS = 500;

/** The waiters that operators have moved. */
export class Moves {
  readonly #moves: { ticket: string | undefined; moment: number; ms: number }[] = [];
  /** The tickets that the present write serves. */
  #served: string[] = [];

  take(event: Event): void {
    if (event.what === 'grant' && event.ticket !== undefined) this.#served.push(event.ticket);
    if (event.what !== 'lock') return;
    this.#served = [];
    const { first: ticket } = event.state;
    if (ticket !== this.#moves.at(-1)?.ticket) this.#moves.push({ ticket, moment: event.moment, ms: event.ms });
  }

  /** Whether the waiter was moved to the front while a call was under way, so that the call may have seen the move. */
  wasFirst(ticket: string | undefined, { calledAt }: Entry): boolean {
    const since = this.#moves.findLastIndex(({ moment }) => moment <= calledAt.moment);
    return ticket !== undefined && this.#moves.slice(Math.max(0, since)).some((one) => one.ticket === ticket);
  }

  /** The moved waiter, if the call that made the grant can know of the move. */
  before({ entry, sent, ms }: Grant): string | undefined {
    const last = this.#moves.at(-1);
    const canKnow = last && last.moment < sent && last.ms + READ_MS < ms && entry.faults.length === 0;
    return canKnow ? last.ticket : undefined;
  }

  /** Whether the write at hand has served the waiter. */
  isServed(ticket: string): boolean {
    return this.#served.includes(ticket);
  }

  /** Whether a write served the moved waiter and left the move in the record, although its call can know of the move. */
  isLeftOver({ entry, state: { first } }: Extract<Event, { what: 'lock' }>): boolean {
    const last = this.#moves.at(-1);
    const canKnow = last !== undefined && last.moment <= entry.calledAt.moment;
    return canKnow && first !== undefined && this.isServed(first);
  }
}

/** The line of a key at a moment of the history. */
class Line {
  readonly #isShared: boolean;
  readonly #places = new Map<string, Place>();
  /** The requests that have had a grant. */
  readonly #granted = new Set<string>();
  /** The executions that have had a bound grant. */
  readonly #bound = new Set<unknown>();
  /** The moments in which each call read the line. */
  readonly #reads = new Map<Entry, number[]>();
  /** The tickets that each call has served. */
  readonly #served = new Map<Entry, Set<string>>();
  /** The requests whose grants have ended, as far as the record remembers them. */
  #remembered: ReadonlySet<string | undefined> = new Set();
  #last: Grant | undefined;
  readonly #moves = new Moves();

  constructor(isShared: boolean) {
    this.#isShared = isShared;
  }

  /** @returns what the event breaks @param slackMs by how much clocks differ */
  broken(event: Event, { slackMs, mayLoseMark }: { slackMs: number; mayLoseMark: boolean }): Broken | undefined {
    if (event.what === 'lock' && this.#moves.isLeftOver(event)) return { promise: MOVED_ONCE, place: undefined };
    if (event.what !== 'grant' || (event.ticket === undefined && mayLoseMark)) return undefined;
    const place = this.#passedOver(event, slackMs);
    if (!place) return undefined;
    return { promise: place.ticket === this.#moves.before(event) ? MOVED_FIRST : NOT_OVERTAKEN, place };
  }

  take(event: Event): void {
    const { moment, entry } = event;
    this.#moves.take(event);
    switch (event.what) {
      case 'row': {
        const { ticket, request, deadline } = event;
        const place = { ticket, request, deadline, entry, since: moment, isMarked: false, wasGranted: false };
        this.#places.set(ticket, place);
        break;
      }
      case 'deadline': {
        // The mark may have been removed while the row did not count, so it must be raised again.
        const place = this.#places.get(event.ticket);
        if (!place) break;
        // To a call that read the line before, the row may have been past its deadline by some clock.
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
        this.#reads.set(entry, [...(this.#reads.get(entry) ?? []), moment]);
        break;
      case 'grant': {
        const place = this.#places.get(event.ticket ?? '');
        // A second row of a request waits for the outcome of the first row, and keeps no caller out: the grant may have removed the mark.
        for (const one of this.#places.values()) if (one.request === event.request) one.wasGranted = true;
        if (event.ticket !== undefined)
          this.#served.set(entry, new Set([...(this.#served.get(entry) ?? []), event.ticket]));
        if (place?.entry.input.bound) this.#bound.add(place.entry.input.execution);
        this.#granted.add(event.request);
        this.#last = event;
        break;
      }
      case 'lock':
        this.#remembered = new Set(event.state.ring.map(({ name }) => name));
    }
  }

  /** The waiter that should have been granted the key instead. */
  #passedOver(grant: Grant, slackMs: number): Place | undefined {
    // A bound grant that reached no task passes to the next task of its execution.
    const to = this.#places.get(grant.ticket ?? '')?.entry.input;
    if (to?.bound && this.#bound.has(to.execution)) return undefined;
    const readAt = this.#reads.get(grant.entry)?.findLast((moment) => moment < grant.sent) ?? 0;
    const first = this.#moves.before(grant);
    const isMoved = this.#moves.wasFirst(grant.ticket, grant.entry);
    const places = [...this.#places.values()].toSorted(
      (one, other) => Number(other.ticket === first) - Number(one.ticket === first),
    );
    return places.find((place) => {
      const { ticket, request, deadline, since, isMarked, wasGranted } = place;
      // The row of the ending grant goes with it, and so does another row of its request.
      const isOfLast = this.#isShared
        ? wasGranted || this.#granted.has(request)
        : ticket === this.#last?.ticket || request === this.#last?.request;
      // In front of a task, a caller that is about to leave by any clock is passed over.
      const isPresent = deadline - BEGIN > grant.ms + slackMs + CLOCK_SKEW_MS;
      // A request has one grant. The row of a task stays until Step Functions has taken the message about that, and others pass it.
      const hasEnded = this.#remembered.has(request);
      // A second try of the write of its row may land when its task, which is gone, has been served and deleted.
      const isServed = this.#served.get(grant.entry)?.has(ticket) === true;
      if (isOfLast || isServed || hasEnded || !isPresent || request === grant.request) return false;
      if (grant.ticket === undefined) return isMarked && !wasGranted;
      return !isMoved && (ticket < grant.ticket || ticket === first) && since < readAt;
    });
  }
}

const NOT_OVERTAKEN = 'no waiter is overtaken';

interface Broken {
  promise: string;
  /** The waiter that was passed over. */
  place: Place | undefined;
}

interface Where {
  key: string;
  /** Whether a third-party client or a clean-up may delete the record, and the mark with it. */
  mayLoseMark: boolean;
  /** Whether many grants may stand beside each other. */
  isShared?: boolean;
}

/**
 * Promise 6, as the tables show it: the line does not grant the lease to a waiter while another one is in front, nor does a plain caller take it from a
 * waiter that the mark shows. A waiter in front counts if its row was there when the granting call read the line. A waiter that has already been granted
 * the lease does not keep plain callers out, because the message about its grant may have been lost.
 */
export function overtaken(
  history: readonly Entry[],
  { key, mayLoseMark, isShared = false }: Where,
  { spreadMs }: WorldFacts,
): Violation[] {
  const line = new Line(isShared);
  for (const event of eventsOf(history, key)) {
    const broken = line.broken(event, { slackMs: spreadMs, mayLoseMark });
    if (broken) {
      const { promise, place } = broken;
      const passed = place ? ` past ${place.entry.actor}, who was in line since ${place.ticket}` : '';
      const detail = `${event.entry.actor} granted the lease${passed}`;
      return [{ promise, detail, entries: [...(place ? [place.entry] : []), event.entry] }];
    }
    line.take(event);
  }
  return [];
}
