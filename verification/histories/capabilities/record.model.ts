import { EXCLUSIVE_PATH } from '../../../shared/locks/record/identity.ts';
import { type HolderEntry, isBound } from '../../../shared/locks/record/record.ts';
import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { type LockState, NO_LOCK } from '../landed.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { beliefs } from './beliefs.ts';
import { capKept, termsUnder } from './caps.model.ts';
import { eventsOf, nameOf } from './line.model.ts';
import { mayForget, ONE_PERMIT, type Terms, termsOf } from './permits.model.ts';
import { replacedRightly } from './replaced.model.ts';

// The rules of the record of a key, checked after each write.

/** One write on a record. */
interface Write {
  before: LockState;
  after: LockState;
  entry: Entry;
  moment: number;
  ms: number;
}

export function writesOn(history: readonly Entry[], key: string): Write[] {
  let before = NO_LOCK;
  return eventsOf(history, key).flatMap((event) => {
    if (event.what !== 'lock') return [];
    const { state: after, entry, moment, ms } = event;
    const write = { before, after, entry, moment, ms };
    before = after;
    return [write];
  });
}

const has = ({ entries }: LockState, { id }: HolderEntry) => entries.some((one) => one.id === id);
const granted = ({ before, after }: Write): HolderEntry[] =>
  after.entries.filter((one) => !has(before, one)).sort((a, b) => a.fence - b.fence);
const removed = ({ before, after }: Write): HolderEntry[] => before.entries.filter((one) => !has(after, one));
export const weightOf = (entries: readonly HolderEntry[]) => entries.reduce((sum, { weight }) => sum + weight, 0);

/** Whether a write has noted that the permit ended for good. */
const isRemembered = ({ before, after }: Write, { name, fence }: HolderEntry): boolean => {
  const isThere = ({ ring }: LockState) => ring.some((slot) => slot.name === name);
  return isThere(after) && !after.entries.some((one) => one.name === name && one.fence === fence) && before !== after;
};

/** Whether a write has remembered a request that had no grant. */
const isReplaced = (write: Write): boolean =>
  write.after.latest !== write.before.latest &&
  write.after.ring.some(
    ({ name }) =>
      name !== undefined && name === write.before.latest && !write.before.ring.some((one) => one.name === name),
  );

/** What each request asked for, by its name in the record. */
function termsByName(history: readonly Entry[], key: string): Map<string, Terms> {
  const asked = history.filter(({ call, input }) => call === 'acquire' && input.key === key);
  return new Map(asked.map((entry) => [nameOf(entry), termsOf(entry)]));
}

/** Longer than any call lasts, even in a function that stands still for a time. */
const MAX_CALL_MS = 160_000;

/**
 * The record counts its weights and shows its holders to third-party clients, each new fence is the highest, and no holder is granted a permit beside more
 * asked for.
 */
export function recordKept(history: readonly Entry[], key: string, facts: WorldFacts): Violation[] {
  const terms = termsByName(history, key);
  let highest = 0;
  for (const write of writesOn(history, key)) {
    const { after, entry } = write;
    const broken = (promise: string, detail: string): Violation[] => [{ promise, detail, entries: [entry] }];
    if (after.used !== weightOf(after.entries))
      return broken(
        'the record counts the weight of all who are in it',
        `${after.used}, and ${weightOf(after.entries)} are`,
      );
    // Two clocks may have made the expiry of a shared holder and that of the record.
    // A write that was sent before the last heartbeat of a bound grant shows the grant's expiry as of then, more than a year ahead.
    const ends = after.entries.map((one) => {
      if (isBound(one)) return one.expiresAt - MAX_CALL_MS - (facts.withinBound ? 0 : facts.spreadMs);
      return one.expiresAt - (one.path === EXCLUSIVE_PATH ? 0 : facts.spreadMs);
    });
    const lastMs = Math.max(0, ...ends);
    if (after.entries.length > 0 && !(Number(after.heldForOthersUntil) >= lastMs))
      return broken(
        'third-party clients take a held key for held',
        `until ${after.heldForOthersUntil}, and it is until ${lastMs}`,
      );
    for (const { name, path, fence, holder, acquiredAt } of granted(write)) {
      if (path === EXCLUSIVE_PATH && fence < acquiredAt)
        return broken('the fence of an exclusive grant is not behind the clock', `${fence} at ${acquiredAt}`);
      if (fence <= highest && !mayForget(facts))
        return broken('fences rise with each grant', `${fence} after ${highest}`);
      const { limit = 0 } = terms.get(name) ?? {};
      const used = weightOf(after.entries.filter((one) => one.fence <= fence));
      if (used > limit)
        return broken(
          'no caller is granted a permit past its limit',
          `${holder} comes in up to ${limit}, to make ${used}`,
        );
    }
    highest = Math.max(highest, ...after.entries.map(({ fence }) => fence));
  }
  return [];
}

