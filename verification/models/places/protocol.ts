import type { Move } from '../engine/states.ts';

/**
 * `who`: the parties, by a letter each. H has the key first. S sleeps and joins far from the front, A sleeps and joins near it. D is a second call of the
 * first sleeper, O cancels that sleeper, and M moves it to the front. N does not wait, C waits and does not sleep, and T is a task. `faults`: deaths, and
 * deletions without effect. `wipes`: a third-party client or TTL removes the record. `whole`: nothing happens between the rows and the places of a query.
 */
export type Mix = { who: string; faults?: number; wipes?: number; whole?: boolean };

/**
 * `by`: the request that has the key, or -1. `c`: the grant is not claimed, and lasts only for the window. `x`: the grant has not expired. `patient`: the
 * key has been free for so long that any caller may take it. `ended`: the requests whose grants have ended. `moved`: who was moved to the front, or -1.
 */
type Rec = Record<'mark' | 'arrivals' | 'fence' | 'by' | 'v' | 'moved', number> & {
  c: boolean;
  x: boolean;
  patient: boolean;
  ended: number[];
};
/** `age`: 2 in time, 1 ten seconds late, 0 past `keep_until` by a fast clock, -1 by every clock. `number`: the arrivals after its mark. `off`: withdrawn. */
type Place = { age: number; off: boolean; number: number };
/**
 * A hand-off. `seen`: the record before its query. `end`: whether it ends the request's own grant. `then`: the step after it. `serves`: whom, or -1. `more`: whether
 * others are in line. `first`: who was moved to the front, if awake or not yet late.
 */
type HandOff = { seen: Rec; end: boolean; then: string; serves: number; more: boolean; first: number };
/** A call, and its next step (`pc`). `row`: it has put its row, or flagged one. `fresh`: it has seen the mark since the record was last removed. */
type Party = {
  k: string;
  r: number;
  pc: string;
  row?: boolean | undefined;
  fresh?: boolean | undefined;
  h?: HandOff | undefined;
};
/** `rows`: `in` line, `off` if withdrawn, or empty. `order`: the requests by their tickets. */
export type State = Record<'faults' | 'wipes' | 'ids', number> & {
  rec: Rec;
  rows: string[];
  places: (Place | null)[];
  order: number[];
} & {
  ps: Party[];
  cancelled: boolean;
};
type Does = (what: string, ...changes: ((s: State) => void)[]) => void;
type Step = (s: State, j: number, p: Party & { h: HandOff }) => void;

/** The sleeper that may be cancelled, and may call twice. */
const FIRST = 1;
export const game = { off: new Set<string>(), whole: false };
const has = (rule: string): boolean => !game.off.has(rule);

export function beginning({ who, faults = 0, wipes = 0 }: Mix): State {
  const ps = [...who].map((k, r) => ({ k, r: 'DOM'.includes(k) ? FIRST : r, pc: k === 'H' ? 'held' : 'try' }));
  const rec = {
    mark: 0,
    arrivals: 0,
    fence: 100,
    by: 0,
    v: 101,
    moved: -1,
    c: false,
    x: true,
    patient: false,
    ended: [],
  };
  return {
    faults,
    wipes,
    ids: 102,
    rec,
    rows: ps.map(() => ''),
    places: ps.map(() => null),
    order: [],
    ps,
    cancelled: false,
  };
}

const isFree = ({ by, x }: Rec): boolean => by < 0 || !x;
const isOwn = ({ by, c, x }: Rec, r: number): boolean => by === r && (c || x);
const isLive = ({ places }: State, r: number, seen: Rec): boolean => {
  const { age = -1, off = true } = places[r] ?? {};
  return !off && age >= (has('margin') ? 0 : 1) && !isOwn(seen, r) && !seen.ended.includes(r);
};

function go(s: State, j: number, pc: string, change: Partial<Party> = {}): void {
  const { k, r, row, fresh, h } = { ...(s.ps[j] as Party), ...change };
  s.ps[j] = ['out', 'dead', 'held'].includes(pc)
    ? { k, r, pc }
    : { k, r, pc, row: row || undefined, fresh: fresh || undefined, h };
}
const take = (s: State, by: number, change: Partial<Rec> = {}): void => {
  s.rec = {
    ...s.rec,
    by,
    v: s.ids++,
    fence: by < 0 ? s.rec.fence : s.ids++,
    c: false,
    x: true,
    patient: false,
    ...change,
  };
};
/** A holder ends its grant, and its other calls stop too. */
const ends = (s: State, r: number, next: number): void => {
  take(s, next, { ended: [...s.rec.ended, r] });
  s.ps = s.ps.map((p) => (p.r === r && p.pc === 'held' ? { ...p, pc: 'out' } : p));
};
const unsee = (s: State, of: (r: number) => boolean): void => {
  s.ps = s.ps.map((p) => (p.fresh && of(p.r) ? { ...p, fresh: undefined } : p));
};
const handOff = (s: State, j: number, then: string, end = false): void =>
  go(s, j, 'rows', { h: { seen: { ...s.rec, arrivals: 0 }, end, then, serves: -1, more: false, first: -1 } });
