import { PARAMETERS } from '../infrastructure/parameters.ts';
import {
  type Expected,
  expectedTurn,
  holdReasonOf,
  isFarAgain,
  patienceOf,
  sleepMsOf,
  type WaitState,
} from '../shared/locks/line/expected.ts';
import { SEAT_SHARE } from '../shared/locks/line/held-calls.ts';
import { hintsAfter, type Turns } from '../shared/locks/line/pace.ts';
import { EXACT_POSITIONS, estimatedPosition, isExpected, MIN_FAR_AWAKE_MS } from '../shared/locks/line/place.ts';
import { EXCLUSIVE_PATH } from '../shared/locks/record/identity.ts';
import type { KeyRecord } from '../shared/locks/record/record.ts';
import type { Ids } from '../shared/surroundings/ids.ts';
import { seededRandom } from '../test/support/chance/seed.ts';
import { CALL, PRICES } from './scale-arithmetic.ts';

/**
 * Simulates what a waiting caller costs in lines that are too long to be measured. The functions of the service itself decide who is held, and how long
 * the others sleep. Each caller that has had the key asks again at once. docs/cost.md quotes what `npm run verify -- bench-waiting` prints.
 */

/** How long a message takes between a client and the function, with a cold start now and then. */
const NETWORK_MS = { from: 15, to: 45, cold: 300, coldPart: 0.02 };
/** How long a request to DynamoDB takes. */
const REQUEST_MS = 4;
/** How long a call that is not held runs. */
const CALL_MS = 15;
/** How long a call is held, and how often it decides again whether its caller sleeps. */
const [HELD_MS, RECHECK_MS] = [20_000, 5000];
/** The longest that the caller can stay away. */
const MAX_SLEEP_MS = 300_000;
const SLOTS = Number(PARAMETERS.maxHeldCalls?.default);
/** How often a held call reads its row: twice a second far from the front, and four times if it is next. */
const POLL_READS_A_SECOND = 5;
/** The bar: a caller in a long line may cost this part of what a caller costs whose calls are always held. */
const MAX_PART = 0.01;

interface Caller {
  number: number;
  state: 'held' | 'asleep' | 'granted';
  since: number;
  awakeAt: number;
  /** Counts the decisions, so that events of an earlier one are ignored. */
  epoch: number;
  hasPlace: boolean;
}

interface Scene {
  callers: number;
  turnMs: number;
  /** How long the simulation lasts. Its first quarter does not count. */
  ms: number;
}

const networkMs = (random: () => number): number =>
  NETWORK_MS.from +
  (NETWORK_MS.to - NETWORK_MS.from) * random() +
  (random() < NETWORK_MS.coldPart ? NETWORK_MS.cold * random() : 0);

/** One key and its callers. */
class Line {
  readonly #random = seededRandom(1);
  readonly #events = new Events();
  readonly #scene: Scene;
  readonly #turnMs: number;
  readonly #warmMs: number;
  readonly #line = new Map<number, Caller>();
  /** Callers whose calls are held. */
  readonly #awake = new Set<Caller>();
  #arrivals = 0;
  #lineOut = 0;
  /** No caller with a smaller number waits. */
  #front = 1;
  #freeSince: number | undefined = 0;
  #plan = 0;
  #hints: Turns = {};
  #entries: KeyRecord['entries'] = [];
  readonly #spent = { calls: 0, writes: 0, reads: 0, heldMs: 0, waitMs: 0, grants: 0, maxHeld: 0 };

  constructor(scene: Scene) {
    this.#scene = scene;
    this.#turnMs = scene.turnMs;
    this.#warmMs = scene.ms / 4;
  }

