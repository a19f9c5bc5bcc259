import { firstTry, leave, markOp, notify, perform, poll } from './calls.ts';
import { landed } from './landed.ts';
import { capAgain, operates } from './operator.ts';
import { breaksWithWait, crate, executions, outsiders, repair, type Step } from './outside.ts';
import {
  copy,
  type Entry,
  endRun,
  FAR,
  get,
  holders,
  nameOf,
  newId,
  type Op,
  own,
  type Party,
  type Rec,
  rowOf,
  type State,
  set,
  specOf,
  spend,
} from './state.ts';
import { isWrite } from './writes.ts';

const OUTSIDE = -1;

const aged = (x: number) => (x === FAR ? FAR : Math.max(-1, x - 1));
const agedEntry = (e: Entry): Entry => ({ ...e, x: aged(e.x) });
const agedCap = <Cap extends { x: number }>(cap: Cap): Cap => ({ ...cap, x: aged(cap.x) });
const agedRec = (r: Rec | null): Rec | null =>
  r && {
    ...r,
    lx: aged(r.lx),
    freed: Math.max(-3, r.freed - 1),
    ...(r.cap && { cap: agedCap(r.cap) }),
    h: r.h && agedEntry(r.h),
    shared: r.shared.map(agedEntry),
  };
/** Lets a write under way grow older, because its times are from before it was sent. */
const agedOp = (o: Op): Op => ({
  ...o,
  ...(o.x !== undefined && { x: aged(o.x) }),
  ...(o.at !== undefined && { at: Math.max(-3, o.at - 1) }),
  ...(o.grants && { grants: o.grants.map(agedEntry) }),
  ...(o.grant && { grant: agedEntry(o.grant) }),
  ...(o.e && { e: agedEntry(o.e) }),
  ...(o.onward && { onward: agedOp(o.onward) }),
});
const agedParty = (p: Party): Party => ({
  ...p,
  held: p.held && { ...p.held, x: aged(p.held.x) },
  op: p.op && agedOp(p.op),
  next: p.next && agedOp(p.next),
  seen: agedRec(p.seen),
});
const tick = (s: State): State => ({
  ...s,
  rec: agedRec(s.rec),
  ps: s.ps.map(agedParty),
  outside: agedParty(s.outside),
  late: s.late.map(agedOp),
  crate: s.crate && { ...s.crate, x: aged(s.crate.x) },
});
const runs = (x: number | undefined): boolean => x === 1 || x === 0;
const ages = (o: Op): boolean => runs(o.x) || runs(o.grant?.x) || (o.grants?.some((e: Entry) => runs(e.x)) ?? false);
/** Whether the passing of time changes anything. */
function isAgeing({ rec, ps, outside, late, crate }: State): boolean {
  const record = (r: Rec | null) =>
    r !== null && ((runs(r.lx) && r.lv !== null) || holders(r).some(({ x }) => runs(x)) || runs(r.cap?.x));
  const party = ({ held, op, seen }: Party) => (held && runs(held.x)) || (op && ages(op)) || record(seen);
  return record(rec) || [...ps, outside].some(party) || (crate !== null && runs(crate.x)) || late.some(ages);
}

/** A call fails with OutcomeUnknown. An acquire then asks again, and all other calls end. */
function unanswered(s: State, j: number, o: Op): void {
  s.odd = true;
  if (o.t === 'release' && j >= 0) return;
  const asksAgain = ['acquire', 'takeOver', 'claim', 'raise', 'answer'].includes(o.t) && !o.onward;
  if (o.t === 'heartbeat') set(s, j, { op: null });
  else if (j >= 0 && asksAgain && !s.leaving.includes(own(s, j)))
    set(s, j, { op: firstTry(s, j, null), tries: 0, empty: false });
  else if (o.t === 'cap') capAgain(s);
  else if (j >= 0 && o.t === 'mark') set(s, j, { op: markOp(s, o.n, { seen: o.seen, back: o.back }) });
  else exits(s, j);
}

/** A process exits. The task of a parked one goes on waiting. */
function exits(s: State, j: number): void {
  s.odd = true;
  const { held, ticket, op, left } = get(s, j);
  const isParked = j >= 0 && specOf(j).wait === 'task' && rowOf(s, ticket) !== undefined && !held;
  const gives = ['release', 'quick', 'peek', 'heartbeat'].includes(op?.t ?? '');
  endRun(s, j);
  if (j < 0) return;
  set(s, j, { held: gives ? null : held, left: isParked ? left : 0, ...(isParked && { st: 'parked', ticket }) });
}