/** Puts the row of the call, unless it is there already. */
function putRow(s: State, j: number, then: string): void {
  const { r } = s.ps[j] as Party;
  s.rows[r] ||= 'in';
  if (s.rows[r] === 'off') go(s, j, 'out');
  else go(s, j, then, { row: true });
}
function putPlace(s: State, r: number): void {
  s.places[r] = { age: 2, off: false, number: 0 };
}
function extend(s: State, j: number, then: string) {
  const { r } = s.ps[j] as Party;
  const place = s.places[r];
  if (place && !place.off && place.age >= 0 && then) {
    s.places[r] = { ...place, age: 2 };
    return go(s, j, then);
  }
  if (s.rows[r] === 'in') s.rows[r] = '';
  go(s, j, 'out');
}
/** The call sees the mark. A number above the arrivals does not say anything. */
function see(s: State, j: number, raises = false): void {
  const { r, pc } = s.ps[j] as Party;
  if (raises) s.rec = { ...s.rec, mark: s.ids++, arrivals: s.rec.arrivals + 1 };
  const place = s.places[r];
  const { arrivals } = s.rec;
  if (place) s.places[r] = { ...place, number: pc === 'mark' ? arrivals : Math.min(place.number, arrivals) };
  go(s, j, pc, { fresh: true });
}
const order = (s: State, r: number): void => {
  s.order = [...s.order.filter((one) => one !== r), r];
};