/** How many requests the record remembers after their grants have ended. */
const REMEMBERED = 8;

/** While the record remembers that the permit of a request has ended, the request is not granted another one, even after a lost reply or by a late retry. */
export function neverTooManyPermits(history: readonly Entry[], key: string): Violation[] {
  let ended: { name: string; entry: Entry; isLast: boolean }[] = [];
  for (const write of writesOn(history, key)) {
    if (write.before === NO_LOCK || write.before.isForeign) ended = []; // the record was deleted or replaced
    for (const one of granted(write)) {
      const last = ended.slice(-REMEMBERED).find(({ name }) => name === one.name);
      if (last)
        return [
          {
            promise: ONE_PERMIT,
            detail: `${one.holder} gave its permit back, and was granted another`,
            entries: [last.entry, write.entry],
          },
        ];
    }
    const isGranted = granted(write).length > 0;
    // The entry of the last exclusive holder remembers its request, until the next grant replaces the entry.
    if (isGranted) ended = ended.filter(({ isLast }) => !isLast);
    for (const one of removed(write))
      if (isRemembered(write, one))
        ended.push({ name: one.name, entry: write.entry, isLast: one.path === EXCLUSIVE_PATH && !isGranted });
    // A superseded request takes a slot of the ring too.
    if (isReplaced(write)) ended.push({ name: '', entry: write.entry, isLast: false });
  }
  return [];
}

/** A permit does not end while its holder rightly counts on it. It is shortened only by its claim, or to its grace. */
export function timeIsKept(
  history: readonly Entry[],
  { key, grants }: { key: string; grants: readonly Entry[] },
  { withinBound }: WorldFacts,
): Violation[] {
  const believed = withinBound ? beliefs(grants) : [];
  for (const write of writesOn(history, key)) {
    for (const { id, expiresAt, claimTtlMs, holder, endedExecution } of write.after.entries) {
      const was = write.before.entries.find((one) => one.id === id);
      if (!was || was.expiresAt <= expiresAt || (was.claimTtlMs !== undefined && claimTtlMs === undefined)) continue;
      // The execution has ended, or a heartbeat in the grace counts by another clock than that end.
      const isByOtherClock = !withinBound || was.expiresAt - expiresAt <= CLOCK_SKEW_MS;
      if (endedExecution !== undefined && (was.endedExecution === undefined || isByOtherClock)) continue;
      const detail = `that of ${holder}, by ${was.expiresAt - expiresAt} ms`;
      return [{ promise: 'no permit is shortened', detail, entries: [write.entry] }];
    }
    for (const one of removed(write)) {
      // A belief that began after the write rests on a later write of the grant, by a late first try.
      const answered = believed.find(
        ({ lease, to, entry }) => lease.includes(one.id) && to > write.ms && entry.calledAt.moment < write.moment,
      );
      if (!answered) continue;
      const detail = `${write.entry.actor} ended that of ${one.holder}, who holds until ${answered.to.toFixed(0)} ms`;
      return [{ promise: 'no holder loses a permit before its time', detail, entries: [answered.entry, write.entry] }];
    }
  }
  return [];
}

/** The rules of every record. @param grants the calls on the key, with tasks as calls (`asGrants`) */
export const recordRules = (
  history: readonly Entry[],
  { key, grants }: { key: string; grants: readonly Entry[] },
  facts: WorldFacts,
): Violation[] => [
  ...recordKept(history, key, facts),
  ...neverTooManyPermits(history, key),
  ...timeIsKept(history, { key, grants }, facts),
  ...roomIsHad(history, key, facts),
  ...withdrawalAnswered(history, key),
  ...capKept(history, key, facts),
  ...replacedRightly(history, key),
];

/** The record as it was at a moment. */
export const stateAt = (writes: readonly Write[], moment: number): LockState =>
  writes.findLast((write) => write.moment < moment)?.after ?? NO_LOCK;

