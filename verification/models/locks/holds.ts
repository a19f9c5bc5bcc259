import { firstTry } from './calls.ts';
import { sends } from './moves.ts';
import { disobeyed } from './operator.ts';
import { repair, type Step } from './outside.ts';
import {
  ALL,
  BARE,
  copy,
  entryOf,
  FAR,
  game,
  hasEnded,
  holders,
  IDLE,
  inOrder,
  isThird,
  NEVER,
  nameOf,
  type Party,
  type Rec,
  roomIn,
  rowOf,
  type State,
  set,
  specOf,
  weightOf,
} from './state.ts';

/** @returns what is wrong in a state, or undefined */
export function broken(s: State): string | undefined {
  const newest = s.joined.at(-1);
  if (newest !== undefined && s.notified.includes(newest))
    return `superseded: ${newest} is the newest, and was replaced`;
  return together(s) ?? onRecord(s.rec) ?? disobeyed(s) ?? (s.wiped || s.odd ? undefined : inLine(s)) ?? inTheEnd(s);
}

/** Checks who counts on a grant beside whom. */
function together({ ps, crate }: State): string | undefined {
  const all = ps.flatMap(({ held, run }, j) => (held && held.x >= 0 ? [{ ...held, who: nameOf(j, run) }] : []));
  const counts = all.filter(({ i }, nth) => all.findIndex((one) => one.i === i) === nth);
  const names = counts.map(({ who }) => who).join(', ');
  if (crate && crate.x >= 0 && counts.length > 0) return `alone: the crate beside ${names}`;
  if (counts.length < 2) return undefined;
  if (counts.some(({ w }) => w === ALL)) return `alone: ${names}`;
  return weightOf(counts) > Math.max(...counts.map(({ l }) => l)) ? `limit: ${names}` : undefined;
}

function onRecord(r: Rec | null): string | undefined {
  if (!r) return undefined;
  const weight = weightOf(holders(r));
  if (r.used !== null && r.used !== weight) return `limit: used is ${r.used}, and the entries weigh ${weight}`;
  const isTwice = new Set(holders(r).map(({ n }) => n)).size < holders(r).length;
  return isTwice ? 'one grant: a request has two entries' : undefined;
}

/** Checks that the calls serve the line by themselves if nothing has gone wrong. */
function inLine({ rec, rows: all, ps, outside, late, ended }: State): string | undefined {
  const r = rec ?? BARE;
  // If another call has ended the grant of the request, its task may wait for the schedule, which sends LeaseLost.
  const rows = all.filter(({ n }) => !hasEnded({ ended }, n) && !r.sup.includes(n));
  const waiting = rows.filter(({ n, by, k }) => ps[by]?.ticket === k && ps[by]?.st === 'parked' && !entryOf(r, n));
  const isGranted = (n: string) =>
    [...ps, outside].some(({ op }) => [op, op?.onward].some((o) => o?.grants?.some((e: { n: string }) => e.n === n)));
  const unmarked = waiting.find(({ n, by }) => !ps[by]?.op && r.mark === null && !isGranted(n));
  if (unmarked) return `mark: ${unmarked.n} is parked without a mark`;
  const isQuiet = ps.every(({ op }) => !op) && !outside.op && late.length === 0;
  const [next] = inOrder(rows, r).filter(({ n, cancelled }) => !cancelled && !entryOf(r, n));
  const serves = isQuiet && next && waiting.includes(next) && !isThird(r) && (r.used ?? 0) <= roomIn(r, next.by, false);
  return serves ? `quiet: ${next.n} fits and no call serves it` : undefined;
}

const known = new Map<string, string | undefined>();
export const forget = (): void => known.clear();

