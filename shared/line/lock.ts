import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import type { Ended } from './ended.ts';
import type { Location } from './look.ts';
import type { Notified } from './notify.ts';
import type { WaitingCall, WaitingTask } from './waiters.ts';

/** The fields of a waiter's row that describe the request. `key` is the key of the line. */
export type Asked = Omit<
  WaitingCall,
  'ticket' | 'parkedAt' | 'deadline' | 'keepUntil' | 'cancelledAt' | 'taskToken' | 'callbackId'
>;

/** The grant of a request, as the record shows it. Instants are epoch milliseconds. */
export interface Grant {
  /** Each write on the grant sets a new version. */
  version: string;
  /** The waiter that received the grant from the line. */
  ticket?: string | undefined;
  /** The ttl that a call in line asked for, until it claims the grant. */
  claimTtlMs?: number | undefined;
  ttlMs?: number | undefined;
  expiresAt: number;
  /** The holder before, if the record names that holder. */
  previous?: Ended | undefined;
}

/** A grant, and the record that shows it. */
export interface Granted<Rec> {
  record: Rec;
  /** True if an earlier try of the request received the grant. */
  repeated: boolean;
  /** The holder before. */
  previous?: Ended | undefined;
}

/** The outcome of a write on a grant. `record` is the current record, whether the write was won or lost. */
export interface Written<Rec> {
  won: boolean;
  record: Rec;
}

/** The outcome of a write that raises the mark. */
export interface Marked<Rec> extends Written<Rec> {
  /** The number of waiters that have joined so far, by the mark. `lineOut`: how many of these waiters have left, if the record has that hint. */
  arrivals: number;
  lineOut?: number | undefined;
}

export interface HandedOff<Rec> {
  /** The waiters that received grants. */
  served: readonly string[];
  /**
   * `served`: a waiter has received a grant. `empty`: no waiter is left, and the mark is gone. `waits`: the next waiter cannot be served yet.
   * `left`: this call has stopped early, and waiters are left. `overtaken`: another call has changed the record, and this call has served no waiter.
   */
  end: 'served' | 'empty' | 'waits' | 'left' | 'overtaken';
  record: Rec;
  /** The served tasks that may not have been notified. */
  unnotified?: ReadonlySet<string>;
  /** The version of a full grant that this call has written for itself. */
  ownVersion?: string | undefined;
}

/** What a call in line sees when it looks. */
export interface Sight<Rec> {
  record: Rec;
  ticket: string;
  /** How long requests of this call take. Undefined before the first measured request. */
  requestMs: number | undefined;
}

/**
 * A lease, or the permits of a pool, for one call of one request. The line itself reads no attribute of the record. Each
 * method that sends a request throws Throttled, Unavailable or OutcomeUnknown.
 */
export interface Lock<Rec> {
  readonly asked: Asked;
  /** The location for the cheap, eventually consistent read. */
  readonly where: Location<Rec>;
  /** A consistent read. */
  read(): Promise<Rec>;
  /** The grant of the request, even if it has expired, or how the grant ended. A grant that an operator broke and that is ending counts as `broken`. */
  own(record: Rec): Grant | 'released' | 'broken' | undefined;
  /** When the request could receive a grant, if its waiter were next. In the past if the request could receive a grant now, infinite if the time is not known. */
  freeAt(record: Rec): number;
  /** True if a hand-off could serve another waiter now. */
  mayServe(record: Rec): boolean;
  isMarked(record: Rec): boolean;
  /** Raises the mark for a waiter, unless the request has or had a grant. @param how `again`: the mark has already counted the waiter */
  mark(ticket: string, how: 'first' | 'again'): Promise<Marked<Rec>>;
  /** Which mark this call must write. `first`: there was no record when the call joined. `lost`: a third-party client or TTL has removed the mark. */
  missingMark(record: Rec): 'first' | 'lost' | undefined;
  /** Writes the missing mark. */
  markBack(record: Rec, ticket: string): Promise<Marked<Rec>>;
  /** True if the waiter may hand off at once. All other waiters hand off after their patience. */
  isNext(record: Rec, ticket: string): boolean;
  /** True if another call has made the room and hands off by itself, so that the next waiter leaves the lock to that call for its patience. */
  isLeftToRelease?(record: Rec): boolean;
  /** Serves the next waiters. @param alive the waiter of the call that hands off. A lease grants this waiter a full grant at once */
  handOff(record: Rec, alive?: string): Promise<HandedOff<Rec>>;
  /**
   * Writes a new version of the request's grant, if the grant still has the version that was seen. `claim`: makes the grant a full grant. `answer`: keeps
   * the expiry; the new version prevents a hand-off by another call. `renew`: starts the whole ttl again.
   */
  write(record: Rec, how: 'claim' | 'answer' | 'renew'): Promise<Written<Rec>>;
  /** Ends the grant of the request unused, and serves the next waiter. */
  giveUp(record: Rec): Promise<void>;
  readonly pace: Pace<Rec>;
  /** The error LeaseHeld. */
  held(record: Rec): HoldfastError;
  /** The error LeaseLost. */
  lost(reason: 'released' | 'broken' | 'unknown'): HoldfastError;
  /** The waiters that have their grants already. Lists and positions leave them out. */
  granted(record: Rec): ReadonlySet<string | undefined>;

