import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import type { Parked } from './calls.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { type Arrived, isLineFull } from './limits/full-lines.ts';
import { refuseWhereFull } from './limits/full-namespaces.ts';
import { DEFAULT_QUOTAS } from './limits/quotas.ts';
import { failTask, NOTIFY_MS, type Notified, notifyFailed } from './notify.ts';
import { deleteTicket, getTicket, nameOfLine, putTicket, queueFull, type TaskTicket, ticketName } from './waiters.ts';

/** What a task asks for. `key` is that of the line. */
export type AskedByTask = Omit<TaskTicket, 'taskToken' | 'ticket' | 'parkedAt' | 'deadline'>;

/** The grant that a request has, or had. */
export interface OwnGrant {
  /** Of a grant from the line: the waiter that received it. */
  ticket: string | undefined;
  /** Whether it was made for the grant window, and no call has claimed it. */
  isUnclaimed: boolean;
  /** Epoch milliseconds. */
  expiresAt: number;
  /** Whether it is on record still. It may have expired. */
  stands: boolean;
  /** How it ended, or `broken` if an operator has marked it as ending. */
  lost?: 'released' | 'broken' | undefined;
}

/** A write on the record, and the record after it. If the write was lost, the record that kept it from happening. */
export interface WrittenRecord<Rec> {
  won: boolean;
  record: Rec;
}

export interface HandedOffTo<Rec> {
  /** The waiters that received grants. */
  granted: readonly string[];
  /** Those of them that may not have been notified. */
  unnotified: ReadonlySet<string>;
  /** `overtaken`: another call has changed the record, and this call has granted nothing. */
  end: 'granted' | 'empty' | 'waits' | 'left' | 'overtaken';
  record: Rec;
}

/** A lease, or the permits of a pool, as a task that parks sees it. */
export interface LockOfTask<Rec> {
  readonly asked: AskedByTask;
  /**
   * Marks the record, so that the line is served, unless the request has a grant, or had one.
   * @param over the record with a grant of the request that has expired: that grant does not keep the mark away
   */
  mark(ticket: string, over: Rec | undefined): Promise<WrittenRecord<Rec> & { isRuined?: boolean }>;
  own(record: Rec): OwnGrant | undefined;
  /** Ends the call if the grant of its request is by other terms. @throws HoldfastError InvalidRequest */
  refuseOther?(record: Rec, ticket: string): Promise<void>;
  /** When this request could be granted, in epoch milliseconds. */
  freeAt(record: Rec): number;
  /** How many waiters have joined the line, as far as the record tells. */
  arrived(record: Rec): Omit<Arrived, 'key'>;
  read(): Promise<Rec>;
  handOff(record: Rec): Promise<HandedOffTo<Rec>>;
  /** Makes the standing grant of the request that of this task's ticket, with its whole ttl. */
  passTo(record: Rec, ticket: TaskTicket): Promise<WrittenRecord<Rec>>;
  /** Notifies the task of the grant that this call has just passed to it. */
  notify(record: Rec, message: { ticket: TaskTicket; repeated: boolean }): Promise<Notified<Rec>>;
  /** Ends such a grant, whose task is gone and which no other call or task has had, and serves the next waiters. */
  giveUp(record: Rec): Promise<void>;
  /** Sends the message that looks again once holders in front of this task may be dead. */
  watch(record: Rec, ticket: string): Promise<void>;
  lost(why: 'released' | 'broken' | 'unknown', record: Rec): HoldfastError;
}

interface Parking<Rec> {
  lock: LockOfTask<Rec>;
  taskToken: string;
  parkSeconds: number;
}

/**
 * Parks a task for a lease or a permit (docs/protocols/queue.md#park, docs/protocols/pools.md#join). Writes its row first, even if the task could be granted at
 * once: if this call dies, the schedule finds the row and goes on.
 * @throws HoldfastError InvalidRequest (the request has a permit of another weight), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function park<Rec>(
  dependencies: LeaseDependencies,
  { lock, taskToken, parkSeconds }: Parking<Rec>,
  call: Call,
): Promise<Parked> {
  const { asked } = lock;
  await refuseWhereFull(dependencies, asked.key, call);
  const now = dependencies.clock.now();
  const ticket: TaskTicket = {
    ...{ ...asked, taskToken, ticket: ticketName(now, dependencies.ids.uuid()) },
    ...{ parkedAt: now, deadline: now + parkSeconds * 1000 },
  };
  await putTicket(dependencies, ticket, call);
  const outcome = await enter(dependencies, { lock, ticket }, call);
  const { holder } = asked;
  return { key: nameOfLine(asked.key), holder, ticket: ticket.ticket, parked: outcome === 'waits' };
}

/** `waits`: the task still waits, or may. `notified`: it does not, or another call is about to notify it. */
type Outcome = 'waits' | 'notified';

interface Entering<Rec> {
  lock: LockOfTask<Rec>;
  ticket: TaskTicket;
}

