import { BOUND_SECONDS } from '../../../shared/locks/dependencies.ts';
import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { eventsOf, nameOf } from './line.model.ts';

/** The notification of a task, recorded as the answer of the call that waited for it. */
interface TaskInput {
  holder: string;
  requestId: string;
  /** Absent from a request for a bound grant. */
  ttlSeconds?: number;
  parkSeconds?: number;
  /** The ticket, whether the task was parked, and when: known once the call that brings it was answered. */
  ticket?: string;
  parked?: boolean;
  parkedMs?: number;
  /** When the task stopped waiting without a notice. */
  closedMs?: number;
}

const inputOf = ({ input }: Entry) => input as unknown as TaskInput;

/** Turns tasks into calls of acquire, and the end of an execution into the end of its grants. */
export const asGrants = (entries: readonly Entry[]): Entry[] =>
  entries.flatMap((entry): Entry[] => {
    // The call that brings a task is answered with a position, not with a grant.
    if (entry.call === 'acquire' && entry.input.taskToken !== undefined) return [];
    if (entry.call === 'task') return [{ ...entry, call: 'acquire' }];
    if (entry.call !== 'executionEnds') return [entry];
    // A redriven execution may be granted another lease. The end may also free a grant that a client shares with the execution.
    const isOfIt = ({ input }: Entry) => input.holder === entry.input.holder;
    const endedAt = entry.calledAt.moment;
    const redriven = entries.find(
      (one) => one.call === 'executionRedriven' && isOfIt(one) && one.calledAt.moment > endedAt,
    );
    const redrivenAt = redriven?.calledAt.moment ?? Number.POSITIVE_INFINITY;
    const answers = entries.filter((one) => {
      if (!isOfIt(one) || one.outcome !== 'ok') return false;
      if (one.call === 'task') return Number(one.answeredAt?.moment) < endedAt;
      const isItsOwn = one.actor === entry.actor && one.calledAt.moment < endedAt;
      return one.call === 'acquire' && (isItsOwn || one.body?.repeated === true) && one.calledAt.moment < redrivenAt;
    });
    const ends = answers.map(({ body, input }) => {
      const isOlder = Date.parse(String(body?.acquiredAt)) - BEGIN < entry.calledAt.ms;
      // Only the end of an execution that the grant names ends the grant.
      const isNamed = input.execution !== undefined;
      return {
        ...entry,
        call: 'release',
        input: { ...entry.input, leaseId: body?.leaseId, ...(redriven && { redrivenAt, isOlder, isNamed }) },
      };
    });
    return [entry, ...ends];
  });

const grantsOf = (entries: readonly Entry[]) =>
  asGrants(entries).filter(({ call, outcome }) => call === 'acquire' && outcome === 'ok');

/** The later of two grants, by the service's clocks, has the higher fence. */
export function fencesFollowGrants(entries: readonly Entry[], facts: WorldFacts): Violation[] {
  const grants = grantsOf(entries);
  const slack = facts.foreignLeases || (facts.sweeps && !facts.withinBound) ? facts.spreadMs + 1 : 0;
  for (const one of grants)
    for (const other of grants) {
      const [before, after] = [one, other].map(({ body }) => Date.parse(String(body?.acquiredAt))) as [number, number];
      if (after - before <= facts.spreadMs || one.body?.leaseId === other.body?.leaseId) continue;
      if (Number(other.body?.fence) + slack > Number(one.body?.fence)) continue;
      return [
        {
          promise: 'fences rise with each grant',
          detail: `${other.body?.fence} after ${one.body?.fence}`,
          entries: [one, other],
        },
      ];
    }
  return [];
}

/**
 * No other request is granted the lease before a parked task with an earlier ticket. Such a task counts if its call was answered before
 * the grant was made, it had not stopped waiting, it was not past its deadline, and neither it nor another call of its request had been answered
 * when the grant was.
 * A plain caller has no ticket, so every parked task comes before it. Such a caller is excused if a third-party client may have removed the mark,
 * or if the parked task may have been granted the lease before, and that grant expired because its message was lost.
 */
