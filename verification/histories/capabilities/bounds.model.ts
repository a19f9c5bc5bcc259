import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { beliefs } from './beliefs.ts';
import { lastAnsweredMs } from './dead-holders.model.ts';
import { eventsOf, nameOf } from './line.model.ts';
import { asGrants } from './queue.model.ts';

// Bounds in time. Each bound counts from the first run of the schedule that no fault struck, and is checked when it has passed.

/** The call that wrote a grant notifies its task within this time, or the schedule does. */
const NOTIFIED_AFTER_MS = 10_000;
/** A request of a call reaches the table within this time. */
const UNDER_WAY_MS = 100;
/** A caller that was granted the lease claims it within two seconds. The next caller polls within a quarter of a second after the margin. */
const WINDOW_MS = 2000 + CLOCK_SKEW_MS + 250;

type Facts = Pick<WorldFacts, 'spreadMs'>;

const NOTIFIED_IN_TIME = 'a task is notified within two minutes after its deadline';
const GRANT_NOTIFIED = 'a task is notified of its grant within two minutes';
const GRANT_NOTIFIED_AGAIN = 'a task that is tried again is notified of its grant within two minutes';
const WINDOW_KEPT = 'a caller that dies in line costs the next caller one window';
const FREED_BY_EVENT = 'the end of an execution frees its lease within one event';
const FREED_BY_FAILED_READ =
  'the end of an execution frees its lease within one event, even if one read of its state fails';
const AT_WORK = 'no caller holds a lease beside the work of an ended execution within its grace';
export const WHOLE_LEASE = 'a caller has its whole lease, or none';
export const WHOLE_PERMIT = 'a caller has its whole permit, or none';
const QUOTA_KEPT = 'the line of a key has no more places than its quota';

/** Whether a task still waits at a moment: it was neither notified nor closed. */
const waitsUntil = (task: Entry, ms: number): boolean =>
  (task.answeredAt?.ms ?? Number(task.input.closedMs ?? Number.POSITIVE_INFINITY)) > ms;

const parkedMs = ({ input }: Entry): number => Number(input.parkedMs ?? Number.POSITIVE_INFINITY);

/** The deadline of a task by a clock that is behind. */
const latestDeadlineMs = (task: Entry, { spreadMs }: Facts): number =>
  parkedMs(task) + Number(task.input.parkSeconds ?? 86_400) * 1000 + spreadMs;

/** The first run of the schedule from a moment on that checked each key, and that no fault struck. */
function undisturbedRun(history: readonly Entry[], fromMs: number): Entry | undefined {
  return history.find(
    ({ call, input, outcome, faults, body, calledAt }) =>
      call === 'repairQueues' &&
      input.key === undefined &&
      outcome === 'ok' &&
      body?.complete === true &&
      faults.length === 0 &&
      calledAt.ms >= fromMs,
  );
}

/** The tasks that a message can reach. */
const tasksOf = (history: readonly Entry[], key: string): Entry[] =>
  history.filter(({ call, input }) => call === 'task' && input.key === key && input.unreachable === undefined);

const grantsOn = (history: readonly Entry[], key: string) =>
  eventsOf(history, key).filter((event) => event.what === 'grant');

/** Overdue tasks are notified by an undisturbed run. If a grant was made just before that run, the next run notifies its task. */
export function notifiedInTime(history: readonly Entry[], key: string, facts: Facts): Violation[] {
  const grants = grantsOn(history, key);
  const tasks = tasksOf(history, key);
  return tasks.flatMap((task) => {
    const run = undisturbedRun(history, latestDeadlineMs(task, facts) + NOTIFIED_AFTER_MS + UNDER_WAY_MS);
    if (!run?.answeredAt || !waitsUntil(task, run.answeredAt.ms)) return [];
    const youngMs = run.calledAt.ms - NOTIFIED_AFTER_MS - facts.spreadMs;
    if (grants.some(({ request, ms }) => nameOf(task) === request && ms > youngMs)) return [];
    const detail = `${task.actor} still waits after ${run.answeredAt.ms.toFixed(0)} ms`;
    return [{ promise: NOTIFIED_IN_TIME, detail, entries: [task, run] }];
  });
}