/** The steps of a call that are determined by the state. */
const STEPS: Record<string, Step> = {
  /** A hand-off reads the rows. */
  rows(s, j, { r: own, h }) {
    const { seen, end } = h;
    const waits = s.order.filter((r) => {
      const isOver = seen.ended.includes(r) || (end && r === own) || (seen.by === r && seen.c && !seen.x);
      if (isOver && s.rows[r] === 'in') s.rows[r] = '';
      return (s.rows[r] === 'in' || (!has('rows alone') && isLive(s, r, seen))) && (end || !isOwn(seen, r));
    });
    const first = waits.includes(seen.moved) ? seen.moved : -1;
    const next = has('moved first') && first >= 0 ? first : (waits[0] ?? -1);
    const serves = end || isFree(seen) ? next : -1;
    go(s, j, 'places', { h: { ...h, serves, more: waits.length > (serves < 0 ? 0 : 1), first } });
    if (game.whole) STEPS.places?.(s, j, s.ps[j] as never);
  },
  /** A hand-off reads the places. A plain acquire that meets only sleepers joins if their time is over, and otherwise tries again. */
  places(s, j, { r: own, h }) {
    const { seen, end, then } = h;
    const isAsleep = (r: number) => !(end && r === own) && isLive(s, r, seen);
    const isDue =
      h.first < 0 && isAsleep(seen.moved) && (s.places[seen.moved]?.age ?? 0) > (has('moved: ten seconds') ? 1 : 0);
    const serves = isDue && has('moved first') ? -1 : h.serves;
    const live = s.order.filter((r) => r !== serves && isAsleep(r));
    const isPatient = seen.patient || !live.some((r) => (s.places[r]?.age ?? 0) > (has('ten seconds') ? 1 : 0));
    if (then === 'try' && serves < 0 && live.length > 0) return go(s, j, isPatient ? 'row' : 'try', { h: undefined });
    const more = h.more || h.serves !== serves;
    go(s, j, 'write', {
      h: {
        ...h,
        serves,
        first: isDue ? seen.moved : h.first,
        more: more || (live.length > 0 && has('mark with places')),
      },
    });
  },
  write(s, j, { r: own, h: { seen, end, then, serves, more, first } }) {
    const { rec } = s;
    const finish = () => go(s, j, then, { h: undefined });
    if (serves < 0 && more && !end) return finish();
    const won = rec.v === seen.v && (serves < 0 || rec.fence === seen.fence) && (more || rec.mark === seen.mark);
    const stands = end && rec.by === own;
    if (!won) return stands || isFree(rec) ? handOff(s, j, then, stands) : finish();
    const arrivals = more && (serves >= 0 || has('numbers stay')) ? rec.arrivals : 0;
    if (end) ends(s, own, serves);
    else if (serves >= 0 || (seen.by >= 0 && !seen.x)) take(s, serves);
    // A moved sleeper that is late stays moved, because it may come back.
    const isMoved = seen.moved >= 0 && seen.moved !== serves && (first >= 0 || isLive(s, seen.moved, seen)) && more;
    s.rec = {
      ...s.rec,
      mark: more ? rec.mark || s.ids++ : 0,
      arrivals,
      moved: seen.moved >= 0 && !isMoved ? -1 : s.rec.moved,
    };
    if (serves >= 0 && serves !== own && s.ps[serves]?.k === 'T') {
      s.rows[serves] = '';
      go(s, serves, 'held');
    } else if (serves >= 0) s.rec.c = serves !== own;
    unsee(s, (r) => r === serves);
    if (serves < 0 && more && s.rec.mark !== seen.mark && has('read again')) handOff(s, j, then);
    else finish();
  },
  held(s, j, { r }) {
    const { rec } = s;
    if (isOwn(rec, r) && rec.mark !== 0) return handOff(s, j, 'out', true);
    if (isOwn(rec, r)) ends(s, r, -1);
    go(s, j, 'out');
  },
  put(s, j, { r }) {
    putPlace(s, r);
    order(s, r);
    go(s, j, 'mark');
  },
  row(s, j, { r }) {
    order(s, r);
    putRow(s, j, 'mark');
  },
  mark(s, j, { k, r }) {
    if (s.rec.by === r || s.rec.ended.includes(r)) return go(s, j, k === 'N' ? 'after' : 'poll');
    see(s, j, true);
    const then = { N: 'after', T: 'parked' }[k] ?? 'poll';
    if (k === 'N' || (k === 'T' && isFree(s.rec))) handOff(s, j, then);
    else go(s, j, then);
  },
  after(s, j, { r }) {
    if (isOwn(s.rec, r)) return go(s, j, 'claim');
    s.rows[r] = '';
    go(s, j, 'try', { row: false, fresh: false });
  },
  near: (s, j) => (has('row first') ? putRow(s, j, 'extend') : extend(s, j, 'late row')),
  'late row': (s, j) => putRow(s, j, 'poll'),
  'sleep: put'(s, j, { r }) {
    const place = s.places[r];
    if (place?.off) s.rows[r] = '';
    if (place?.off) return go(s, j, 'out');
    s.places[r] = { off: false, number: 0, ...place, age: 2 }; // the row keeps the position, even if the place has expired
    go(s, j, has('place first') ? 'sleep: delete' : 'last read');
  },
  'sleep: delete'(s, j, { r }) {
    if (s.rows[r] === 'off') s.places[r] = null;
    if (s.rows[r] === 'off') return go(s, j, 'out');
    s.rows[r] = '';
    go(s, j, has('place first') ? 'last read' : 'sleep: put', { row: false });
  },
  'last read': (s, j, { r }) => go(s, j, isOwn(s.rec, r) ? 'claim' : isFree(s.rec) ? 'poll' : 'asleep'),
  claim(s, j, { k, r }) {
    if (!isOwn(s.rec, r)) return go(s, j, k === 'N' ? 'after' : 'poll');
    s.rec = { ...s.rec, c: false, x: true, v: s.ids++ };
    go(s, j, 'delete row');
  },
  'delete row'(s, j, { r }) {
    if (s.rows[r] === 'off') return STEPS.held?.(s, j, s.ps[j] as never);
    s.rows[r] = '';
    go(s, j, 'delete place');
  },
  'delete place'(s, j, { r }) {
    if (s.places[r]?.off && has('on condition')) return STEPS.held?.(s, j, s.ps[j] as never);
    s.places[r] = null;
    go(s, j, isOwn(s.rec, r) ? 'held' : 'out'); // another call of the request may have released it
  },
  move(s, j) {
    if (s.rec.mark === 0) return go(s, j, 'out');
    s.rec = { ...s.rec, moved: FIRST };
    handOff(s, j, 'out');
  },
  'flag place'(s, j, { row }) {
    const place = s.places[FIRST];
    if (place) s.places[FIRST] = { ...place, off: true };
    go(s, j, has('place, then row') ? 'flag row' : 'read', { row: row || !!place });
  },
  'flag row'(s, j, { row }) {
    const isIn = s.rows[FIRST] === 'in';
    if (isIn) s.rows[FIRST] = 'off';
    go(s, j, has('place, then row') ? 'read' : 'flag place', { row: row || isIn });
  },
  read(s, j, { row }) {
    s.cancelled = !!row && (s.rec.by !== FIRST || s.rec.c);
    if (s.cancelled && s.rec.mark !== 0) handOff(s, j, 'out');
    else go(s, j, 'out');
  },
};