  play() {
    const { callers, turnMs, ms } = this.#scene;
    for (let nth = 0; nth < callers; nth++) this.#events.at(this.#random() * turnMs * 20, () => this.#join());
    this.#events.playUntil(ms);
    for (const caller of this.#line.values()) {
      this.#leaveHeld(caller);
      this.#spent.waitMs += this.#countedFrom(caller.since);
    }
    const countedMs = ms - this.#warmMs;
    const { calls, grants, writes, waitMs, maxHeld, heldMs } = this.#spent;
    const environmentMs = heldMs + calls * CALL_MS;
    return {
      ...{ environments: environmentMs / countedMs, maxHeld, calls: calls / grants, writes: writes / grants },
      dollars: dollarsOf({ ...this.#spent, environmentMs }) / (waitMs / HOUR_MS),
    };
  }

  #spend(calls: number, writes: number, reads: number): void {
    if (this.#events.now < this.#warmMs) return;
    this.#spent.calls += calls;
    this.#spent.writes += writes;
    this.#spent.reads += reads;
  }

  #countedFrom(from: number): number {
    return Math.max(0, this.#events.now - Math.max(from, this.#warmMs));
  }

  /** How the service sees the turn of a caller. */
  #turnOf({ number }: Caller): WaitState {
    const { now } = this.#events;
    const record = { entries: this.#entries, usualMs: this.#hints.usualMs, meanMs: this.#hints.meanMs };
    const estimate = estimatedPosition({ arrivals: this.#arrivals, lineOut: this.#lineOut }, number);
    if (estimate > EXACT_POSITIONS + 1)
      return { record, now, freeSince: this.#freeSince, position: estimate, asleep: estimate - 1 };
    let [before, asleep] = [0, 0];
    for (let nth = this.#front; nth < number; nth++) {
      const one = this.#line.get(nth);
      if (one?.state === 'held') before++;
      else if (one && isExpected({ awakeAt: one.awakeAt, cancelledAt: undefined }, now))
        [before, asleep] = [before + 1, asleep + 1];
    }
    return { record, now, freeSince: this.#freeSince, position: before + 1, asleep };
  }

  #join(): void {
    const caller: Caller = {
      number: ++this.#arrivals,
      state: 'asleep',
      since: this.#events.now,
      awakeAt: this.#events.now,
      epoch: 0,
      hasPlace: false,
    };
    this.#spend(2, 1, 0.5); // the first call does not wait, and the next one reads the record
    this.#line.set(caller.number, caller);
    this.#decide(caller);
  }

  #leaveHeld(caller: Caller): void {
    if (!this.#awake.delete(caller)) return;
    const heldMs = this.#countedFrom(caller.awakeAt);
    this.#spent.heldMs += heldMs;
    this.#spend(0, 0, (heldMs / 1000) * POLL_READS_A_SECOND);
    this.#spend(0, 1, 0); // its slot
  }

  #decide(caller: Caller): void {
    const turn = this.#turnOf(caller);
    const expected = expectedTurn(turn);
    caller.epoch++;
    const mayTake = turn.freeSince !== undefined && expected.inMs <= 0 && turn.asleep >= turn.position - 1;
    if (mayTake) this.#take(caller, 3 * REQUEST_MS, turn.position);
    else this.#holdOrSleep(caller, turn, expected);
  }

  #holdOrSleep(caller: Caller, turn: WaitState, expected: Expected): void {
    const reason = holdReasonOf(turn, expected);
    const wasHeld = caller.state === 'held';
    const isFree = reason !== undefined && this.#awake.size - (wasHeld ? 1 : 0) < SLOTS * SEAT_SHARE[reason];
    this.#leaveHeld(caller);
    if (isFree) this.#hold(caller);
    else this.#sleep(caller, turn, expected);
  }

  #sleep(caller: Caller, turn: WaitState, expected: Expected): void {
    const wasHeld = caller.state === 'held';
    caller.state = 'asleep';
    const sleepMs = sleepMsOf(turn, expected, { maxMs: MAX_SLEEP_MS, ids: { random: this.#random } as Ids });
    const isNear = turn.position <= EXACT_POSITIONS;
    this.#spend(
      0,
      (wasHeld ? 1 : 0) +
        (isNear ? 1 : caller.hasPlace ? Math.min(1, sleepMs / MIN_FAR_AWAKE_MS) : 1) +
        (caller.hasPlace ? 0 : 1),
      isNear ? 2 : 0,
    );
    caller.hasPlace = true;
    caller.awakeAt = this.#events.now + sleepMs;
    const { epoch } = caller;
    this.#events.at(caller.awakeAt + 2 * networkMs(this.#random), () => {
      if (caller.epoch !== epoch) return;
      this.#spend(1, 0, 2.5);
      this.#decide(caller);
    });
  }

  #hold(caller: Caller): void {
    this.#spend(0, caller.state === 'held' ? 1 : 3, 1); // its slot, its row and the mark
    Object.assign(caller, { state: 'held', awakeAt: this.#events.now });
    this.#awake.add(caller);
    if (this.#events.now >= this.#warmMs) this.#spent.maxHeld = Math.max(this.#spent.maxHeld, this.#awake.size);
    const { epoch, awakeAt } = caller;
    const poll = () => {
      if (caller.epoch !== epoch) return;
      const turn = this.#turnOf(caller);
      const isOver = this.#events.now - awakeAt >= HELD_MS - 1;
      if (!isOver && !isFarAgain(turn, expectedTurn(turn))) return this.#events.at(this.#events.now + RECHECK_MS, poll);
      if (isOver) this.#spend(1, 0, 2.5);
      this.#decide(caller);
    };
    this.#events.at(this.#events.now + RECHECK_MS, poll);
    this.#handOff();
  }

  /** Grants a free key to the first caller that is awake, as soon as the sleepers before it have had time to come back. */
  #handOff(isRelease = false): void {
    const [first] = [...this.#awake].sort((a, b) => a.number - b.number);
    if (this.#freeSince === undefined || !first) return;
    const turn = this.#turnOf(first);
    const waitMs = isRelease ? 0 : this.#freeSince + patienceOf(turn.record, turn.asleep) - this.#events.now;
    const own = ++this.#plan;
    const pollsIn = Math.min(250, (this.#hints.paceMs ?? 0) / 2) * this.#random();
    if (waitMs <= 1) this.#take(first, 5 * REQUEST_MS + pollsIn, turn.position);
    else this.#events.at(this.#events.now + waitMs, () => own === this.#plan && this.#handOff());
  }

  #take(caller: Caller, inMs: number, position: number): void {
    if (position <= 1) this.#lineOut = caller.number; // a holder that passed others says nothing about the line
    this.#leaveHeld(caller);
    caller.state = 'granted';
    caller.epoch++;
    this.#line.delete(caller.number);
    while (this.#front <= this.#arrivals && !this.#line.has(this.#front)) this.#front++;
    this.#spend(1, caller.hasPlace ? 4 : 3, 1); // the grant, the claim, row and place; and the release
    this.#spent.waitMs += this.#countedFrom(caller.since);
    this.#freeSince = undefined;
    this.#plan++;
    if (this.#events.now >= this.#warmMs) this.#spent.grants++;
    this.#events.at(this.#events.now + inMs, () => {
      const { pace_ms: paceMs, usual_ms: usualMs, mean_ms: meanMs } = hintsAfter({ ...this.#hints, mark: true });
      if (usualMs !== undefined) this.#hints = { ...this.#hints, paceMs, usualMs, meanMs };
      this.#entries = [{ path: EXCLUSIVE_PATH, acquiredAt: this.#events.now } as KeyRecord['entries'][number]];
      const lasts = this.#turnMs * -Math.log(1 - this.#random());
      this.#events.at(this.#events.now + lasts, () => this.#release(lasts));
    });
  }

  #release(lasted: number): void {
    this.#hints = { ...this.#hints, turnMs: Math.round(lasted) };
    this.#entries = [];
    this.#freeSince = this.#events.now;
    this.#events.at(this.#events.now + 2 * networkMs(this.#random), () => this.#join());
    this.#handOff(true);
  }
}

const HOUR_MS = 3_600_000;

interface Spent {
  calls: number;
  writes: number;
  reads: number;
  environmentMs: number;
}

/** Uses the prices of the first tiers. */
function dollarsOf({ calls, writes, reads, environmentMs }: Spent): number {
  const first = ([[, price] = [0, 0]]: [number, number][]) => price;
  const call =
    (first(PRICES.gatewayMillions) + PRICES.lambdaMillionRequests + CALL.logKilobytes * first(PRICES.logGigabytes)) /
    1e6;
  const lambda = (environmentMs / 1000) * CALL.memoryGb * first(PRICES.lambdaSeconds);
  return lambda + calls * call + (writes * PRICES.millionWrites + reads * PRICES.millionReads) / 1e6;
}

/** The price of an hour for a caller whose calls are always held: each for 20 seconds, with a row, a mark and a poll every 1.5 seconds. */
const HELD_CALLS = HOUR_MS / HELD_MS;
const heldDollars = dollarsOf({
  ...{ calls: HELD_CALLS, writes: 3 * HELD_CALLS, reads: HOUR_MS / 1500 / 2, environmentMs: HOUR_MS },
});

const SCENES: Scene[] = [
  { callers: 64, turnMs: 1000, ms: 1200e3 },
  { callers: 1000, turnMs: 1000, ms: 4000e3 },
  { callers: 10_000, turnMs: 1000, ms: 30_000e3 },
  { callers: 64, turnMs: 60_000, ms: 30_000e3 },
];

/** Events in the order of their times. Those with equal times stay in the order in which they were added. */
class Events {
  now = 0;
  readonly #heap: { at: number; nth: number; act: () => void }[] = [];
  #count = 0;

  at(at: number, act: () => void): void {
    const heap = this.#heap;
    const event = { at: Math.max(at, this.now), nth: this.#count++, act };
    let to = heap.length;
    for (let parent = (to - 1) >> 1; to > 0 && isBefore(event, heap[parent]); parent = (to - 1) >> 1) {
      heap[to] = heap[parent] as typeof event;
      to = parent;
    }
    heap[to] = event;
  }

  playUntil(end: number): void {
    for (let event = this.#pop(); event && event.at <= end; event = this.#pop()) {
      this.now = event.at;
      event.act();
    }
    this.now = end;
  }

  #pop() {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!last || heap.length === 0) return first;
    let to = 0;
    for (let child = 1; child < heap.length; child = 2 * to + 1) {
      if (isBefore(heap[child + 1], heap[child])) child++;
      if (!isBefore(heap[child], last)) break;
      heap[to] = heap[child] as typeof last;
      to = child;
    }
    heap[to] = last;
    return first;
  }
}

type Timed = { at: number; nth: number } | undefined;

const isBefore = (left: Timed, right: Timed): boolean =>
  left !== undefined && (right === undefined || left.at < right.at || (left.at === right.at && left.nth < right.nth));

if (import.meta.main) {
  console.log(
    '| callers in line, mean turn | environments in use | held at most | calls, writes for a grant | $ an hour for each | of a held call |',
  );
  console.log(
    `|---|---|---|---|---|---|\n| any, if their calls are always held | one each | | | ${heldDollars.toPrecision(2)} | |`,
  );
  for (const scene of SCENES) {
    const { environments, maxHeld, calls, writes, dollars } = new Line(scene).play();
    const part = dollars / heldDollars;
    const what = `${scene.callers.toLocaleString('en')}, ${scene.turnMs / 1000} s`;
    console.log(
      `| ${what} | ${environments.toFixed(1)} | ${maxHeld} | ${calls.toFixed(1)}, ${writes.toFixed(1)} | ${dollars.toPrecision(2)} | ${(100 * part).toFixed(1)} % |`,
    );
    if (scene.callers < 10_000 || part <= MAX_PART) continue;
    console.error(`A caller in a line of 10,000 costs more than ${100 * MAX_PART} % of a held call`);
    process.exitCode = 1;
  }
}