export function inOrder(entries: readonly Entry[], facts: WorldFacts): Violation[] {
  const tasks = entries.filter((entry) => entry.call === 'task' && inputOf(entry).parked === true);
  for (const granted of grantsOf(entries)) {
    const { body = {}, answeredAt, input } = granted;
    const place = input.token === undefined ? undefined : ticketOf(granted, entries);
    if (entries.some((one) => one.call === 'runNext' && place !== undefined && one.input.ticket === place)) continue;
    if (body.repeated || !answeredAt || (place === undefined && (facts.foreignLeases || input.token !== undefined)))
      continue;
    const grantedMs = Date.parse(String(body.acquiredAt)) - BEGIN;
    for (const task of tasks) {
      const { ticket = '', parkedMs = Number.POSITIVE_INFINITY, closedMs, parkSeconds = 86_400 } = inputOf(task);
      if (task.input.holder === input.holder || (place !== undefined && ticket >= place)) continue;
      // A caller that waits has a ticket too, which no answer shows. If its call began after the task was parked, the ticket is later.
      const mayBeBefore = input.ticket !== undefined || granted.calledAt.ms <= parkedMs + facts.spreadMs;
      if (place === undefined && Number(input.waitSeconds ?? 0) > 0 && mayBeBefore) continue;
      // A task is notified of a grant that such a call of its own request received.
      const isEarlier = (one: Entry) => waitsFor(one, granted) && one.calledAt.ms <= parkedMs + facts.spreadMs;
      if (place !== undefined && (entries.some(isEarlier) || isPassedOn(granted, entries))) continue;
      const isParked = parkedMs + facts.spreadMs < grantedMs;
      const isThere = (task.answeredAt?.ms ?? closedMs ?? Number.POSITIVE_INFINITY) > answeredAt.ms;
      const mayHaveGranted = (entry: Entry) => mayHaveGrantedInSilence(entry, task, grantedMs + facts.spreadMs);
      if (place === undefined && (entries.some(mayHaveGranted) || wasGrantedBefore(task, granted, entries))) continue;
      const isOverdue = task.calledAt.ms + parkSeconds * 1000 - facts.spreadMs < answeredAt.ms;
      if (isParked && isThere && !isOverdue && !hasHadItsTurn(task, entries, grantedMs + facts.spreadMs))
        return [
          {
            promise: 'parked tasks are granted in the order of their tickets',
            detail: `${granted.actor} was granted while ${task.actor} was parked before`,
            entries: [task, granted],
          },
        ];
    }
  }
  return [];
}

/**
 * Whether the grant replaced a bound grant of the same execution. The schedule passes a bound grant that reached no task to the next task of the execution,
 * before all others in line (docs/protocols/bound.md#a-grant-that-reached-no-task). An earlier waiter of the execution received that grant in its turn,
 * perhaps by a call without an answer.
 */
function isPassedOn({ input }: Entry, entries: readonly Entry[]): boolean {
  if (input.bound !== true) return false;
  const events = eventsOf(entries, String(input.key));
  const at = events.findIndex((event) => event.what === 'grant' && event.ticket === input.ticket);
  const before = events.slice(0, Math.max(0, at)).findLast(({ what }) => what === 'lock');
  const standing = before?.what === 'lock' ? before.state.entries : [];
  return standing.some(({ bound, execution }) => bound === true && execution === input.execution);
}

/** Whether another call of the task's request was answered with its grant, and the task was not notified yet. */
const hasHadItsTurn = (task: Entry, entries: readonly Entry[], beforeMs: number): boolean =>
  entries.some(
    (entry) =>
      isCallOf(entry, task) && entry.outcome === 'ok' && Date.parse(String(entry.body?.acquiredAt)) - BEGIN <= beforeMs,
  );

const isCallOf = ({ call, input }: Entry, task: Entry): boolean =>
  call === 'acquire' && input.holder === task.input.holder && input.requestId === inputOf(task).requestId;

