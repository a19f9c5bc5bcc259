// One record for each key, its line, and the callers, tasks and other clients that share the key.

/** The weight of an exclusive holder. */
export const ALL = 900;
/** An expiry that no step reaches: that of a bound grant, and the TTL of shared holders. */
export const FAR = 9;
/** The most grants of one write. */
export const BATCH = 2;

/** A grant, with the letters of the record: `h` and `h<name>` in docs/protocols/locks.md. */
export interface Entry {
  /** The request. Empty once the record must not remember it. */
  n: string;
  /** The lease id. 0 once the grant has ended. */
  i: number;
  /** The version. */
  v: number;
  w: number;
  /** The expiry: 1 has not passed, 0 has passed by the clock but not by the margin, and at -1 others may take the place. */
  x: number;
  f: number;
  /** The ticket of a grant from the line, otherwise 0. */
  k: number;
  /** Whether the grant is not claimed yet. */
  c: boolean;
  /** Whether an operator has marked it as ending. */
  s: boolean;
  /** Whether it was granted on a record without a fence. */
  nf: boolean;
  /** The version at which the schedule found the task of a bound grant gone. */
  j: number;
  /** Whether the fence is not above all before. Only the check reads this. */
  low: boolean;
}

/** `m`: the weight that may be in use; 0 is a pause. `at`: the number of its command. `x`: as of an entry. */
interface Cap {
  m: number;
  at: number;
  x: number;
}

export interface Rec {
  /** `lease_version` */
  lv: 'ours' | number | null;
  /** `lease_expiry`, as the expiry of an entry. */
  lx: number;
  used: number | null;
  fence: number | null;
  h: Entry | null;
  shared: Entry[];
  ring: string[];
  /** The superseded requests in the ring, and the newest request that joined with `replace`. */
  sup: string[];
  latest: { n: string; k: number } | null;
  mark: number | null;
  /** The cap of an operator, and the number of the last command, which stays after a lift. */
  cap?: Cap | undefined;
  capAt?: number;
  /** The ticket that an operator has moved, and the number of the command. */
  moved?: number | undefined;
  movedAt?: number;
  /** `freed_at`: how many steps of time ago a holder released, from 0 down to -3. */
  freed: number;
}

/** How a grant ends. The record remembers the request of the first two. */
type How = 'released' | 'broken' | 'expired' | 'neverNotified' | 'executionEnded';
export interface End {
  n: string;
  i: number;
  v: number;
  how: How;
}

/** A request that is under way. What it names depends on `t`. */
export interface Op {
  t: string;
  n: string;
  // biome-ignore lint/suspicious/noExplicitAny: as the attributes of an item
  [part: string]: any;
}

/** A grant on which its caller counts. */
interface Held {
  n: string;
  i: number;
  x: number;
  w: number;
  l: number;
  /** `q`: whether others were in line. `k`: the ticket by which the grant came. */
  q: boolean;
  k: number;
}

export interface Party {
  /** How many more requests the party makes, and the number of this one. */
  left: number;
  run: number;
  held: Held | null;
  op: Op | null;
  st: '' | 'waiting' | 'parked' | 'gone' | 'over';
  /** The hand-off of the party: the record before the line is read, what must end, and how the call goes on afterwards. */
  seen: Rec | null;
  end: End[];
  cont: '' | 'acquire' | 'release' | 'left' | 'wait' | 'outside';
  next: Op | null;
  tries: number;
  /** Whether it has seen the line empty. */
  empty: boolean;
  /** The token of its task, and the ticket of its row. */
  tok: number;
  ticket: number;
}

export interface Row {
  k: number;
  n: string;
  /** The party whose row it is. */
  by: number;
  tok: number;
  /** Whether its call has left or has exited. */
  over: boolean;
  cancelled: boolean;
}

export interface Spec {
  k: 'X' | 'S';
  w: number;
  /** The limit. */
  l: number;
  runs: number;
  wait: 'no' | 'task' | 'call';
  quick?: boolean;
  /** Whether it names an execution. The grant then has a ttl, or lasts as long as the execution. */
  execution?: 'ttl' | 'bound';
  /** Whether its grant goes on for a grace after the end of the execution. */
  grace?: boolean;
  /** Whether the request replaces older ones. */
  replace?: 'waiting' | 'running';
  /** The party whose request it sends again, as a duplicate call does. */
  as?: number;
}

/** How often each thing may happen. */
export const NEVER = {
  ...{ late: 0, twice: 0, lost: 0, exit: 0, beat: 0, breakWait: 0, break: 0, ttl: 0, gone: 0, mute: 0, schedule: 0 },
  ...{ leave: 0, crate: 0, extend: 0, again: 0, end: 0, redrive: 0, withdraw: 0, cancel: 0 },
};
export type Budget = typeof NEVER;

/**
 * An operator who caps and moves. `caps` and `moves`: how many commands were sent. `number`: that of the last command. `answeredCap`: the cap of the last
 * answer, or null while a command is under way. `moved`: the last row that was moved, until its grant.
 */
interface Operator {
  caps: number;
  moves: number;
  number: number;
  answeredCap: { m: number | null; number: number } | null;
  moved: { k: number; number: number } | null;
  /** The number of the last move that was answered. */
  last: number;
}

export interface State {
  rec: Rec | null;
  rows: Row[];
  ps: Party[];
  /** A step of the schedule, of an operator, of the end of an execution, or of a withdrawal. Only one is under way at a time. */
  outside: Party;
  late: Op[];
  crate: { lv: number; x: number } | null;
  top: number;
  /** Requests that released their grants, or lost them by a break. With a `?` if the record has forgotten them rightly. */
  ended: string[];
  /** The requests whose withdrawal has begun, and those whose withdrawal is done. */
  leaving: string[];
  withdrawn: string[];
  /** The requests that joined with `replace`, in the order of their joins. */
  joined: string[];
  /** The requests that were notified that they are superseded. */
  notified: string[];
  /** Whether the crate or TTL has deleted a record of the product. */
  wiped: boolean;
  /** Whether something went wrong, so that perhaps only the schedule can help. */
  odd: boolean;
  operator?: Operator;
  bud: Budget;
  clock: number;
  ids: number;
}

