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
  for (const [subject, current] of after) {
    const former = before.get(subject);
    const what = former ? keyChange(former, current) : firstSight(current);
    if (what) noted.push({ subject, what });
    const capped = capChange(former?.cap, current.cap);
    if (capped) noted.push({ subject, what: capped });
    if (Boolean(former?.waiting) !== Boolean(current.waiting))
      noted.push({ subject, what: current.waiting ? 'a line has formed' : 'its line is empty' });
  }
  for (const subject of before.keys()) if (!after.has(subject)) noted.push({ subject, what: 'its record is gone' });
  return noted;
};

/** How a cap has changed. Each command of an operator has a different time, by which caps are told apart. */
function capChange(former: Cap | undefined, current: Cap | undefined): string | undefined {
  if (former?.since === current?.since) return undefined;
  if (!current) return former?.limit === 0 ? 'it is no longer paused' : 'it is no longer capped';
  return `${current.by ?? 'an unknown operator'} ${current.limit === 0 ? 'paused it' : `capped it at ${current.limit}`}: ${current.reason}`;
}

function firstSight(current: ListedKey): string | undefined {
  if (isShared(current)) return inUse(current);
  return current.state === 'held' ? `${someone(current.holder)} took it` : undefined;
}

const inUse = (current: ListedKey): string => `${usedText(current)} in use`;

/** How a key has changed. With several permits, each heartbeat changes which one ends next, so only the use of such a key counts. */
function keyChange(former: ListedKey, current: ListedKey): string | undefined {
  if (!isShared(current) && !isShared(former)) return leaseChange(former, current);
  return current.used === former.used && current.holders === former.holders
    ? undefined
    : `${inUse(current)}, before ${usedText(former)}`;
}

function leaseChange(former: ListedKey, current: ListedKey): string | undefined {
  if (current.fence !== former.fence && current.state === 'held') {
    if (former.state === 'held')
      return `it went from ${someone(former.holder)} to ${someone(current.holder)}, fence ${current.fence}`;
    return `${someone(current.holder)} took it, fence ${current.fence}`;
  }
  if (current.ending && !former.ending) return `${someone(current.holder)} was asked to stop`;
  if (current.state === former.state) return undefined;
  if (current.state === 'expired') return `${someone(current.holder)} let it expire`;
  if (current.state === 'released') return `${someone(former.holder)} no longer holds it`;
  return current.state === 'held' ? `${someone(current.holder)} revived it` : 'it is free';
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
  for (const [subject, current] of after) {
    const former = before.get(subject);
    if (!former) {
      noted.push({ subject, what: 'it is new' });
      continue;
    }
    const [formerHead, currentHead] = [headOf(former), headOf(current)];
    if (currentHead !== formerHead)
      noted.push({ subject, what: `its head went from t ${formerHead} to t ${currentHead}` });
    if (current.index.t !== former.index.t)
      noted.push({ subject, what: `its index went from t ${former.index.t} to t ${current.index.t}` });
    if (current.status.state !== former.status.state)
      noted.push({ subject, what: `its status went from ${former.status.state} to ${current.status.state}` });
    if (current.retracted !== former.retracted)
      noted.push({ subject, what: current.retracted ? 'it was retracted' : 'it is no longer retracted' });
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
export class NoticedChanges {
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