const RESTS = ['asleep', 'dead', 'out', 'try'];

/** All that may happen next. */
export function moves(s0: State): Move<State>[] {
  const { rec, ps, places, rows, wipes, faults } = s0;
  const out: Move<State>[] = [];
  const act: Does = (what, ...changes) => {
    const state = { ...s0, rows: [...rows], places: [...places], ps: [...ps] };
    for (const change of changes) change(state);
    out.push({ what, state });
  };
  for (const [j, p] of ps.entries()) {
    const does: Does = (what, ...changes) => act(`${p.k}${j} ${what}`, ...changes);
    const step = STEPS[p.pc];
    if (step) does(p.pc, (s) => step(s, j, p as Party & { h: HandOff }));
    chooses(s0, j, does);
    if (faults === 0 || ['try', 'dead', 'out', 'parked'].includes(p.pc)) continue;
    for (const pc of p.pc === 'sleep: delete' ? ['dead', 'asleep'] : ['dead'])
      does(
        `is ${pc} at once`,
        (s) => go(s, j, pc, { row: false }),
        (s) => Object.assign(s, { faults: faults - 1 }),
      );
  }
  for (const [r, place] of places.entries()) {
    const atWork = ps.filter((p) => p.r === r && !RESTS.includes(p.pc));
    // A query or a call is shorter than a sleep.
    const ages =
      place && place.age >= 0 && (place.age === 0 || atWork.length === 0) && ps.every(({ pc }) => pc !== 'places');
    if (ages) act(`the place of ${r} ages`, (s) => s.places.splice(r, 1, { ...place, age: place.age - 1 }));
    const isLeft = rows[r] === 'in' && ps[r]?.k !== 'T' && !atWork.some(({ row }) => row);
    if (isLeft) act(`the row of ${r} is over`, (s) => s.rows.splice(r, 1, ''));
  }
  const isKept = rec.by < 0 || !rec.x || (!rec.c && ps.some(({ r, pc }) => r === rec.by && !RESTS.includes(pc)));
  if (!isKept) act('the grant expires', (s) => Object.assign(s, { rec: { ...rec, x: false } }));
  if (!isFree(rec)) return out;
  if (rec.mark !== 0 && !rec.patient)
    act('patience is over', (s) => Object.assign(s, { rec: { ...rec, patient: true } }));
  if (wipes > 0)
    act('the record is removed', (s) => {
      s.wipes--;
      take(s, -1, { mark: 0, arrivals: 0, fence: 0, ended: [], moved: -1 });
      unsee(s, () => true);
    });
  return out;
}

/** The steps of a call that depend on time and estimates. */
function chooses({ rec, places, rows, order: line, ps }: State, j: number, does: Does) {
  const { k, r, pc, row } = ps[j] as Party;
  const place = places[r];
  const goes = (what: string, then: string, change?: Partial<Party>) => does(what, (s) => go(s, j, then, change));
  if (pc === 'asleep') goes('returns', 'poll', { row: false });
  if (pc === 'extend' || pc === 'far') {
    does('extends', (s) => extend(s, j, pc === 'far' ? 'asleep' : 'poll'));
    if (place?.age === 0) does('is late', (s) => extend(s, j, ''));
  }
  if (pc === 'try') {
    if (k === 'O' && line.includes(FIRST)) goes('begins', has('place, then row') ? 'flag place' : 'flag row');
    else if (k === 'M' && (rows[FIRST] === 'in' || (place && !place.off))) goes('begins', 'move');
    else if (k === 'D' && place && place.number > 0) goes('begins', 'poll');
    else if ('DOM'.includes(k)) return;
    else if (isFree(rec) && rec.mark === 0)
      does(
        'tries',
        (s) => take(s, r),
        (s) => go(s, j, 'held'),
      );
    else if (k !== 'N') goes('joins', k === 'S' ? 'put' : 'row');
    else if (isFree(rec)) does('hands off', (s) => handOff(s, j, 'try'));
  }
  if (pc !== 'poll') return;
  if (isOwn(rec, r)) return goes('sees its grant', 'claim');
  const isOff = rows[r] === 'off' || place?.off;
  const isGone = row ? rows[r] === '' && !place : !place || place.age < 0 || isOff;
  if (isGone || isOff || rec.ended.includes(r))
    does(
      'sees the end',
      (s) => s.rows.splice(r, 1, ''),
      (s) => go(s, j, 'out'),
    );
  if (isGone || rec.ended.includes(r)) return;
  if (row && rows[r] === '') return goes('has lost its row', 'poll', { row: false });
  if (rec.mark === 0 && has('mark back')) return does('puts the mark back', (s) => see(s, j, true));
  const sees = (what: string, then: string) =>
    does(
      what,
      (s) => see(s, j),
      (s) => go(s, j, then),
    );
  if (isFree(rec) && row)
    does(
      'hands off',
      (s) => see(s, j),
      (s) => handOff(s, j, 'poll'),
    );
  else if (!row) sees('is near', 'near');
  if (row && k !== 'C') sees('goes to sleep', has('place first') ? 'sleep: put' : 'sleep: delete');
  if (!row) sees('is far', 'far');
}

