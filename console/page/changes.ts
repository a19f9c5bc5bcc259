import type { Cap, InFlight, ListedKey, NameRecord } from './service.ts';
import { isShared, usedText } from './words.ts';

/** Something that this page saw change between two looks. */
export interface Change {
  /** Epoch milliseconds on the clock of this machine, when it was seen. */
  at: number;
  /** Which list of the page it is about. */
  of: 'leases' | 'once' | 'commits' | 'names';
  /** The lease's key, the path or the alias. */
  subject: string;
  what: string;
}

type Said = Omit<Change, 'at' | 'of'>;

/** How one list differs from the look before. `before` is undefined at the first look: then nothing was seen to change. */
export type Compare<Row> = (before: ReadonlyMap<string, Row>, after: ReadonlyMap<string, Row>) => Said[];

const someone = (holder: string | null) => holder ?? 'a client without a name';

/** Heartbeats are not told: they change nothing but the time. */
export const keyChanges: Compare<ListedKey> = (before, after) => {
  const said: Said[] = [];
  for (const [subject, now] of after) {
    const then = before.get(subject);
    const what = then ? keyChange(then, now) : firstSight(now);
    if (what) said.push({ subject, what });
    const capped = capChange(then?.cap, now.cap);
    if (capped) said.push({ subject, what: capped });
    if (Boolean(then?.waiting) !== Boolean(now.waiting))
      said.push({ subject, what: now.waiting ? 'a line has formed' : 'its line is empty' });
  }
  for (const subject of before.keys()) if (!after.has(subject)) said.push({ subject, what: 'its record is gone' });
  return said;
};

/** Each command of an operator has an instant of its own. */
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

/** Which of several permits ends first changes with each heartbeat, so such a key changes by what is in use. */
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
  const said: Said[] = [];
  for (const [subject, { commitId }] of after)
    if (!before.has(subject))
      said.push({ subject, what: `the commit ${commitId ?? 'of another client'} is under way` });
  for (const [subject, { commitId }] of before)
    if (!after.has(subject))
      said.push({ subject, what: `the commit ${commitId ?? 'of another client'} has landed, or has timed out` });
  return said;
};

export const nameChanges: Compare<NameRecord> = (before, after) => {
  const said: Said[] = [];
  for (const [subject, now] of after) {
    const then = before.get(subject);
    if (!then) {
      said.push({ subject, what: 'it is new' });
      continue;
    }
    const [headThen, headNow] = [headOf(then), headOf(now)];
    if (headNow !== headThen) said.push({ subject, what: `its head went from t ${headThen} to t ${headNow}` });
    if (now.index.t !== then.index.t)
      said.push({ subject, what: `its index went from t ${then.index.t} to t ${now.index.t}` });
    if (now.status.state !== then.status.state)
      said.push({ subject, what: `its status went from ${then.status.state} to ${now.status.state}` });
    if (now.retracted !== then.retracted)
      said.push({ subject, what: now.retracted ? 'it was retired' : 'it is no longer retired' });
  }
  for (const subject of before.keys()) if (!after.has(subject)) said.push({ subject, what: 'it is gone' });
  return said;
};

/** The `t` of the head, or undefined for what has none: a graph source. */
export const headOf = (record: NameRecord): number | undefined => ('commit' in record ? record.commit.t : undefined);

/** How many of the commits the index does not have. */
export const lagOf = (record: NameRecord): number => Math.max(0, (headOf(record) ?? record.index.t) - record.index.t);

const MOST = 500;

interface Look<Row> {
  of: Change['of'];
  rows: ReadonlyMap<string, Row>;
  compare: Compare<Row>;
}

/** What was seen, the latest first, over all lists of the page. */
export class History {
  #changes: readonly Change[] = [];
  readonly #before = new Map<Change['of'], ReadonlyMap<string, unknown>>();

  /** @param rows the whole list, by key; a part of one would make the rest seem gone */
  saw<Row>({ of, rows, compare }: Look<Row>, at: number): void {
    const before = this.#before.get(of) as ReadonlyMap<string, Row> | undefined;
    this.#before.set(of, rows);
    if (before) this.#add(compare(before, rows).map((said) => ({ ...said, of, at })));
  }

  /** What this page did itself. */
  did(of: Change['of'], said: Said, at: number): void {
    this.#add([{ ...said, of, at }]);
  }

  get changes(): readonly Change[] {
    return this.#changes;
  }

  #add(changes: Change[]): void {
    if (changes.length > 0) this.#changes = [...changes.reverse(), ...this.#changes].slice(0, MOST);
  }
}
