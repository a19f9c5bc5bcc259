/** What can happen to one request between a function, or a third-party client, and a store. */
export const REQUEST_FAULTS = [
  'lostBefore',
  'lostReply',
  'slow',
  'delayed',
  'duplicated',
  'throttled',
  'error500',
  'transactionConflict',
  's3Conflict',
  'reset',
  'freeze',
  'death',
] as const;
export type RequestFault = (typeof REQUEST_FAULTS)[number];

/** What can happen to callers and clocks. */
const ACTOR_FAULTS = [
  'callDuplicated',
  'callerDeath',
  'callerFreeze',
  'clockOffset',
  'clockDrift',
  'clockStep',
  'clockBeyondBound',
  'foreignDeath',
  'executionDeath',
  'eventLost',
  'eventLate',
  'eventTwice',
  'redriven',
  'questionLate',
  'submittedAgain',
  'stopLost',
  'junkTicket',
] as const;
type ActorFault = (typeof ACTOR_FAULTS)[number];

export type FaultKind = RequestFault | ActorFault;

/** How often each kind struck; a kind that never did is there with 0. */
export type FaultCounts = Record<FaultKind, number>;

export const noFaults = (): FaultCounts =>
  Object.fromEntries([...REQUEST_FAULTS, ...ACTOR_FAULTS].map((kind) => [kind, 0])) as FaultCounts;

/** These faults stop a caller or a function for long, so they are rarer. Otherwise little else would happen. */
const RARE = new Set<FaultKind>(['freeze', 'death', 'delayed', 'duplicated']);

/** Draws the faults of the requests of one step. It has its own random numbers, so that the faults stay the same if other steps are left out. */
export class FaultSource {
  readonly random: () => number;
  readonly rate: number;
  readonly #counts: FaultCounts;
  readonly #mostly: RequestFault | undefined;

  /**
   * @param rate how many of all requests are struck, 0 to 1
   * @param mostly the fault that strikes most of them, because some mistakes show only if the same fault strikes again and again
   */
  constructor(random: () => number, rate: number, counts: FaultCounts, mostly?: RequestFault) {
    this.random = random;
    this.rate = rate;
    this.#counts = counts;
    this.#mostly = mostly;
  }

  /** Draws one of the faults that can strike here, or none. */
  draw(possible: readonly RequestFault[], _command: string): RequestFault | undefined {
    if (this.random() >= this.rate) return undefined;
    if (this.#mostly && possible.includes(this.#mostly) && this.random() < 0.7) return this.#mostly;
    const kind = possible[Math.floor(this.random() * possible.length)];
    return kind && RARE.has(kind) && this.random() < 0.4 ? undefined : kind;
  }

  /** Whether a fault strikes, with this probability. Nothing strikes if the rate is 0. */
  strikes(kind: FaultKind, probability: number): boolean {
    const hit = this.random() < probability && this.rate > 0;
    if (hit) this.note(kind);
    return hit;
  }

  note(kind: FaultKind): void {
    this.#counts[kind] += 1;
  }

  between(from: number, to: number): number {
    return from + this.random() * (to - from);
  }

  /** A random duration. Each order of magnitude is equally likely. */
  magnitude(from: number, to: number): number {
    return from * (to / from) ** this.random();
  }
}

/**
 * What strikes the next requests of some commands, in their order. `beforeMs`: the function stands still for this long before it sends the request.
 * `lateMs`: before it sees the answer.
 */
export type Script = Record<string, (RequestFault | { beforeMs: number } | { lateMs: number } | undefined)[]>;

/** How long a function stands still, and what it draws then. */
interface Standing {
  ms?: number | undefined;
  lot?: number | undefined;
}

/** Strikes by a script and not by chance. */
export class ScriptedFaults extends FaultSource {
  readonly #script: Script;
  /** How the function stands still at the present request. */
  readonly #standing: Standing;

  constructor(random: () => number, counts: FaultCounts, script: Script) {
    const standing: Standing = {};
    // The wire draws whether the function stands still before its request or after it.
    super(() => standing.lot ?? random(), 0, counts);
    this.#script = script;
    this.#standing = standing;
  }

  override draw(_possible: readonly RequestFault[], command: string): RequestFault | undefined {
    const fault = this.#script[command]?.shift();
    const isBefore = typeof fault === 'object' && 'beforeMs' in fault;
    const ms = typeof fault !== 'object' ? undefined : isBefore ? fault.beforeMs : (fault as { lateMs: number }).lateMs;
    Object.assign(this.#standing, { ms, lot: ms === undefined ? undefined : isBefore ? 0.1 : 0.9 });
    return typeof fault === 'object' ? 'freeze' : fault;
  }

  override magnitude(from: number, to: number): number {
    return this.#standing.ms ?? super.magnitude(from, to);
  }
}