/** The calls that may end a grant. */
const ENDS = new Set(['release', 'breakLease', 'cancelWaiter', 'withdraw', 'executionEnds', 'heartbeat']);

/** A task is notified of the grant of its request while the grant stands, even if the task was tried again since. */
export function grantNotifiedInTime(history: readonly Entry[], key: string, facts: Facts): Violation[] {
  const grants = grantsOn(history, key);
  const tasks = tasksOf(history, key);
  return grants.flatMap((grant, nth) => {
    const unnotified = tasks.find((task) => {
      if (nameOf(task) !== grant.request) return false;
      const fromMs = Math.max(grant.ms, parkedMs(task)) + NOTIFIED_AFTER_MS + facts.spreadMs + UNDER_WAY_MS;
      const run = undisturbedRun(history, fromMs);
      const ranMs = run?.answeredAt?.ms ?? Number.POSITIVE_INFINITY;
      const isOver = ranMs >= grant.ms + Number(task.input.ttlSeconds) * 1000 - facts.spreadMs;
      if (isOver || !waitsUntil(task, ranMs) || ranMs > latestDeadlineMs(task, facts)) return false;
      const mayHaveEnded = history.some(
        ({ call, input, calledAt }) =>
          ENDS.has(call) && input.key === key && calledAt.ms < ranMs && calledAt.ms > grant.ms - 60_000,
      );
      return !mayHaveEnded && !grants.slice(nth + 1).some(({ ms }) => ms < ranMs);
    });
    if (!unnotified) return [];
    const detail = `${unnotified.actor} was not notified of its grant with fence ${grant.fence}`;
    const isAgain = tasks.some(
      (one) =>
        one !== unnotified && one.calledAt.moment < unnotified.calledAt.moment && nameOf(one) === nameOf(unnotified),
    );
    return [{ promise: isAgain ? GRANT_NOTIFIED_AGAIN : GRANT_NOTIFIED, detail, entries: [unnotified, grant.entry] }];
  });
}

/** If a caller does not claim its lease, the next caller in line goes on after the grant window, unless a fault strikes it. */
export function windowKept(history: readonly Entry[], key: string, { spreadMs }: Facts): Violation[] {
  const events = eventsOf(history, key);
  const rows = new Map<string, Entry>();
  for (const [nth, event] of events.entries()) {
    if (event.what === 'row') rows.set(event.ticket, event.entry);
    if (event.what === 'deletion' || event.what === 'flag') rows.delete(event.ticket);
    if (event.what !== 'grant' || !event.isWindow) continue;
    const untilMs = event.ms + WINDOW_MS + spreadMs + 2 * UNDER_WAY_MS;
    const [ticket, next] = [...rows].filter(([one]) => one !== event.ticket).sort()[0] ?? [];
    const isPaused = events.some(
      (one) => one.what === 'lock' && one.ms <= untilMs && one.ms > event.ms && one.state.cap?.limit === 0,
    );
    const isThere = next?.faults.length === 0 && Number(next.answeredAt?.ms) > untilMs && !next.input.taskToken;
    const goesOn = events.slice(nth + 1).some((later) => {
      const isIts = (later.what === 'deletion' || later.what === 'flag') && later.ticket === ticket;
      return later.ms <= untilMs && (later.what === 'grant' || later.what === 'claim' || isIts);
    });
    if (!next || !isThere || isPaused || goesOn) continue;
    const detail = `${next.actor} still waits ${(untilMs - event.ms).toFixed(0)} ms after a grant that was not claimed`;
    return [{ promise: WINDOW_KEPT, detail, entries: [event.entry, next] }];
  }
  return [];
}

/** How long AWS may show an ended execution as running (work.ts). */
const STATUS_LAG_MS = 1000;

/** One try of DescribeExecution may fail. */
const ONE_FAILED_READ = /^(DescribeExecution|GetDurableExecution) (throttled|reset|lostBefore|error500)$/;

