import { replaces } from './latest.ts';
import { obeys } from './operator.ts';
import {
  ALL,
  BARE,
  type End,
  type Entry,
  entryOf,
  holders,
  nameOf,
  type Op,
  partyOf,
  type State,
  specOf,
  weightOf,
} from './state.ts';
import { isRemembered, landing, put } from './writes.ts';

/** The grants that a write has made. */
function grantsOf(o: Op, s: State): Entry[] {
  if (o.t === 'acquire' || o.t === 'takeOver') return [entryOf(s.rec ?? BARE, o.n) as Entry];
  return o.t === 'grant' ? o.grants : o.t === 'quick' ? [s.rec?.h as Entry] : [];
}

/** Lets a write arrive. @returns whether its condition held, and what the write breaks */
export function landed(s: State, o: Op): { won: boolean; bad?: string | undefined } {
  const before = s.rec ?? BARE;
  const after = landing(s.rec, o);
  if (!after) return { won: false };
  s.rec = after;
  note(s, o, before.h);
  if (after.latest && after.latest.n !== before.latest?.n) {
    const { n } = after.latest;
    s.joined = [...s.joined.filter((one) => one !== n && one !== `${n}!`), n];
    s.notified = s.notified.filter((one) => one !== n);
  }
  let bad: string | undefined;
  const isTry = o.t === 'acquire' || o.t === 'takeOver';
  for (const e of grantsOf(o, s)) {
    const had = entryOf(before, e.n);
    const isOver = o.ended?.some(({ n }: End) => n === e.n);
    if (s.ended.includes(e.n) && !s.wiped) bad = `one grant: ${e.n} released its grant and is granted again`;
    if (had?.s && isTry) bad = `broken: ${e.n} receives its broken grant again`;
    if (had && had.x !== -1 && !isOver) bad = `one grant: ${e.n} has two grants`;
    const beside = s.ps.flatMap(({ held, run }, j) => (held && held.x >= 0 && nameOf(j, run) !== e.n ? [held] : []));
    bad ??= obeys(s, o, before, e);
    const most = e.w === ALL ? 0 : specOf(partyOf(e.n)).l - e.w;
    if (beside.length > 0 && weightOf(beside) > most) bad = `limit: ${e.n} is granted beside ${weightOf(beside)}`;
    // A grant that did not reach its party may be given again. The `!` says so.
    const newer = replaces(e.n) && s.joined.includes(e.n) ? s.joined.slice(s.joined.indexOf(e.n) + 1) : [];
    const waiting = newer.find(
      (n) => !entryOf(after, n) && s.rows.some((row) => row.n === n && !row.over && !row.cancelled),
    );
    if (waiting) bad = `newest: ${e.n} starts while ${waiting} waits, which is newer`;
    s.joined = s.joined.map((n) => (n === e.n ? `${n}!` : n));
    if (e.f <= s.top) s.rec = put(s.rec, { ...(entryOf(s.rec, e.n) as Entry), low: true });
  }
  if (isTry && before.freed > o.at) bad ??= `late: a try of ${o.n} takes a place that came free after it was sent`;
  const waits = s.rows.some(
    ({ n, by, over }) => !over && n !== o.n && s.ps[by]?.st === 'parked' && !entryOf(before, n),
  );
  if (isTry && before.mark !== null && waits) bad ??= `order: ${o.n} passes the line`;
  for (const e of holders(before))
    if (e.s && holders(after).some(({ i, x }) => i === e.i && x > e.x)) bad = `broken: the grant of ${e.n} is extended`;
  const { operator } = s;
  if (operator?.moved && grantsOf(o, s).some(({ k }) => k === operator.moved?.k))
    s.operator = { ...operator, moved: null };
  s.top = Math.max(s.top, after.fence ?? 0);
  // Only the entry remembers a request whose exclusive grant was ended without a hand-off, until the next first try. A `?` says so.
  const { h } = before;
  if (isTry && h?.i === 0 && after.h !== h && !after.ring.includes(h.n))
    s.ended = s.ended.map((n) => (n === h.n ? `${n}?` : n));
  return { won: true, bad };
}

/** Notes whose grants have ended. An operator who breaks a grant takes the risk that its holder goes on. Two calls of a request share its grant. */
function note(s: State, o: Op, h: Entry | null): void {
  const ends: Pick<End, 'n' | 'i' | 'how'>[] = [...(o.ended ?? [])];
  if (o.t === 'release') ends.push({ n: o.n, i: o.i, how: o.how });
  if (o.t === 'quick' && h) ends.push({ n: h.n, i: h.i, how: 'released' });
  const names = ends.filter(isRemembered).map(({ n }) => n);
  if (names.length > 0) s.ended = [...new Set([...s.ended, ...names])].sort();
  if (o.waits) return;
  const over = ends.filter(isRemembered).map(({ i }) => i);
  s.ps = s.ps.map((p) => (p.held && over.includes(p.held.i) ? { ...p, held: { ...p.held, x: -1 } } : p));
}