async function enter<Rec>(
  dependencies: LeaseDependencies,
  { lock, ticket }: Entering<Rec>,
  call: Call,
): Promise<Outcome> {
  for (let over: Rec | undefined; ; ) {
    const { won, record, isRuined } = await lock.mark(ticket.ticket, over);
    const own = lock.own(record);
    over = undefined;
    const arrival = { lock, ticket, record };
    let outcome: Outcome | 'again' = 'again';
    if (hasGrant(own, ticket)) return 'notified'; // the call that granted it notifies the task
    if (isRuined) outcome = await refuse(dependencies, { ...arrival, why: 'unknown' }, call);
    else if (won || !own) outcome = await arrive(dependencies, arrival, call);
    else if (own.lost) outcome = await refuse(dependencies, { ...arrival, why: own.lost }, call);
    else if (own.expiresAt > dependencies.clock.now())
      outcome = await takeGrant(dependencies, { ...arrival, repeated: !own.isUnclaimed }, call);
    else over = record;
    if (outcome !== 'again') return outcome;
  }
}

const hasGrant = (own: OwnGrant | undefined, { ticket }: TaskTicket): boolean =>
  own?.stands === true && own.ticket === ticket;

/** A task in line, and the record as a write of its call has just shown it. */
interface Arrival<Rec> extends Entering<Rec> {
  record: Rec;
}

/** The record is marked, or the lock is free. So the call that ends a grant finds the row, or this call serves the line. */
async function arrive<Rec>(
  dependencies: LeaseDependencies,
  { lock, ticket, record }: Arrival<Rec>,
  call: Call,
): Promise<Outcome | 'again'> {
  if (lock.freeAt(record) <= dependencies.clock.now()) {
    const { granted, unnotified, end, record: after } = await lock.handOff(record);
    if (end === 'overtaken') return 'again';
    if (unnotified.has(ticket.ticket)) return 'waits';
    if (granted.includes(ticket.ticket) || hasGrant(lock.own(after), ticket)) return 'notified';
    // A hand-off that stopped at a pile of expired rows has not seen the ticket.
    return end === 'empty' && !(await getTicket(dependencies, ticket, call)) ? 'notified' : 'waits';
  }
  if (await isLineFull(dependencies, { key: ticket.key, ...lock.arrived(record) }, call))
    return refuseFull(dependencies, { lock, ticket }, call);
  await lock.watch(record, ticket.ticket);
  return 'waits';
}

/** The request had its grant. Without an answer the ticket stays, and the next call that meets the ticket refuses the task. */
async function refuse<Rec>(
  dependencies: LeaseDependencies,
  { lock, ticket, record, why }: Arrival<Rec> & { why: 'released' | 'broken' | 'unknown' },
  call: Call,
): Promise<Outcome> {
  const delivery = await failTask(dependencies, { ticket, error: lock.lost(why, record) }, call);
  return delivery === 'unanswered' ? 'waits' : 'notified';
}

/**
 * Takes the task out of a line that is full. Ends the task itself first, as cancel does, so that a call that has just met its ticket cannot notify it
 * after this call has refused it.
 * @throws HoldfastError QueueFull
 */
async function refuseFull<Rec>(
  dependencies: LeaseDependencies,
  { lock, ticket }: Entering<Rec>,
  call: Call,
): Promise<Outcome> {
  const full = queueFull(ticket.key, (dependencies.quotas ?? DEFAULT_QUOTAS).waitersPerKey);
  const delivery = await notifyFailed(dependencies, { ticket, error: full }, call);
  if (delivery === 'unanswered') return 'waits'; // the task may still wait, so its ticket must stay
  if (delivery === 'gone' && hasGrant(lock.own(await lock.read()), ticket)) return 'notified';
  await deleteTicket(dependencies, ticket, call);
  throw full;
}

/**
 * The request has a grant, by a call, or by an older try of the task. Passes the grant to this task, and notifies it. So the schedule looks for this
 * ticket if the call dies, or its message gets no answer.
 * @param repeated whether another call or task may have had the grant. Then the grant stays if the task is gone
 */
async function takeGrant<Rec>(
  dependencies: LeaseDependencies,
  { lock, ticket, record, repeated }: Arrival<Rec> & { repeated: boolean },
  call: Call,
): Promise<Outcome | 'again'> {
  await lock.refuseOther?.(record, ticket.ticket);
  const passed = await lock.passTo(record, ticket);
  if (!passed.won) return 'again';
  if (call.timeLeftMs() < NOTIFY_MS) return 'waits'; // left to the schedule
  const { outcome, standing } = await lock.notify(passed.record, { ticket, repeated });
  if (outcome === 'overtaken') return 'again';
  if (outcome === 'unanswered') return 'waits';
  await deleteTicket(dependencies, ticket, call);
  if (outcome === 'gone' && !repeated) await lock.giveUp(standing);
  return 'notified';
}
