import type { WorldFacts } from '../caller.ts';
import type { Entry, Violation } from '../history.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { QUESTION_LATE } from '../wire.ts';
import { beliefs } from './beliefs.ts';
import { isDisturbed } from './dead-holders.model.ts';
import { eventsOf, nameOf } from './line.model.ts';

// The rules for executions that are redriven, or that go on after they have lost a grant.

const KEPT = 'no holder loses a lease before its time';
const NO_HOLDER = 'no task waits two minutes behind a grant without a holder';
const BOUND_REFUSED = 'no call without a task token or a callback has a bound grant';
const CLAIMED = 'a call that waits in line claims its grant, however slow Step Functions is';

/** After this time every call can know the status of an execution. A shown status is at most a minute old. */
const SURE_AFTER_MS = 65_000;
/** A message takes at most this long. */
const NOTIFIED_AFTER_MS = 1000;
/** A call that waits reads its row twice in this time, and answers. */
const POLLS_MS = 1500;

/**
 * No write ends a lease, or grants it to another request, while its holder may count on it, even if the holder was redriven and received its lease again.
 * @param grants with tasks as calls (`asGrants`)
 */
export function leaseIsKept(
  history: readonly Entry[],
  { key, grants }: { key: string; grants: readonly Entry[] },
  { withinBound }: Pick<WorldFacts, 'withinBound'>,
): Violation[] {
  if (!withinBound) return [];
  const believed = beliefs(grants);
  let lease: string | undefined;
  for (const event of eventsOf(history, key)) {
    if (event.what !== 'grant' && event.what !== 'end') continue;
    const next = event.what === 'grant' ? event.leaseId : undefined;
    const answered = believed.find(
      (one) => one.lease === lease && one.lease !== next && one.to > event.ms && isAnsweredBefore(one, event.moment),
    );
    lease = next;
    if (!answered) continue;
    const detail = `${event.entry.actor} ended that of ${answered.entry.actor}, who holds until ${answered.to.toFixed(0)} ms`;
    return [{ promise: KEPT, detail, entries: [answered.entry, event.entry] }];
  }
  return [];
}

const isAnsweredBefore = ({ entry }: { entry: Entry }, moment: number): boolean =>
  Number(entry.answeredAt?.moment) < moment;

/**
 * A task waits only behind a holder that has the key. It must not wait behind a grant of an execution that has ended or was redriven since, nor behind a
 * grant of its own execution that did not reach a task. The first run of the schedule without a fault, a minute after every call can know, ends such a grant.
 */
export function waitsBehindDead(
  history: readonly Entry[],
  key: string,
  { spreadMs }: Pick<WorldFacts, 'spreadMs'>,
): Violation[] {
  const ofKey = history.filter(({ input }) => input.key === key);
  const standing = standingOf(history, key, spreadMs);
  const grantedMs = eventsOf(history, key).flatMap(({ what, ms }) => (what === 'grant' ? [ms] : []));
  const runs = history.filter((one) => isWholeRun(one) && !isDisturbed(one, history, { key, spreadMs }));
  return ofKey.flatMap((task) => {
    if (task.call !== 'task' || !(Number(task.input.parkedMs) > 0)) return [];
    const fromMs = Number(task.input.parkedMs);
    const untilMs = task.answeredAt?.ms ?? Number(task.input.closedMs ?? Number.POSITIVE_INFINITY);
    const others = standing.filter(({ holder, isAnswered }) => isAnswered || holder !== task.input.holder);
    const starts = [fromMs, ...grantedMs, ...others.map(({ toMs }) => toMs)].filter((ms) => ms >= fromMs);
    for (const startMs of starts) {
      const run = runs.find(({ calledAt }) => calledAt.ms > startMs + SURE_AFTER_MS + spreadMs);
      const endMs = Number(run?.answeredAt?.ms) + NOTIFIED_AFTER_MS;
      const isMoved = grantedMs.some((ms) => ms > startMs && ms < endMs);
      if (!run || endMs > untilMs || isMoved || others.some((one) => one.fromMs < endMs && one.toMs > startMs))
        continue;
      const detail = `${task.actor} waits without a holder from ${startMs.toFixed(0)} to ${untilMs.toFixed(0)} ms`;
      return [{ promise: NO_HOLDER, detail, entries: [task, run] }];
    }
    return [];
  });
}

