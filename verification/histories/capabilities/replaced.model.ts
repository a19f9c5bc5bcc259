import type { Entry, Violation } from '../history.ts';
import type { LockState } from '../landed.ts';
import { eventsOf, nameOf } from './line.model.ts';

// Requests that replace others (docs/protocols/replace.md).

export const SUPERSEDED_RIGHTLY = 'a request is superseded only if both replace, and the other joined later';
export const NO_OLDER = 'no request is granted the key after a newer one has replaced it';
export const HOLDER_ASKED = 'a holder that lets itself be replaced is asked to stop';

/** A call without a fault joins, notifies the request that it replaced, and asks the holder to stop within this time. */
const ASKED_AFTER_MS = 500;

/** A write after which another request is the newest. */
interface Join {
  /** The newest request before the write, and after it. */
  before: string | undefined;
  name: string;
  /** The record before the write. */
  seen: LockState | undefined;
  entry: Entry;
  moment: number;
  ms: number;
}

interface Records {
  joins: Join[];
  /** Each grant with the moment of its write. */
  grants: { name: string; id: string; entry: Entry; moment: number }[];
  /** The entries after each write. */
  states: { state: LockState; moment: number }[];
  /** When the record forgot who had replaced whom. */
  forgotten: number[];
}

interface OfKey {
  key: string;
  /** What each request said of `replace`. */
  modes: ReadonlyMap<string, unknown>;
  records: Records;
}

function recordsOf(history: readonly Entry[], key: string): Records {
  const records: Records = { joins: [], grants: [], states: [], forgotten: [] };
  let seen: LockState | undefined;
  for (const event of eventsOf(history, key)) {
    if (event.what !== 'lock') continue;
    const { state, entry, moment, ms } = event;
    const { latest: name } = state;
    // A third-party client and a clean-up replace the record, without the newest request and the ring.
    if (entry.foreign || entry.call === 'clean') records.forgotten.push(moment);
    if (name !== undefined && name !== seen?.latest)
      records.joins.push({ before: seen?.latest, name, seen, entry, moment, ms });
    for (const { name: holder, id } of state.entries)
      if (!seen?.entries.some((one) => one.id === id)) records.grants.push({ name: holder, id, entry, moment });
    records.states.push({ state, moment });
    seen = state;
  }
  return records;
}

/** The rules of requests with `replace`, on one key. */
export function replacedRightly(history: readonly Entry[], key: string): Violation[] {
  const asked = history.filter(({ call, input }) => (call === 'acquire' || call === 'task') && input.key === key);
  if (!history.some(({ input }) => input.key === key && input.replace !== undefined) && !asked.some(isSuperseded))
    return [];
  const records = recordsOf(history, key);
  // A call that does not say `replace` may repeat a request that does.
  const replacing = asked.filter(({ input }) => input.replace !== undefined);
  const modes = new Map(replacing.map((entry) => [nameOf(entry), entry.input.replace]));
  const known = { key, modes, records };
  return [...supersededRightly(asked, known), ...noOlder(records), ...holderAsked(history, known)];
}

const isSuperseded = ({ outcome }: Entry): boolean => outcome === 'Superseded';

/** A request fails with Superseded only if a newer one has replaced it, or if it holds the key and a newer one has asked it to stop. */
function supersededRightly(asked: readonly Entry[], { modes, records: { joins } }: OfKey): Violation[] {
  return asked.filter(isSuperseded).flatMap((entry) => {
    const [name, at] = [nameOf(entry), Number(entry.answeredAt?.moment)];
    const isRunning = (one: string) => modes.get(one) === 'running';
    const isReplacedBy = (join: Join) =>
      join.before === name || (isRunning(name) && isRunning(join.name) && isIn(join.seen, name));
    const by = asked.find(({ input, calledAt }) => input.holder === entry.body?.by && calledAt.moment < at);
    const isReplaced = joins.some((join) => join.moment < at && join.name !== name && isReplacedBy(join));
    if (modes.get(name) && isReplaced && by?.input.replace && nameOf(by) !== name) return [];
    const detail = `${entry.actor} receives Superseded by ${entry.body?.by}`;
    return [{ promise: SUPERSEDED_RIGHTLY, detail, entries: [entry, ...(by ? [by] : [])] }];
  });
}

const isIn = (state: LockState | undefined, name: string): boolean =>
  state?.entries.some((one) => one.name === name) === true;

/** A replaced request is not granted the key, unless it has joined again or the record has forgotten the replacement. */
function noOlder({ joins, grants, forgotten }: Records): Violation[] {
  return grants.flatMap(({ name, entry, moment }) => {
    const last = joins.findLast((join) => join.moment < moment && (join.name === name || join.before === name));
    const isReplaced = last?.before === name && !isIn(last.seen, name);
    if (!isReplaced || forgotten.some((at) => last.moment < at && at < moment)) return [];
    return [
      { promise: NO_OLDER, detail: `${entry.actor} grants it past ${last.entry.actor}`, entries: [last.entry, entry] },
    ];
  });
}

/** The next heartbeat of a holder fails if a newer request has asked it to stop, unless a fault struck the newer request's call. */
function holderAsked(history: readonly Entry[], { key, modes, records }: OfKey): Violation[] {
  return history.flatMap((beat) => {
    if (beat.call !== 'heartbeat' || beat.outcome !== 'ok' || beat.input.key !== key) return [];
    const id = /^e\.[\w-]{16}\.([\da-f-]{36}\+?)/.exec(String(beat.input.leaseId))?.[1];
    const standing = records.states.findLast(({ moment }) => moment < beat.calledAt.moment)?.state;
    const holder = standing?.entries.find((one) => one.id === id);
    if (!holder || modes.get(holder.name) !== 'running') return [];
    const join = records.joins.find(({ name, seen, entry, moment, ms }) => {
      const held = seen?.entries.find((one) => one.id === id);
      const isHeld = held !== undefined && held.claimTtlMs === undefined && held.name !== name;
      const isInTime = ms + ASKED_AFTER_MS < beat.calledAt.ms && moment < beat.calledAt.moment;
      const isUndisturbed = entry.faults.length === 0 && entry.call === 'acquire' && nameOf(entry) === name;
      return isHeld && isInTime && isUndisturbed && modes.get(name) === 'running';
    });
    if (!join) return [];
    const detail = `${beat.actor} extends the lease of ${holder.holder}, and ${join.entry.actor} has come`;
    return [{ promise: HOLDER_ASKED, detail, entries: [join.entry, beat] }];
  });
}