/** The moves of the request under way, with what may go wrong. */
export function sends(s0: State, j: number, out: Step[], faults: boolean): void {
  const p = get(s0, j);
  const o = p.op as Op;
  const who = j < 0 ? 'the other' : own(s0, j);
  const act = (what: string, change: (s: State) => string | undefined) => {
    const s = copy(s0);
    const bad = change(s);
    out.push([`${who} ${what}`, s, bad]);
  };
  act(o.t + (o.t === 'grant' ? ` to ${o.grants.map(({ n }: Entry) => n)}` : ''), (s) => perform(s, j));
  if (!faults) return;
  const { bud } = s0;
  if (o.t === 'notify' && bud.mute > 0)
    for (const how of ['no answer', 'without effect'] as const)
      act(`notifies, ${how}`, (s) => {
        spend(s, 'mute');
        return notify(s, j, how);
      });
  if (bud.exit > 0)
    act('exits', (s) => {
      spend(s, 'exit');
      exits(s, j);
      return undefined;
    });
  if (!isWrite(o)) return;
  if (bud.twice > 0)
    act(`${o.t}, twice`, (s) => {
      spend(s, 'twice');
      s.late = [...s.late, o];
      return perform(s, j);
    });
  if (bud.late > 0)
    act(`${o.t} arrives later`, (s) => {
      spend(s, 'late');
      s.late = [...s.late, o];
      unanswered(s, j, o);
      return undefined;
    });
  if (bud.lost > 0)
    act(`${o.t}, answer lost`, (s) => {
      spend(s, 'lost');
      const { bad } = landed(s, o);
      unanswered(s, j, o);
      return bad;
    });
}

/** All that may happen next. */
export function moves(s0: State): Step[] {
  const out: Step[] = [];
  const act = (what: string, change: (s: State) => string | undefined) => {
    const s = copy(s0);
    const bad = change(s);
    out.push([what, s, bad ?? undefined]);
  };
  if (isAgeing(s0)) out.push(['time goes on', tick(s0)]);
  for (const [j, p] of s0.ps.entries()) {
    executions(s0, j, act);
    if (p.op) sends(s0, j, out, true);
    else if (p.held) holds(s0, j, act);
    else if (p.st === 'parked' || p.st === 'waiting') waits(s0, j, act, out);
    else if (p.st === '' && p.left > 0)
      act(`${nameOf(j, p.run + 1)} asks`, (s) => {
        set(s, j, { left: p.left - 1, run: p.run + 1 });
        set(s, j, { op: firstTry(s, j, null) });
      });
  }
  if (s0.outside.op) sends(s0, OUTSIDE, out, true);
  else {
    outsiders(s0, act);
    operates(s0, act);
    const repaired = s0.bud.schedule > 0 && s0.rows.length > 0 && repair(s0);
    if (repaired) out.push(repaired);
  }
  for (const [nth, o] of s0.late.entries())
    act(`late ${o.t} of ${o.n || 'a hand-off'}`, (s) => {
      s.late = s.late.toSpliced(nth, 1);
      const { won, bad } = landed(s, o);
      s.odd ||= won;
      return bad;
    });
  if (s0.bud.ttl > 0 && s0.rec && (s0.rec.lv === null || s0.rec.lx === -1))
    act('TTL deletes', (s) => {
      spend(s, 'ttl');
      s.rec = null;
      s.wiped = true;
    });
  breaksWithWait(s0, act);
  crate(s0, act);
  return out;
}

type Act = Parameters<typeof crate>[1];

function holds({ ps, bud }: State, j: number, act: Act): void {
  const { held, run } = ps[j] as Party;
  if (!held) return;
  const { n, i, x } = held;
  const who = nameOf(j, Math.max(0, run));
  if (bud.beat > 0 && x < 1)
    act(`${who} beats`, (s) => {
      spend(s, 'beat');
      set(s, j, { op: { t: 'heartbeat', n, i, nv: newId(s), x: 1 } });
    });
  const isQuick = specOf(j).quick && held.q;
  act(`${who} releases`, (s) => {
    set(s, j, { op: isQuick ? { t: 'peek', n, i, k: held.k } : { t: 'release', n, i, how: 'released' }, held: null });
    return undefined;
  });
  if (x === -1)
    act(`${who} gives up`, (s) => {
      endRun(s, j);
      set(s, j, { held: null, left: 0 });
    });
}

function waits(s0: State, j: number, act: Act, out: Step[]): void {
  const p = get(s0, j);
  const who = own(s0, j);
  if (p.st === 'parked') {
    if (s0.bud.again > 0)
      act(`${who} is tried again`, (s) => {
        spend(s, 'again');
        s.odd = true;
        set(s, j, { tok: p.tok + 1, ticket: 0, st: '', op: { t: 'row', n: who } });
      });
    if (s0.bud.gone > 0)
      act(`${who} is gone`, (s) => {
        spend(s, 'gone');
        s.odd = true;
        set(s, j, { st: specOf(j).runs > 1 ? '' : 'gone', ticket: 0, left: specOf(j).runs > 1 ? p.left : 0 });
      });
    return;
  }
  const s = copy(s0);
  const seen = poll(s, j);
  if (seen) out.push([`${who} ${seen.what}`, s, seen.bad]);
  if (s0.bud.leave > 0)
    act(`${who} leaves`, (s) => {
      spend(s, 'leave');
      leave(s, j);
    });
}
