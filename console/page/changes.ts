import type { Cap, InFlight, ListedKey, NameRecord } from './service.ts';
import { isShared, usedText } from './texts.ts';

/** A change that this page has noticed between two refreshes. */
export interface Change {
  /** When it was noticed, in epoch milliseconds by the clock of this machine. */
  at: number;
  /** The list in which it was noticed. */
  list: 'keys' | 'once' | 'commits' | 'nameservice';
  /** The key, the path or the alias. */
  subject: string;
  what: string;
}

type Noted = Omit<Change, 'at' | 'list'>;

/** Compares a list with the refresh before. */
export type Compare<Row> = (before: ReadonlyMap<string, Row>, after: ReadonlyMap<string, Row>) => Noted[];

const someone = (holder: string | null) => holder ?? 'a client without a name';

/** The changes of keys. Heartbeats are not among them, because they change only the time. */
export const keyChanges: Compare<ListedKey> = (before, after) => {
  const noted: Noted[] = [];
  for (const [subject, now] of after) {
    const then = before.get(subject);
    const what = then ? keyChange(then, now) : firstSight(now);
    if (what) noted.push({ subject, what });
    const capped = capChange(then?.cap, now.cap);
    if (capped) noted.push({ subject, what: capped });
    if (Boolean(then?.waiting) !== Boolean(now.waiting))
      noted.push({ subject, what: now.waiting ? 'a line has formed' : 'its line is empty' });
  }
  for (const subject of before.keys()) if (!after.has(subject)) noted.push({ subject, what: 'its record is gone' });
  return noted;
};

/** How a cap has changed. Each command of an operator has a different time, by which caps are told apart. */
function capChange(then: Cap | undefined, now: Cap | undefined): string | undefined {
  if (then?.since === now?.since) return undefined;
  if (!now) return then?.limit === 0 ? 'it is no longer paused' : 'it is no longer capped';
  return `${now.by ?? 'an unknown operator'} ${now.limit === 0 ? 'paused it' : `capped it at ${now.limit}`}: ${now.reason}`;
}

function firstSight(now: ListedKey): string | undefined {
  if (isShared(now)) return inUse(now);
  return now.state === 'held' ? `${someone(now.holder)} took it` : undefined;
}

const inUse = (now: ListedKey): string => `${usedText(now)} in use`;

/** How a key has changed. With several permits, each heartbeat changes which one ends next, so only the use of such a key counts. */
function keyChange(then: ListedKey, now: ListedKey): string | undefined {
  if (!isShared(now) && !isShared(then)) return leaseChange(then, now);
  return now.used === then.used && now.holders === then.holders ? undefined : `${inUse(now)}, before ${usedText(then)}`;
}

function leaseChange(then: ListedKey, now: ListedKey): string | undefined {
  if (now.fence !== then.fence && now.state === 'held') {
    if (then.state === 'held')
      return `it went from ${someone(then.holder)} to ${someone(now.holder)}, fence ${now.fence}`;
    return `${someone(now.holder)} took it, fence ${now.fence}`;
  }
  if (now.ending && !then.ending) return `${someone(now.holder)} was asked to stop`;
  if (now.state === then.state) return undefined;
  if (now.state === 'expired') return `${someone(now.holder)} let it expire`;
  if (now.state === 'released') return `${someone(then.holder)} no longer holds it`;
  return now.state === 'held' ? `${someone(now.holder)} revived it` : 'it is free';
}

export const commitChanges: Compare<InFlight> = (before, after) => {
  const noted: Noted[] = [];
  for (const [subject, { commitId }] of after)
    if (!before.has(subject))
      noted.push({ subject, what: `the commit ${commitId ?? 'of another client'} is under way` });
  for (const [subject, { commitId }] of before)
    if (!after.has(subject))
      noted.push({ subject, what: `the commit ${commitId ?? 'of another client'} has landed, or has timed out` });
  return noted;
};

export const recordChanges: Compare<NameRecord> = (before, after) => {
  const noted: Noted[] = [];
  for (const [subject, now] of after) {
    const then = before.get(subject);
    if (!then) {
      noted.push({ subject, what: 'it is new' });
      continue;
    }
    const [headThen, headNow] = [headOf(then), headOf(now)];
    if (headNow !== headThen) noted.push({ subject, what: `its head went from t ${headThen} to t ${headNow}` });
    if (now.index.t !== then.index.t)
      noted.push({ subject, what: `its index went from t ${then.index.t} to t ${now.index.t}` });
    if (now.status.state !== then.status.state)
      noted.push({ subject, what: `its status went from ${then.status.state} to ${now.status.state}` });
    if (now.retracted !== then.retracted)
      noted.push({ subject, what: now.retracted ? 'it was retracted' : 'it is no longer retracted' });
  }
  for (const subject of before.keys()) if (!after.has(subject)) noted.push({ subject, what: 'it is gone' });
  return noted;
};

/** The `t` of the head. Undefined for a graph source, which has no head. */
export const headOf = (record: NameRecord): number | undefined => ('commit' in record ? record.commit.t : undefined);

/** How many commits the index is behind. */
export const lagOf = (record: NameRecord): number => Math.max(0, (headOf(record) ?? record.index.t) - record.index.t);

/** How many changes are kept at most. */
const MAX_CHANGES = 500;

interface Refresh<Row> {
  list: Change['list'];
  rows: ReadonlyMap<string, Row>;
  compare: Compare<Row>;
}

/** The changes in all lists of the page, the latest on top. */
export class History {
  #changes: readonly Change[] = [];
  readonly #before = new Map<Change['list'], ReadonlyMap<string, unknown>>();

  /** Notes how a list has changed. @param rows the whole list by id, because rows that are missing count as gone */
  saw<Row>({ list, rows, compare }: Refresh<Row>, at: number): void {
    const before = this.#before.get(list) as ReadonlyMap<string, Row> | undefined;
    this.#before.set(list, rows);
    if (before) this.#add(compare(before, rows).map((noted) => ({ ...noted, list, at })));
  }

  /** Notes what the reader did on this page. */
  did(list: Change['list'], noted: Noted, at: number): void {
    this.#add([{ ...noted, list, at }]);
  }

  get changes(): readonly Change[] {
    return this.#changes;
  }

  #add(changes: Change[]): void {
    if (changes.length > 0) this.#changes = [...changes.reverse(), ...this.#changes].slice(0, MAX_CHANGES);
  }
}