  /** The error for a request whose grant has other terms than this call asks for. */
  otherTerms?(record: Rec): HoldfastError | undefined;
  /** True if the waiter hands off without another look, because the grant that it saw last has expired since. */
  skipsLook?(record: Rec, ticket: string): boolean;
  /** The state on which the outcome of a hand-off depends. If a hand-off served no waiter, another hand-off serves no waiter either while the state is the same. */
  state?(record: Rec): string;
  /** How many are in line by the hints of the record, and the arrivals of which they are the rest. Undefined without the mark. */
  counted?(record: Rec): { arrivals: number; inLine: number } | undefined;
  /** Corrects the hint of how many waiters have left. */
  correct?(arrivals: number, inLine: number): Promise<unknown>;
  /** Asks about the executions of bound holders, unless a call has asked a moment ago. A wait does not wait for this. @param isNext false for a call that leaves this to the next waiter for a while */
  lookAtHolders?(record: Rec, isNext: boolean): Promise<void>;
  /** Measures that the holder has received a grant from the line. */
  received?(grant: Grant): void;
}

/** A call, and the lock that the call asks for. */
export interface LockCall<Rec> {
  dependencies: LeaseDependencies;
  lock: Lock<Rec>;
  call: Call;
}

/** When a call in line looks. No promise depends on the pace, only time. All durations are milliseconds. */
export interface Pace<Rec> {
  /** How long the call sleeps before it looks again. */
  pauseMs(sight: Sight<Rec>): number;
  /** How long a waiter that is not next leaves a free lock to the waiters before it. */
  patienceMs(sight: Sight<Rec>): number;
}

/** A lock with the methods for a task that parks. */
export interface ParkingLock<Rec> extends Lock<Rec> {
  /**
   * Raises the mark for a task, unless its request has or had a grant.
   * @param over the current record, if it shows an expired grant of the request: such a grant does not prevent the mark
   * @returns `isRuined`: a third-party client has overwritten the grant, so the mark can never be raised
   */
  markTask(ticket: string, over?: Rec): Promise<Marked<Rec> & { isRuined?: boolean }>;
  /**
   * Passes the current grant of the request to the task, with its whole ttl from now on. A grant that no call has claimed becomes a full grant by the
   * terms of the task. Every other grant keeps its own terms, and is never shortened.
   */
  passTo(record: Rec, task: WaitingTask): Promise<Written<Rec>>;
  /** Notifies the task of the grant that this call has just passed to it. @param message `repeated`: true if the request had the grant before */
  notify(record: Rec, message: { task: WaitingTask; repeated: boolean }): Promise<Notified<Rec>>;
  /** Ends a grant that this call has passed to a task that is gone, and serves the next waiter. No other call or task has had that grant. */
  undelivered(record: Rec): Promise<void>;
  /** Sends the message that looks again, if this waiter needs the message. */
  watch(record: Rec, ticket: string): Promise<void>;
}
