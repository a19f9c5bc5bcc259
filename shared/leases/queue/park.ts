import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { LeaseRecord } from '../record.ts';
import { endReason, isLeased, isOwn, isRepeatable, takeoverAt } from '../rules.ts';
import { leaseLost } from '../views.ts';
import { handOff } from './hand-off.ts';
import { heldByAnother, mark, renew, unmoved } from './marks.ts';
import { tellFailure, tellGrant } from './tell.ts';
import { deleteTicket, putTicket, type Ticket, ticketName } from './tickets.ts';

/** The answer to whoever brought the task; the task itself is told of its grant, or why there is none. */
export interface Parked {
  key: string;
  holder: string;
  /** The place in the queue. */
  ticket: string;
  /** False where the task was told at once, or is being told by another call. */
  parked: boolean;
}

export type ParkRequest = Omit<Ticket, 'ticket' | 'parkedAt' | 'deadline'> & { parkSeconds: number };

/**
 * Parks a task for a lease. Its row comes first, also when the lease looks free: should this call die, the schedule
 * finds the row and goes on.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function park(
  deps: LeaseDependencies,
  { parkSeconds, ...request }: ParkRequest,
  call: Call,
): Promise<Parked> {
  const now = deps.clock.now();
  const ticket: Ticket = {
    ...request,
    ticket: ticketName(now, deps.ids.uuid()),
    parkedAt: now,
    deadline: now + parkSeconds * 1000,
  };
  await putTicket(deps, ticket, call);
  const parked = await queueUp(deps, ticket, call);
  return { key: ticket.key, holder: ticket.holder, ticket: ticket.ticket, parked };
}

/** @returns whether the task is left waiting */
async function queueUp(deps: LeaseDependencies, ticket: Ticket, call: Call): Promise<boolean> {
  for (;;) {
    const marked = await mark(deps, ticket.key, heldByAnother(ticket), call);
    const outcome = marked.won
      ? await behind(deps, ticket, marked.standing, call)
      : await before(deps, ticket, marked.standing, call);
    if (outcome !== 'again') return outcome === 'waits';
  }
}

type Outcome = 'waits' | 'told' | 'again';

/** The lease is held and marked: whoever ends it finds the ticket. */
async function behind(deps: LeaseDependencies, ticket: Ticket, standing: LeaseRecord, call: Call): Promise<Outcome> {
  const expired = takeoverAt(standing, deps.clockSkewMs) <= deps.clock.now();
  return expired ? handOn(deps, ticket, standing, 'expired', call) : 'waits';
}

/** The lease is free, or this very request has or had it. */
async function before(deps: LeaseDependencies, ticket: Ticket, standing: LeaseRecord, call: Call): Promise<Outcome> {
  if (!isOwn(standing, ticket)) return handOn(deps, ticket, standing, 'free', call);
  if (!isLeased(standing)) {
    const lost = leaseLost(ticket.key, endReason(standing), standing);
    if ((await tellFailure(deps, ticket, lost, call)) !== 'unanswered') await deleteTicket(deps, ticket, call);
    return 'told';
  }
  if (standing.ticket === ticket.ticket) return 'told'; // whoever granted it tells
  if (isRepeatable(standing, ticket, deps.clock.now())) return repeat(deps, ticket, standing, call);
  // Its time is over, or it is another caller's of the same name.
  const marked = await mark(deps, ticket.key, unmoved(standing), call);
  return marked.won ? behind(deps, ticket, marked.standing, call) : 'again';
}

/** The task was tried again: its new token is told of the grant that it has. */
async function repeat(deps: LeaseDependencies, ticket: Ticket, standing: LeaseRecord, call: Call): Promise<Outcome> {
  const renewed = await renew(deps, standing, call);
  if (!renewed.won) return 'again';
  const told = await tellGrant(deps, ticket, renewed.standing, call, { repeated: true });
  if (told === 'unanswered') return 'waits'; // its row is left to the schedule
  await deleteTicket(deps, ticket, call);
  return 'told';
}

async function handOn(
  deps: LeaseDependencies,
  ticket: Ticket,
  standing: LeaseRecord,
  ending: 'expired' | 'free',
  call: Call,
): Promise<Outcome> {
  const { moved, end } = await handOff(deps, standing, ending, call);
  if (end === 'overtaken' && moved.length === 0) return 'again';
  return moved.includes(ticket.ticket) || end === 'empty' ? 'told' : 'waits';
}
