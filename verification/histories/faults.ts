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

/** Those that take a caller or a function out of the game are rarer, or little else would happen. */
const RARE = new Set<FaultKind>(['freeze', 'death', 'delayed', 'duplicated']);

/** Decides by chance of its own what strikes the requests of one call, so that a shorter history keeps the rest as it was. */
export class FaultSource {
  readonly random: () => number;
  readonly rate: number;
  readonly #counts: FaultCounts;
  readonly #mostly: RequestFault | undefined;

  /**
   * @param rate how many of all requests are struck, 0 to 1
   * @param mostly what strikes most of them: some mistakes show only where one thing goes wrong again and again
   */
  constructor(random: () => number, rate: number, counts: FaultCounts, mostly?: RequestFault) {
    this.random = random;
    this.rate = rate;
    this.#counts = counts;
    this.#mostly = mostly;
  }

  /** One of the kinds that can strike here, or none. */
  draw(possible: readonly RequestFault[], _command: string): RequestFault | undefined {
    if (this.random() >= this.rate) return undefined;
    if (this.#mostly && possible.includes(this.#mostly) && this.random() < 0.7) return this.#mostly;
    const kind = possible[Math.floor(this.random() * possible.length)];
    return kind && RARE.has(kind) && this.random() < 0.4 ? undefined : kind;
  }

  /** With the probability given, where anything strikes at all. */
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

  /** Short ones as likely as long ones, by order of magnitude. */
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

/** Strikes as it is told, and by no chance. */
export class ScriptedFaults extends FaultSource {
  readonly #script: Script;
  /** Of the present request. */
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
