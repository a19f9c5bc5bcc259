import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import type { Ended } from './ended.ts';
import type { Location } from './look.ts';
import type { Notified } from './notify.ts';
import type { WaitingCall, WaitingTask } from './waiters.ts';

/** What a waiter's row says of the request. `key` is the key of the line. */
export type Asked = Omit<WaitingCall, 'ticket' | 'parkedAt' | 'deadline' | 'keepUntil' | 'cancelledAt' | 'taskToken'>;

/** What a lock gave to a request, as the record shows it. Instants are epoch milliseconds. */
export interface Grant {
  /** Each write on the grant gives it a new one. */
  version: string;
  /** The waiter that received the grant from the line. */
  ticket?: string | undefined;
  /** The ttl that a call in line asked for, until it claims the grant. */
  claimTtlMs?: number | undefined;
  ttlMs?: number | undefined;
  expiresAt: number;
  /** The holder before, if the record tells. */
  previous?: Ended | undefined;
}

/** A grant, and the record that shows it. */
export interface Granted<Rec> {
  record: Rec;
  /** Whether an earlier try of the request got the grant. */
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
  /** How many have joined by then, as far as the mark tells, and how many of those have left the line, if the record tells. */
  arrivals: number;
  lineOut?: number | undefined;
}

export interface HandedOff<Rec> {
  /** The waiters that received grants. */
  served: readonly string[];
  /**
   * `served`: a waiter has received a grant. `empty`: no waiter is left, and the mark is gone. `waits`: the next waiter cannot be served yet.
   * `left`: this call has stopped early, and others wait. `overtaken`: another call has changed the record, and this call has served no waiter.
   */
  end: 'served' | 'empty' | 'waits' | 'left' | 'overtaken';
  record: Rec;
  /** The served tasks that may not have been notified. Of a lock that is made for a task. */
  unnotified?: ReadonlySet<string>;
  /** The version of a full grant that this call has written for itself. */
  ownVersion?: string | undefined;
}

/** What a call in line sees when it looks. */
export interface Sight<Rec> {
  record: Rec;
  ticket: string;
  /** How long requests of this call take. Undefined if it has not measured a request yet. */
  requestMs: number | undefined;
}

/**
 * A lease, or the permits of a pool, as one request sees it. It is made for one call. The line reads no attribute of its record, and each
 * method that sends a request throws Throttled, Unavailable or OutcomeUnknown.
 */
export interface Lock<Rec> {
  readonly asked: Asked;
  /** For the cheap, eventually consistent read. */
  readonly where: Location<Rec>;
  /** A consistent read. */
  read(): Promise<Rec>;
  /** The grant of the request, even if its time is over, or how it ended. A grant that an operator broke and that is ending counts as `broken`. */
  own(record: Rec): Grant | 'released' | 'broken' | undefined;
  /** When the request could have a grant, if it were next. In the past if it could now, infinite if that is not known. */
  freeAt(record: Rec): number;
  /** Whether a hand-off could serve another waiter now. */
  mayServe(record: Rec): boolean;
  isMarked(record: Rec): boolean;
  /** Raises the mark for a waiter, unless the request has a grant, or had one. @param how `again`: the mark has counted the waiter before */
  mark(ticket: string, how: 'first' | 'again'): Promise<Marked<Rec>>;
  /** Which mark this call has to write: its `first`, because there was no record when it joined, or one that is `lost`, because a foreign client has dropped it. */
  missingMark(record: Rec): 'first' | 'lost' | undefined;
  /** Writes that mark. */
  markBack(record: Rec, ticket: string): Promise<Marked<Rec>>;
  /** Whether the waiter may hand off at once. The others do so after their patience. */
  isNext(record: Rec, ticket: string): boolean;
  /** Serves the next waiters. @param alive the waiter of the call that hands off, which need not claim */
  handOff(record: Rec, alive?: string): Promise<HandedOff<Rec>>;
  /**
   * Writes a new version of the request's grant, as long as it has the version that was seen. `claim`: makes it a full grant. `answer`: keeps its
   * expiry, so that no other call hands it off. `renew`: gives it its whole ttl again.
   */
  write(record: Rec, how: 'claim' | 'answer' | 'renew'): Promise<Written<Rec>>;
  /** Ends the request's own grant unused, and serves the next. */
  giveUp(record: Rec): Promise<void>;
  readonly pace: Pace<Rec>;
  /** LeaseHeld. */
  held(record: Rec): HoldfastError;
  /** LeaseLost. */
  lost(reason: 'released' | 'broken' | 'unknown'): HoldfastError;
  /** The waiters that have their grants already. Lists and positions leave them out. */
  granted(record: Rec): ReadonlySet<string | undefined>;

  /** The error for a request whose grant has other terms than this call asks for. */
  otherTerms?(record: Rec): HoldfastError | undefined;
  /** Whether the waiter hands off by what it saw last, without a look, because the grant on record has expired since. */
  skipsLook?(record: Rec, ticket: string): boolean;
  /** What the outcome of a hand-off depends on. After a hand-off that served no waiter, another one does not either while this is the same. */
  state?(record: Rec): string;
  /** Corrects what the record tells of the waiters that have left. */
  correct?(arrivals: number, inLine: number): Promise<unknown>;
  /** Measures that the holder has received a grant from the line. */
  received?(grant: Grant): void;
}

/** A call, and the lock that it asks for. */
export interface LockCall<Rec> {
  dependencies: LeaseDependencies;
  lock: Lock<Rec>;
  call: Call;
}

/** Nothing but time rests on it. All durations are milliseconds. */
export interface Pace<Rec> {
  /** How long the call sleeps before it looks again. */
  pauseMs(sight: Sight<Rec>): number;
  /** How long a waiter that is not next leaves what is free to those before it. */
  patienceMs(sight: Sight<Rec>): number;
}

/** What a lock does for a task that parks, besides. */
export interface ParkingLock<Rec> extends Lock<Rec> {
  /**
   * Raises the mark for a task, unless its request has a grant, or had one.
   * @param over the current record, if it has a grant of the request that has expired: such a grant is no reason
   * @returns `isRuined`: a foreign client has written something in the place of the grant, so the mark will never be raised
   */
  markTask(ticket: string, over?: Rec): Promise<Marked<Rec> & { isRuined?: boolean }>;
  /**
   * Passes the current grant of the request to the task, with its whole ttl from now on. A grant that no call has claimed becomes a full grant by the
   * terms of the task. Every other grant keeps its own terms, and is never shortened.
   */
  passTo(record: Rec, task: WaitingTask): Promise<Written<Rec>>;
  /** Notifies the task of the grant that this call has just passed to it. @param message `repeated`: whether the request had the grant before */
  notify(record: Rec, message: { task: WaitingTask; repeated: boolean }): Promise<Notified<Rec>>;
  /** Ends a grant that this call has passed to a task which is gone, and serves the next. No other call or task has had that grant. */
  undelivered(record: Rec): Promise<void>;
  /** Sends the message that looks at the line again, if this waiter needs one. */
  watch(record: Rec, ticket: string): Promise<void>;
}