/** A plain caller is refused only because of too much weight or a line. Permits do not count that have expired by every clock. */
export function roomIsHad(history: readonly Entry[], key: string, { spreadMs }: WorldFacts): Violation[] {
  const writes = writesOn(history, key);
  if (writes.length === 0) return [];
  return history.flatMap((entry) => {
    const { call, input, outcome, calledAt, answeredAt } = entry;
    const isPlain = call === 'acquire' && input.key === key && !input.waitSeconds && !input.taskToken;
    if (!isPlain || outcome !== 'LeaseHeld' || !answeredAt) return [];
    if (writes.some(({ moment }) => moment > calledAt.moment && moment < answeredAt.moment)) return [];
    const { entries, isMarked, isForeign, cap } = stateAt(writes, calledAt.moment);
    const { weight, limit } = termsUnder({ cap }, entry, { ms: calledAt.ms, spreadMs });
    const standing = entries.filter(({ expiresAt }) => expiresAt - BEGIN + CLOCK_SKEW_MS + spreadMs >= calledAt.ms);
    // The caller's own permit must have expired by every clock.
    const isOwn = standing.some(({ name }) => name === nameOf(entry));
    if (isMarked || isForeign || isOwn || weightOf(standing) + weight > limit) return [];
    const detail = `${entry.actor} was refused, and ${weightOf(standing)} of ${limit} were in use`;
    return [{ promise: 'an expired permit is had by the first caller', detail, entries: [entry] }];
  });
}

/** How often the next waiter polls for room, its own requests included. */
const NOTICED_MS = 1500;

/** A call that was next beside free room is not refused at the end of its wait, unless a fault struck it. */
export function roomIsNoticed(
  history: readonly Entry[],
  key: string,
  { spreadMs }: Pick<WorldFacts, 'spreadMs'>,
): Violation[] {
  const events = eventsOf(history, key);
  return history.flatMap((entry) => {
    const { call, input, outcome, answeredAt, calledAt, faults, body } = entry;
    const isInLine =
      call === 'acquire' && input.key === key && Number(input.waitSeconds ?? 0) > 0 && input.fair !== false;
    if (!isInLine || outcome !== 'LeaseHeld' || !answeredAt || faults.length > 0) return [];
    const fromMs = answeredAt.ms - NOTICED_MS;
    if (calledAt.ms > fromMs - NOTICED_MS) return [];
    const { ticket } = (body?.retryWith ?? {}) as { ticket?: string };
    if (ticket === undefined) return [];
    const rows = new Set<string>();
    const places = new Set<string>();
    let state: LockState = NO_LOCK;
    const hasRoom = () => {
      const { weight, limit } = termsUnder(state, entry, { ms: answeredAt.ms, spreadMs });
      return state.used + weight <= limit;
    };
    const isFree = () =>
      rows.has(ticket) &&
      !state.isForeign &&
      hasRoom() &&
      [undefined, ticket].includes(state.first) &&
      [...rows, ...places].every((one) => one >= ticket) &&
      !state.entries.some(({ name }) => name === nameOf(entry));
    let wasFree = true;
    let isBefore = true;
    for (const event of events) {
      if (event.moment > answeredAt.moment) break;
      if (isBefore && event.ms > fromMs) {
        isBefore = false;
        wasFree = isFree();
      }
      if (event.what === 'row') rows.add(event.ticket);
      if (event.what === 'deletion' || event.what === 'flag') rows.delete(event.ticket);
      // A free key is left to callers that sleep for a while.
      if (event.what === 'place') places.add(event.ticket);
      if (event.what === 'placeDeletion' || event.what === 'placeFlag') places.delete(event.ticket);
      if (event.what === 'lock') state = event.state;
      if (!isBefore) wasFree &&= isFree();
    }
    if (!(isBefore ? isFree() : wasFree)) return [];
    const detail = `${entry.actor} was refused with ${state.used} in use`;
    return [{ promise: 'no caller waits beside free room', detail, entries: [entry] }];
  });
}

const WITHDRAWAL_ANSWERED = 'a withdrawal that ended a permit does not say that it found none';

export function withdrawalAnswered(history: readonly Entry[], key: string): Violation[] {
  return writesOn(history, key).flatMap((write) => {
    const { entry } = write;
    const { call, outcome, body } = entry;
    const saysNone = call === 'withdraw' && outcome === 'ok' && body?.cancelled === false;
    if (!saysNone || !removed(write).some(({ name }) => name === nameOf(entry))) return [];
    const detail = `${entry.actor} ended its permit, and was answered that there was none`;
    return [{ promise: WITHDRAWAL_ANSWERED, detail, entries: [entry] }];
  });
}

/** After the end of a history, every line is empty. */
export function ticketsGone(history: readonly Entry[], key: string): Violation[] {
  const rows = new Map<string, Entry>();
  for (const event of eventsOf(history, key)) {
    if (event.what === 'row') rows.set(event.ticket, event.entry);
    if (event.what === 'deletion') rows.delete(event.ticket);
  }
  const left = [...rows.values()];
  if (left.length === 0) return [];
  return [{ promise: 'no ticket remains', detail: `that of ${left[0]?.actor}`, entries: left }];
}