/**
 * After the event of its end, no caller meets a grant of the execution. A lease with a target belongs to the target. A clock that is too far
 * ahead of Step Functions takes the grant for one from after the end, and leaves the grant to the second pass. So does a pass without `stopDate` by a
 * clock that is behind, if the grant is as young as the clocks may differ. A pass without a status believes AWS, which shows the end a second later.
 * A grant that was answered just before the end stays until no status can be that old.
 */
export function freedByEvent(
  history: readonly Entry[],
  { withinBound, spreadMs }: Pick<WorldFacts, 'withinBound' | 'spreadMs'>,
): Violation[] {
  if (!withinBound) return [];
  const isUndisturbed = ({ faults }: Entry) =>
    faults.length === 0 || (faults.length === 1 && ONE_FAILED_READ.test(String(faults[0])));
  const ends = history.filter((one) => one.call === 'executionEnded' && one.answeredAt && isUndisturbed(one));
  return ends.flatMap((end) => {
    const latestMs = end.calledAt.ms - (end.input.stopDate === undefined ? spreadMs : 0);
    const grant = history.find(
      ({ call, input, outcome, answeredAt }) =>
        (call === 'task' || call === 'acquire') &&
        outcome === 'ok' &&
        input.execution === end.input.execution &&
        !input.target &&
        !input.graceSeconds &&
        Number(answeredAt?.moment) < end.calledAt.moment &&
        Number(answeredAt?.ms) <= latestMs,
    );
    const isRedriven = history.some(
      ({ call, input }) => call === 'executionRedriven' && input.holder === grant?.input.holder,
    );
    const mayLag =
      end.input.status === undefined &&
      history.some(
        ({ call, input, calledAt }) =>
          call === 'executionEnds' &&
          input.holder === grant?.input.holder &&
          calledAt.ms + STATUS_LAG_MS > end.calledAt.ms,
      );
    // A grant keeps the execution of the first call of its request.
    const isOfAnother = history.some(
      ({ outcome, body, input }) =>
        outcome === 'ok' &&
        body?.leaseId === grant?.body?.leaseId &&
        body?.repeated === false &&
        input.execution !== end.input.execution,
    );
    if (!grant?.body?.fence || isRedriven || mayLag || isOfAnother || mayStay(history, { grant, end }, spreadMs))
      return [];
    const seen = history.find(
      ({ call, outcome, body, input, calledAt }) =>
        (call === 'acquire'
          ? outcome === 'LeaseHeld' && body?.expiresAt !== null
          : call === 'readLeases' && body?.state === 'held') &&
        input.key === grant.input.key &&
        body?.holder === grant.input.holder &&
        body?.fence === grant.body?.fence &&
        calledAt.moment > Number(end.answeredAt?.moment),
    );
    if (!seen) return [];
    const detail = `${seen.actor} meets ${grant.input.holder}, whose execution has ended`;
    return [{ promise: end.faults.length > 0 ? FREED_BY_FAILED_READ : FREED_BY_EVENT, detail, entries: [end, seen] }];
  });
}

/** A status is at most this old. */
const MAX_LAG_MS = 60_000;

function mayStay(history: readonly Entry[], { grant, end }: { grant: Entry; end: Entry }, spreadMs: number): boolean {
  const { key, holder } = grant.input;
  const answeredMs = lastAnsweredMs(history, { key, holder }) + spreadMs;
  const endedMs =
    history.find(({ call, input }) => call === 'executionEnds' && input.holder === holder)?.calledAt.ms ??
    end.calledAt.ms;
  const isSureLater = end.input.again === true && answeredMs + MAX_LAG_MS < end.calledAt.ms;
  // Within the margin the first pass asks AWS. If the question fails, the second pass decides.
  const marginMs = end.faults.length > 0 ? CLOCK_SKEW_MS : 0;
  return answeredMs + marginMs > endedMs && !isSureLater;
}