/** Whether a call waits in line for the request of the task, by another ticket. */
const waitsFor = (one: Entry, task: Entry): boolean =>
  isCallOf(one, task) && one.input.taskToken === undefined && Number(one.input.waitSeconds ?? 0) > 0;

/** Longer than any call lasts, even in a function that stands still for a time. */
const MAX_CALL_MS = 160_000;
/** A call of at most this duration has sent the message about its grant before the grant expired, because every ttl is longer. */
const SHORT_CALL_MS = 2500;

/** A call that ends a lease may grant it to the parked task, and be struck before it notifies the task. */
function mayHaveGrantedInSilence(
  { call, calledAt, answeredAt, faults, strays, outcome, foreign }: Entry,
  parked: Entry,
  beforeMs: number,
): boolean {
  const endedMs = strays > 0 ? Number.POSITIVE_INFINITY : (answeredAt?.ms ?? calledAt.ms + MAX_CALL_MS);
  if (foreign || call === 'task' || calledAt.ms > beforeMs || endedMs < parked.calledAt.ms) return false;
  const isLong = endedMs - calledAt.ms > SHORT_CALL_MS;
  const isFailed = ['OutcomeUnknown', 'Unavailable', 'Throttled'].includes(outcome ?? '');
  return isLong || isFailed || faults.some((fault) => /^Send(Task|Durable)|death/.test(fault));
}

/** The ticket by which a task was granted the lease. Undefined if a duplicate of its call may have another ticket. */
const ticketOf = (granted: Entry, entries: readonly Entry[]): string | undefined =>
  callsFor(granted, entries).length === 1 ? inputOf(granted).ticket : undefined;

/** Whether a waiter of the task's request was granted the lease before, as the tables show it. */
const wasGrantedBefore = (task: Entry, granted: Entry, entries: readonly Entry[]): boolean =>
  eventsOf(entries, String(task.input.key)).some(
    (event) =>
      event.what === 'grant' &&
      event.ticket !== undefined &&
      event.request === nameOf(task) &&
      event.fence < Number(granted.body?.fence),
  );

/** The calls that brought a task. */
const callsFor = ({ input }: Entry, entries: readonly Entry[]) =>
  entries.filter((one) => one.call === 'acquire' && one.input.taskToken === input.token);

/** A task measures its work by the ttl: at its notification all of the ttl must be left, but for half a second. */
const MAX_SHORTFALL_MS = 500;

/** A task is notified with its whole ttl. Bound grants do not count: their holders do not rely on a ttl, and a late message does not renew them. */
export function wholeForTasks(entries: readonly Entry[]): Violation[] {
  const ttlMs = ({ input }: Entry) => Number(input.ttlSeconds) * 1000;
  const short = entries.filter(
    (one) =>
      one.call === 'task' &&
      one.outcome === 'ok' &&
      one.body?.bound !== true &&
      Number(one.body?.remainingMs) < ttlMs(one) - MAX_SHORTFALL_MS,
  );
  return short.map((task) => ({
    promise: 'a task gets its whole ttl',
    detail: `${task.actor} received ${task.body?.remainingMs} ms of ${ttlMs(task) / 1000} s`,
    entries: [task],
  }));
}

/** A message to a task arrives within this time. */
const UNDER_WAY_MS = 1000;

interface TargetInput {
  key: string;
  wrapper: string;
  /** When the wrapper begins to stop its target, or would if it had not crashed. */
  stopsMs: number;
}

/**
 * Two targets of wrappers never run at once. A target counts until its wrapper begins to stop it, or until another caller begins to end the lease. A target
 * that outlives its dead wrapper for longer is kept out only by its fence.
 */