/** The parts of a state on which its end depends. */
function endOf({ rec: r, rows, ps }: State): string {
  const entry = r && holders(r).map((e) => [e.n, e.c, e.s, e.j === e.v, e.k === 0]);
  const lv = typeof r?.lv === 'number' ? 1 : r?.lv;
  const record = r && [
    lv,
    r.lx,
    r.used,
    r.fence === null,
    r.h?.n,
    r.h?.i === 0,
    entry,
    r.ring,
    r.sup,
    r.latest?.n,
    r.mark === null,
    r.cap?.m,
  ];
  const tickets = rows.map((row) => [
    row.n,
    row.by,
    row.over,
    row.cancelled,
    row.k === r?.moved,
    ps[row.by]?.ticket === row.k,
    holders(r ?? BARE).some(({ k }) => k === row.k),
  ]);
  return JSON.stringify([record, tickets, ps.map(({ st, run }) => [st, run])]);
}

/** Lets every process exit and everything expire. Then the schedule must serve every row, and each kind of acquire must succeed alone. */
function inTheEnd(s: State): string | undefined {
  const rec = overIn(s.rec);
  const rows = s.rows.map((row) => ({ ...row, over: row.over || specOf(row.by).wait === 'call' }));
  const quiet = {
    outside: IDLE,
    late: [],
    crate: null,
    top: 0,
    ended: [],
    leaving: [],
    withdrawn: [],
    wiped: true,
    odd: true,
  };
  const bud = { ...NEVER, schedule: 99, crate: 1 };
  const base: State = { ...s, ...quiet, rec, rows, ps: s.ps.map((p) => deadOf(p, s)), bud };
  const name = endOf(base);
  if (!known.has(name)) known.set(name, servedBy(base) ?? wonAlone(base));
  return known.get(name);
}

function deadOf({ st, ticket, run, tok }: Party, s: State): Party {
  const isParked = st === 'parked' && rowOf(s, ticket) !== undefined;
  return { ...IDLE, run, tok, ...(isParked && { st: 'parked' as const, ticket }) };
}
const overIn = (r: Rec | null): Rec | null =>
  r && {
    ...r,
    cap: r.cap && r.cap.m > 0 && r.cap.x === FAR ? r.cap : undefined, // an operator lifts each pause
    lx: r.lx === FAR && !r.h?.i ? FAR : -1,
    freed: -3,
    h: r.h && { ...r.h, x: -1 },
    shared: r.shared.map((e) => ({ ...e, x: -1 })),
  };

let ended: State;
function servedBy(base: State): string | undefined {
  ended = base;
  for (let steps = 0; steps < 80 && ended.rows.length > 0; steps++) {
    const next: Step[] = [];
    if (ended.outside.op) sends(ended, -1, next, false);
    else next.push(...[repair(ended)].filter((step) => step !== undefined));
    if (!next[0]) break;
    const [what, s, bad] = next[0];
    if (bad && !/^(fences|one grant|lost|superseded)/.test(bad)) return `${bad} (the schedule: ${what})`;
    ended = s.outside.op ? s : { ...s, rec: overIn(s.rec), ps: s.ps.map((p) => deadOf(p, s)) };
  }
  return ended.rows.length > 0 ? `end: ${ended.rows.map(({ n }) => n)} is never served` : undefined;
}

function wonAlone(base: State): string | undefined {
  const free: State = { ...ended, rows: [], rec: overIn(ended.rec) };
  const kinds = new Set(game.mix.ps.map(({ k }) => k));
  for (const kind of kinds) {
    const j = game.mix.ps.findIndex(({ k }) => k === kind);
    let s = copy({ ...free, ps: base.ps.map((p) => ({ ...IDLE, run: p.run })) });
    set(s, j, { run: 3 });
    set(s, j, { op: firstTry(s, j, null) });
    for (let steps = 0; steps < 30 && s.ps[j]?.op; steps++) {
      const next: Step[] = [];
      sends(s, j, next, false);
      s = (next[0] as Step)[1];
    }
    if (!s.ps[j]?.held) return `end: an acquire of ${nameOf(j, 3)} does not win alone`;
  }
  const { rec } = free;
  if (!rec || rec.lv === null) return undefined;
  if (rec.lx !== -1 && rec.lx !== FAR) return 'end: the crate never receives the key';
  const isFree = rec.lx === FAR || rec.used === 0;
  return isFree && !kinds.has('S') ? 'end: a free key of exclusive holders has a lease_version' : undefined;
}