/** A caller that was granted the key in line has more than half of its ttl left, however late its claim was answered. */
export function wholeForCallers(
  history: readonly Entry[],
  key: string,
  promise: typeof WHOLE_LEASE | typeof WHOLE_PERMIT,
): Violation[] {
  const grants = grantsOn(history, key);
  const short = history.filter(({ call, input, outcome, body, faults }) => {
    const isInLine = call === 'acquire' && input.key === key && Number(input.waitSeconds ?? 0) > 0 && !input.taskToken;
    if (!isInLine || outcome !== 'ok' || body?.repeated) return false;
    // A fault after the claim, such as in the deletion of the row, may take more of the ttl.
    if (!faults.every((fault) => /^UpdateItem (slow|freeze|lostReply|delayed)$/.test(fault))) return false;
    const isOfLine = grants.some((grant) => grant.ticket !== undefined && grant.fence === body?.fence);
    return isOfLine && (Number(body?.remainingMs) + UNDER_WAY_MS) * 2 < Number(input.ttlSeconds) * 1000;
  });
  return short.map((entry) => ({
    promise,
    detail: `${entry.actor} was granted ${entry.body?.remainingMs} ms of ${entry.input.ttlSeconds} s`,
    entries: [entry],
  }));
}

/** Calls that come at once may all join. If the record takes too many waiters for gone, one arrival in 32 notices, or more often for a small quota. */
const maxPlaces = (quota: number, underWay: number): number => quota + Math.min(32, Math.ceil(quota / 32)) + underWay;

export function quotaKept(history: readonly Entry[], key: string, quota: number): Violation[] {
  const places = new Map<string, number>();
  for (const event of eventsOf(history, key)) {
    for (const [ticket, deadline] of places) if (deadline - BEGIN + 5000 < event.ms) places.delete(ticket);
    if (event.what === 'row') places.set(event.ticket, event.deadline);
    if (event.what === 'deletion' || event.what === 'flag') places.delete(event.ticket);
    const underWay = history.filter(
      ({ call, input, calledAt, answeredAt }) =>
        call === 'acquire' &&
        input.key === key &&
        calledAt.moment < event.moment &&
        event.moment < Number(answeredAt?.moment ?? Number.POSITIVE_INFINITY),
    ).length;
    if (places.size <= maxPlaces(quota, underWay)) continue;
    const detail = `${places.size} are in line, and the quota is ${quota}`;
    return [{ promise: QUOTA_KEPT, detail, entries: [event.entry] }];
  }
  return [];
}

/**
 * Functions go on after their execution has failed or was stopped. No other caller holds the lease during the grace that the execution asked for, as long as
 * the functions work and the answered end has not passed.
 */
export function atWork(history: readonly Entry[], { withinBound }: Pick<WorldFacts, 'withinBound'>): Violation[] {
  if (!withinBound) return [];
  return history.flatMap((work) => {
    const { key, holder, leaseId, untilMs, graceSeconds } = work.input;
    if (work.call !== 'work' || !graceSeconds || !work.answeredAt) return [];
    const ofKey = history.filter(({ input }) => input.key === key);
    const end = ofKey.find(({ call, input }) => call === 'executionEnds' && input.holder === holder);
    if (!end || end.input.status === 'SUCCEEDED') return [];
    const isOver = ofKey.some(({ call, input }) => ENDS_HOLDING.has(call) && (input.leaseId ?? leaseId) === leaseId);
    const lastMs = Math.min(work.answeredAt.ms, end.calledAt.ms + Number(graceSeconds) * 1000, Number(untilMs));
    const other = isOver
      ? undefined
      : beliefs(asGrants(ofKey)).find(
          ({ lease, from }) => lease !== leaseId && from < lastMs && from > work.calledAt.ms,
        );
    if (!other) return [];
    const detail = `${other.entry.actor} holds from ${other.from.toFixed(0)} ms, while a function of ${holder} works`;
    return [{ promise: AT_WORK, detail, entries: [work, other.entry] }];
  });
}

/** The calls, of the holder or of others, that end a holding. */
const ENDS_HOLDING = new Set(['release', 'withdraw', 'breakLease', 'cancelWaiter']);