export function targetsAlone(entries: readonly Entry[]): Violation[] {
  const targets = entries.filter(({ call }) => call === 'target');
  const endOf = (target: Entry): number => {
    const { wrapper, stopsMs } = target.input as unknown as TargetInput;
    const grant = entries.find(({ call, actor, outcome }) => call === 'task' && actor === wrapper && outcome === 'ok');
    const notifiedMs = grant?.answeredAt?.ms ?? 0;
    // A release that is answered before the notice counts only if the message was under way then.
    const isLate = ({ answeredAt }: Entry) => (answeredAt?.ms ?? Number.POSITIVE_INFINITY) + UNDER_WAY_MS > notifiedMs;
    const ended = entries.filter((one) => {
      if (one.call === 'breakLease') return one.input.fence === grant?.body?.fence;
      const isOthers = one.call === 'release' && one.actor !== wrapper;
      return isOthers && one.input.leaseId === grant?.body?.leaseId && isLate(one);
    });
    return Math.min(stopsMs, target.answeredAt?.ms ?? stopsMs, ...ended.map(({ calledAt }) => calledAt.ms));
  };
  const running = targets
    .map((entry) => ({ entry, from: entry.calledAt.ms, to: endOf(entry) }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from);
  for (const [index, one] of running.entries())
    for (const other of running.slice(index + 1))
      if (other.from < one.to)
        return [
          {
            promise: 'no two targets run at once',
            detail: `that of ${other.entry.actor} from ${other.from.toFixed(0)} ms, while that of ${one.entry.actor} runs until ${one.to.toFixed(0)} ms`,
            entries: [one.entry, other.entry],
          },
        ];
  return [];
}

/** Only the request that received a grant is notified of the grant. */
export function oneTaskForEach(entries: readonly Entry[]): Violation[] {
  const notified = new Map<unknown, Entry>();
  for (const entry of grantsOf(entries)) {
    const other = notified.get(entry.body?.leaseId);
    const isSaidTwice = !entry.body?.repeated && !other?.body?.repeated;
    if (other && (other.input.holder !== entry.input.holder || isSaidTwice))
      return [
        {
          promise: 'each grant is sent to one task',
          detail: `${other.actor} and ${entry.actor}`,
          entries: [other, entry],
        },
      ];
    if (!other || other.body?.repeated) notified.set(entry.body?.leaseId, entry);
  }
  return [];
}

/** If an answer says that a ticket is cancelled, its task has been notified. */
export function cancelledForGood(entries: readonly Entry[]): Violation[] {
  const cancelled = entries.filter(({ call, body }) => call === 'cancelWaiter' && body?.cancelled === true);
  return cancelled.flatMap((entry) => {
    const task = entries.find((one) => one.call === 'task' && inputOf(one).ticket === entry.input.ticket);
    if (!task || task.body?.reason === 'cancelled') return [];
    const detail = `${task.actor} received ${task.outcome ?? 'nothing'}`;
    return [{ promise: 'a cancelled task is notified, and never granted', detail, entries: [entry, task] }];
  });
}

/**
 * After a task was refused, no caller meets it as a holder for longer than the ttl of a grant that was never answered. Such a
 * grant may come later: the call that refused the task may have exited before it deleted the ticket, and the call that then granted the ticket
 * before it passed the grant on. If the network duplicated the call or the ticket, the second ticket may be granted too.
 */
export function refusedForGood(entries: readonly Entry[], facts: WorldFacts): Violation[] {
  const refused = entries.filter(
    ({ call, outcome }) => call === 'task' && (outcome === 'LeaseHeld' || outcome === 'LeaseLost'),
  );
  return refused.flatMap((task) => {
    const calls = callsFor(task, entries);
    if (calls.length !== 1 || calls[0]?.strays !== 0) return [];
    const notifiedMs = task.answeredAt?.ms ?? 0;
    const maxMs = longestMs(task, facts);
    // A redriven execution comes with a new token. Its lease is kept as long as that task waits, even if the task is never notified.
    const isKept = (one: Entry) =>
      entries.some(
        (later) =>
          later.call === 'task' &&
          later.input.holder === task.input.holder &&
          later.calledAt.ms > task.calledAt.ms &&
          later.calledAt.ms < one.calledAt.ms &&
          one.calledAt.ms <=
            (later.answeredAt?.ms ?? inputOf(later).closedMs ?? Number.POSITIVE_INFINITY) + longestMs(later, facts),
      );
    // The task with the new token may be granted the lease, and so may a client that asks in its name.
    const isOfNewToken = ({ body }: Entry) =>
      entries.some(
        (one) =>
          (one.call === 'task' || one.call === 'acquire') &&
          one.outcome === 'ok' &&
          one.input.holder === task.input.holder &&
          one.body?.fence === body?.fence,
      );
    const seen = entries.find(
      (one) =>
        one.body?.holder === task.input.holder &&
        !isOfNewToken(one) &&
        !isKept(one) &&
        one.calledAt.ms > Math.max(notifiedMs, grantedMs(one)) + maxMs &&
        one.call !== 'task' &&
        (one.call === 'readLeases' ? one.body?.state === 'held' : one.outcome === 'LeaseHeld' && isStanding(one)),
    );
    if (!seen) return [];
    return [
      {
        promise: 'a task that was refused never holds',
        detail: `${task.actor} is met as a holder`,
        entries: [task, seen],
      },
    ];
  });
}

/** How long other calls may see a grant of the task, as far as clocks agree. A bound grant has no such time: `refusedAndBound` checks bound grants. */
const longestMs = (task: Entry, { spreadMs }: WorldFacts) =>
  Number(inputOf(task).ttlSeconds ?? BOUND_SECONDS) * 1000 + spreadMs + 500;

/**
 * No ttl ends the grant of a bound task that was refused. The call that wrote the grant finds that the task is gone, and ends the grant before the call
 * answers, unless a fault happened to the call, or another call or the schedule worked on the same grant.
 */
export function refusedAndBound(history: readonly Entry[], key: string): Violation[] {
  const grants = eventsOf(history, key).filter((event) => event.what === 'grant');
  return grants.flatMap(({ ticket, fence, entry: granting, moment }) => {
    const task = history.find(
      (one) =>
        one.call === 'task' && ticket !== undefined && inputOf(one).ticket === ticket && one.input.bound === true,
    );
    const { answeredAt, faults, strays } = granting;
    if (!task?.answeredAt || task.outcome === 'ok' || !answeredAt || faults.length > 0 || strays > 0) return [];
    const mayNotify = (one: Entry) =>
      one !== granting && (isCallOf(one, task) || one.call === 'repairQueues') && mayBeUnderWay(one, granting);
    if (task.answeredAt.moment > answeredAt.moment || history.some(mayNotify)) return [];
    const seen = history.find(
      (one) =>
        one.input.key === key &&
        one.body?.fence === fence &&
        one.body?.holder === task.input.holder &&
        one.calledAt.moment > Math.max(answeredAt.moment, moment) &&
        one.faults.length === 0 &&
        (one.call === 'readLeases' ? one.body?.state === 'held' : one.outcome === 'LeaseHeld'),
    );
    if (!seen) return [];
    const detail = `${task.actor} is met as a bound holder`;
    return [{ promise: 'a task that was refused never holds', detail, entries: [task, granting, seen] }];
  });
}

/** A call with a fault may still write after its answer. */
const mayBeUnderWay = ({ calledAt, answeredAt, strays }: Entry, at: Entry): boolean =>
  calledAt.moment < Number(at.answeredAt?.moment) &&
  (strays > 0 || (answeredAt?.moment ?? Number.POSITIVE_INFINITY) > at.calledAt.moment);

/** When the grant of an answer was made. Its fence is the time, or one more than the fence before. */
const grantedMs = ({ body }: Entry) => Number(body?.fence ?? BEGIN) - BEGIN;

const isStanding = ({ body, calledAt }: Entry) => Date.parse(String(body?.expiresAt)) - BEGIN > calledAt.ms;

/** After the end of a history, no task waits whose execution runs. */
export function forgotten(entries: readonly Entry[]): Violation[] {
  const waiting = entries.filter(
    (one) => one.call === 'task' && !one.answeredAt && inputOf(one).closedMs === undefined,
  );
  return waiting.map((task) => ({
    promise: 'no parked task is forgotten',
    detail: `${task.actor} still waits`,
    entries: [task],
  }));
}