export interface Mix {
  start?: string;
  /** The requests of rows that were left in line. */
  rows?: string[];
  ps: Spec[];
  /** The parties that have asked before the history begins, in their order. */
  asked?: number[];
  bud?: Partial<Budget>;
  /** The caps of an operator, one command after the other. Null lifts, and a cap with `until` ends by itself. */
  caps?: (number | null | { until: number })[];
  /** The parties whose rows an operator moves to the front. */
  moves?: number[];
  /** How many requests the ring has room for: eight in the product. */
  ring?: number;
}

/** The mix that is explored, and the rules that are off. */
export const game = { mix: { ps: [] } as Mix, off: new Set<string>(), ring: 2 };
export const without = (rule: string): boolean => game.off.has(rule);

export const BARE: Rec = {
  ...{ lv: null, lx: -1, used: null, fence: null, h: null, shared: [], ring: [], mark: null, freed: -3 },
  ...{ sup: [], latest: null },
};
export const IDLE: Party = {
  ...{ left: 0, run: -1, held: null, op: null, st: '', seen: null, end: [], cont: '', next: null },
  ...{ tries: 0, empty: false, tok: 0, ticket: 0 },
};

export const weightOf = (entries: readonly { w: number }[]): number => entries.reduce((sum, { w }) => sum + w, 0);
export const holders = (r: Rec): Entry[] => [...(r.h?.i ? [r.h] : []), ...r.shared];
export const entryOf = (r: Rec, n: string): Entry | undefined => holders(r).find((e) => e.n === n);
export const isThird = (r: Rec): boolean => r.used === null && r.lv !== null;
export const expiredIn = (r: Rec): Entry[] => holders(r).filter(({ x }) => x === -1);
/** Whether the ring or the entry of the last exclusive holder remembers the request. */
export const remembers = (r: Rec, n: string): boolean =>
  r.ring.includes(n) || (r.h?.n === n && (r.h.i === 0 || r.h.s) && !without('h remembers'));

export const specOf = (j: number): Spec => game.mix.ps[j] as Spec;
export const nameOf = (j: number, run: number): string => `${specOf(j).k}${specOf(j).as ?? j}${'abcd'[run]}`;
export const partyOf = (n: string): number => Number(n[1]);
export const roomOf = (j: number): number => (specOf(j).k === 'X' ? 0 : specOf(j).l - specOf(j).w);
/** The limit of a party. A cap of this or more changes nothing. */
export const limitOf = (j: number): number => (specOf(j).k === 'X' ? 1 : specOf(j).l);
export const weightOfParty = (j: number): number => (specOf(j).k === 'X' ? ALL : specOf(j).w);
export const ttlOf = (j: number): number => (specOf(j).execution === 'bound' ? FAR : 1);
/** Whether the request of a party fits, without the expired entries. */
export const fits = (r: Rec, j: number): boolean =>
  isThird(r) ? r.lx === -1 && roomIn(r, j) >= 0 : (r.used ?? 0) - weightOf(expiredIn(r)) <= roomIn(r, j);

/** The most weight in use beside which this party is granted. A request heavier than the cap is granted alone. @param isOver whether caps end by themselves */
export function roomIn({ cap }: Rec, j: number, isOver = true): number {
  const [room, w] = [roomOf(j), weightOfParty(j)];
  if (!cap || (isOver && cap.x === -1)) return room;
  if (cap.m === 0) return -1;
  if (without('cap: weight')) return Math.min(room, cap.m - 1);
  return w > cap.m && !(w < ALL && without('cap: alone')) ? 0 : Math.min(room, cap.m - w);
}

/** The rows in the order in which a hand-off serves them. */
export const inOrder = (rows: Row[], { moved }: Rec): Row[] =>
  moved === undefined || without('moved: first')
    ? rows
    : [...rows.filter(({ k }) => k === moved), ...rows.filter(({ k }) => k !== moved)];

export const now = (s: State): number => (s.clock += 4);
export const newId = (s: State): number => --s.ids;
export const get = (s: State, j: number): Party => (j < 0 ? s.outside : (s.ps[j] as Party));
export function set(s: State, j: number, change: Partial<Party>): void {
  if (j < 0) s.outside = { ...s.outside, ...change };
  else s.ps[j] = { ...(s.ps[j] as Party), ...change };
}
export const own = (s: State, j: number): string => nameOf(j, Math.max(0, get(s, j).run));
export const rowOf = (s: State, k: number): Row | undefined => s.rows.find((row) => row.k === k);
export const dropRow = (s: State, k: number): void => {
  s.rows = s.rows.filter((row) => row.k !== k);
};
export const copy = (s: State): State => ({ ...s, ps: [...s.ps] });
export const spend = (s: State, what: keyof Budget): void => {
  s.bud = { ...s.bud, [what]: s.bud[what] - 1 };
};
/** Ends the call of a party. */
export const endRun = (s: State, j: number): void =>
  set(s, j, { op: null, st: '', ticket: 0, tries: 0, empty: false, seen: null, end: [], cont: '', next: null });
/** Whether the holder of a request, or an operator, has ended its grant. */
export const hasEnded = ({ ended }: Pick<State, 'ended'>, n: string): boolean =>
  ended.includes(n) || ended.includes(`${n}?`);