/** @returns what is wrong in a state, or undefined */
export function broken(s: State): string | undefined {
  const { rec, ps, places, rows, cancelled } = s;
  for (const { pc, h } of ps)
    if (pc === 'write' && h && h.first >= 0 && h.serves >= 0 && h.serves !== h.first)
      return `moved: ${h.serves} passes it`;
  const holders = new Set(ps.filter(({ pc }) => pc === 'held').map(({ r }) => r));
  if (holders.size > 1) return `two holders: ${[...holders]}`;
  if (cancelled && holders.has(FIRST)) return 'cancelled: it holds the key';
  for (const { r, k, pc, row, fresh } of ps) {
    const isInLine = row && rows[r] === 'in' && !isOwn(rec, r) && !rec.ended.includes(r);
    const isBack = pc === 'poll' && ps.every((p) => p.r !== r || p.pc !== 'extend');
    if (cancelled && r === FIRST && isBack && isInLine) return 'cancelled: it waits in line';
    const waits = fresh && !places[r]?.off && rows[r] !== 'off' && (pc === 'asleep' || (pc === 'poll' && row));
    if (waits && (isInLine || isLive(s, r, rec))) {
      if (rec.mark === 0) return `mark: ${r} waits without one`;
      if (rec.arrivals < (places[r]?.number ?? 0)) return `numbers: ${r} arrived before they began`;
    }
    const isQuiet =
      k === 'T' &&
      rows[r] === 'in' &&
      rec.by < 0 &&
      rec.moved < 0 && // after a moved sleeper that did not come, the schedule serves the task
      ps.every((p) => p.pc === 'parked' || RESTS.includes(p.pc));
    if (isQuiet) return 'quiet: a task waits for a free key';
  }
  if (!winsAlone(s, 1)) return 'end: ten seconds after they were due, dead sleepers hold the key back';
  return winsAlone(s, -1) ? undefined : 'end: the key is stuck';
}

const known = new Map<string, boolean>();
export const forget = (): void => known.clear();

/** Whether a plain acquire receives the key when all other calls have stopped and the places have this age. */
function winsAlone(s: State, age: number): boolean {
  const j = s.places.length;
  const places = [...s.places.map((place) => place && { ...place, age: Math.min(age, place.age) }), null];
  const rec = { ...s.rec, x: false, patient: false };
  const ps = places.map((_, r) => ({ k: r === j ? 'N' : 'S', r, pc: r === j ? 'try' : 'dead' }));
  let alone: State = { ...s, faults: 0, wipes: 0, rec, places, rows: places.map(() => ''), ps, cancelled: false };
  const name = nameOf(alone);
  for (let steps = 0; !known.has(name) && steps < 20; steps++) {
    if (alone.ps[j]?.pc === 'held') known.set(name, true);
    const next = moves(alone).find(({ what }) => what.startsWith('N'));
    if (!next || !('state' in next)) break;
    alone = next.state;
  }
  return known.get(name) ?? !known.set(name, false);
}

/** The name of a state. States that differ only in their ids have the same name. */
export function nameOf({ ids: _, ...s }: State): string {
  const names = new Map<string, number>();
  return JSON.stringify(s).replace(/\d{3,}/g, (id) => {
    if (!names.has(id)) names.set(id, names.size + 100);
    return String(names.get(id));
  });
}