const isWholeRun = ({ call, input, outcome, body, faults }: Entry): boolean =>
  call === 'repairQueues' &&
  input.key === undefined &&
  outcome === 'ok' &&
  body?.complete === true &&
  faults.length === 0;

interface Standing {
  holder: unknown;
  isAnswered: boolean;
  fromMs: number;
  /** Until when the grant may keep others out. */
  toMs: number;
}

/** The grants of a key, with the time during which each may keep others out. */
function standingOf(history: readonly Entry[], key: string, spreadMs: number): Standing[] {
  const ofKey = history.filter(({ input }) => input.key === key);
  return eventsOf(history, key).flatMap((event): Standing[] => {
    if (event.what !== 'grant') return [];
    const asked = ofKey.filter((one) => isAsked(one) && nameOf(one) === event.request);
    const [first] = asked;
    if (!first) return [];
    const { holder, ttlSeconds, bound } = first.input;
    const answered = asked.filter(({ outcome, body }) => outcome === 'ok' && body?.leaseId !== undefined);
    // A late duplicate of a request may have a second grant, which the release of the first one does not end.
    const { leaseId } = event;
    const beats = ofKey.filter(({ call, input }) => call === 'heartbeat' && input.leaseId === leaseId);
    const lastMs = Math.max(
      event.ms,
      ...[...asked, ...beats].map(({ calledAt, answeredAt }) => (answeredAt ?? calledAt).ms),
    );
    const expiresMs = bound ? Number.POSITIVE_INFINITY : lastMs + Number(ttlSeconds) * 1000 + CLOCK_SKEW_MS + spreadMs;
    const released = ofKey.find(
      ({ call, input, outcome }) => call === 'release' && input.leaseId === leaseId && outcome === 'ok',
    );
    const answeredMs = Math.max(event.ms, ...answered.map(({ answeredAt }) => answeredAt?.ms ?? 0));
    const end = ofKey.find(
      ({ call, input, calledAt }) => call === 'executionEnds' && input.holder === holder && calledAt.ms >= answeredMs,
    );
    const toMs = Math.min(
      expiresMs,
      released?.answeredAt?.ms ?? Number.POSITIVE_INFINITY,
      end?.calledAt.ms ?? Number.POSITIVE_INFINITY,
    );
    return [{ holder, isAnswered: answered.length > 0, fromMs: event.ms, toMs }];
  });
}

const isAsked = ({ call }: Entry): boolean => call === 'acquire' || call === 'task';

/** A call in line that no fault struck claims its grant, even if Step Functions answers late. */
export function claimedInTime(
  history: readonly Entry[],
  key: string,
  { spreadMs }: Pick<WorldFacts, 'spreadMs'>,
): Violation[] {
  const events = eventsOf(history, key);
  const rows = new Map(events.flatMap((event) => (event.what === 'row' ? [[event.ticket, event.entry] as const] : [])));
  return events.flatMap((event) => {
    const { what, ms } = event;
    if (what !== 'grant' || event.ticket === undefined) return [];
    const waiter = rows.get(event.ticket);
    if (!waiter || waiter.input.taskToken || !waiter.faults.every((fault) => fault === QUESTION_LATE)) return [];
    const leavesMs = waiter.answeredAt?.ms ?? 0;
    if (waiter.outcome !== 'LeaseHeld' || leavesMs < ms + POLLS_MS + spreadMs) return [];
    const detail = `${waiter.actor} was granted the lock at ${ms.toFixed(0)} ms, and was refused at ${leavesMs.toFixed(0)} ms`;
    return [{ promise: CLAIMED, detail, entries: [waiter, event.entry] }];
  });
}

export const boundIsRefused = (ofKey: readonly Entry[]): Violation[] =>
  ofKey
    .filter(({ call, input, outcome, body }) => {
      const isPlain = call === 'acquire' && input.bound === true && !input.taskToken;
      return isPlain && (outcome === 'ok' || body?.leaseId !== undefined);
    })
    .map((entry) => ({ promise: BOUND_REFUSED, detail: `${entry.actor} has one`, entries: [entry] }));
