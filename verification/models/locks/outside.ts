import { firstTry, handOff, markOp } from './calls.ts';
import { landed } from './landed.ts';
import { repairReplaced } from './replace.ts';
import {
  BARE,
  copy,
  dropRow,
  type Entry,
  endRun,
  entryOf,
  FAR,
  fits,
  get,
  holders,
  inOrder,
  isThird,
  newId,
  now,
  own,
  partyOf,
  remembers,
  roomOf,
  type State,
  set,
  specOf,
  spend,
  ttlOf,
  weightOfParty,
  without,
} from './state.ts';
import { entry } from './writes.ts';

export type Step = [what: string, s: State, bad?: string | undefined];
type Act = (what: string, change: (s: State) => string | undefined) => void;
const OUTSIDE = -1;

/** The next step of the schedule, if it runs now (docs/protocols/tasks.md#repair). */
export function repair(s0: State): Step | undefined {
  const notified = repairReplaced(s0);
  if (notified) {
    spend(notified[1], 'schedule');
    return notified;
  }
  const s = copy(s0);
  const r = s.rec ?? BARE;
  spend(s, 'schedule');
  const waits = ({ n, over, cancelled }: State['rows'][number]) =>
    !over && !cancelled && !entryOf(r, n) && !remembers(r, n);
  const next = inOrder(s.rows, r).find(waits);
  const lapsed = s.rows.find(({ n }) => entryOf(r, n)?.x === -1);
  const stale = s.rows.find(
    (row) => row.over || row.cancelled || (remembers(r, row.n) && entryOf(r, row.n)?.k !== row.k),
  );
  const ends = lapsed || (stale && ((r.used ?? 0) === 0 || r.mark !== null));
  const passed = passOn(s);
  if (passed) return ['the schedule passes a grant on', passed];
  if ((next && fits(r, next.by)) || (!isThird(r) && ends)) {
    if (stale?.cancelled) dropRow(s, stale.k);
    handOff(s, OUTSIDE, 'outside', r);
    return ['the schedule hands off', s];
  }
  if (stale && !next) {
    dropRow(s, stale.k);
    return ['the schedule deletes a row', s];
  }
  if (next && r.mark === null) {
    set(s, OUTSIDE, { op: markOp(s, next.n, { back: true }), cont: 'outside' });
    return ['the schedule marks', s];
  }
  const row = s.rows.find(({ n }) => entryOf(r, n) !== undefined);
  const e = row && (entryOf(r, row.n) as Entry);
  if (!row || !e || e.c) return undefined;
  if (specOf(row.by).wait === 'call') {
    dropRow(s, row.k);
    return ['the schedule deletes the row of a claimed grant', s];
  }
  const { n, i, v } = e;
  if (e.s && e.k !== row.k) return undefined;
  const op = e.s ? { t: 'notifyLost', n, row, e } : { t: 'renew', n, i, v, nv: newId(s), x: ttlOf(row.by), row };
  set(s, OUTSIDE, { op, cont: 'outside', seen: r });
  return [e.s ? 'the schedule notifies of a break' : 'the schedule renews', s];
}

/** A bound grant that perhaps reached no task passes to the next task of the same execution, under a new fence. */
function passOn(s: State): State | undefined {
  const r = s.rec ?? BARE;
  const e = holders(r).find((one) => one.j === one.v);
  const row = e && s.rows.find(({ by, n, over }) => n !== e.n && !over && by === partyOf(e.n));
  if (!e || !row) return undefined;
  const f = Math.max((r.fence ?? 0) + 1, now(s));
  const grant = entry({ n: row.n, i: newId(s), v: newId(s), w: weightOfParty(row.by), x: ttlOf(row.by) }, f, {
    k: row.k,
  });
  const ended = [{ n: e.n, i: e.i, v: e.v, how: 'neverNotified' as const }];
  const terms = { fence: r.fence, used: true, third: null, back: newId(s), others: true, m: r.mark };
  const op = { t: 'grant', n: '', ...terms, grants: [grant], rows: [row], ended, freed: e.w, room: roomOf(row.by) };
  set(s, OUTSIDE, { op, cont: 'outside', seen: r });
  return s;
}

/** An operator breaks a grant, and waits for its holder. */
export function breaksWithWait({ bud, rec }: State, act: Act): void {
  if (bud.breakWait === 0 || !rec) return;
  for (const { n, i, s: isEnding, c, x } of holders(rec)) {
    if (isEnding || c || x === -1) continue;
    act(`an operator breaks ${n}, and waits`, (s) => {
      spend(s, 'breakWait');
      return landed(s, { t: 'markEnding', n, i, nv: newId(s) }).bad;
    });
  }
}

/** The moves of operators, executions and withdrawals. */
export function outsiders(s0: State, act: Act): void {
  const { bud, rec } = s0;
  for (const e of rec ? holders(rec) : []) {
    const by = partyOf(e.n);
    if (by >= s0.ps.length) continue;
    if (bud.break > 0 && !e.c)
      act(`an operator breaks ${e.n}`, (s) => {
        spend(s, 'break');
        set(s, OUTSIDE, { op: { t: 'release', n: e.n, i: e.i, how: 'broken' }, cont: 'outside' });
      });
    const p = s0.ps[by];
    if (p?.st === 'over' && (ttlOf(by) === FAR || e.x !== -1)) endOf(e, by, act);
  }
  for (const row of s0.rows) {
    const { n, by } = row;
    const isTask = specOf(by).wait === 'task';
    if (bud.withdraw > 0 && !isTask && !row.over && !s0.leaving.includes(n) && !s0.ps[by]?.held)
      act(`${n} is withdrawn`, (s) => {
        spend(s, 'withdraw');
        s.leaving = [...s.leaving, n];
        set(s, OUTSIDE, {
          op: { t: without('withdraw: flag first') ? 'withdraw' : 'flag', n, had: false },
          cont: 'outside',
        });
      });
    if (bud.cancel > 0 && isTask && s0.ps[by]?.ticket === row.k && s0.ps[by]?.st === 'parked' && !s0.ps[by]?.op)
      act(`an operator cancels ${n}`, (s) => {
        spend(s, 'cancel');
        dropRow(s, row.k);
        endRun(s, by);
        if (s.rec?.mark != null) handOff(s, OUTSIDE, 'outside', s.rec);
      });
  }
}

/** The execution of a holder has ended. A call that has seen this ends the grant under its version, or lets it go on for its grace. */
function endOf(e: Entry, by: number, act: Act): void {
  if (specOf(by).grace && e.x === FAR)
    act(`the grace of ${e.n} begins`, (s) => {
      set(s, OUTSIDE, { op: { t: 'grace', n: e.n, i: e.i, v: e.v, nv: newId(s), x: 1 }, cont: 'outside' });
    });
  else if (!specOf(by).grace)
    act(`the end of the execution of ${e.n}`, (s) => {
      handOff(s, OUTSIDE, 'outside', s.rec ?? BARE, [{ n: e.n, i: e.i, v: e.v, how: 'executionEnded' }]);
    });
}

/** An execution that holds a grant ends, and may be redriven: then it asks again by the same request. */
export function executions(s0: State, j: number, act: Act): void {
  const p = get(s0, j);
  if (!specOf(j).execution || p.run < 0) return;
  if (s0.bud.end > 0 && p.st !== 'over' && (p.held || p.op?.t === 'answer' || p.op?.t === 'acquire'))
    act(`the execution of ${own(s0, j)} ends`, (s) => {
      spend(s, 'end');
      const held = specOf(j).grace && p.held ? { ...p.held, x: 1 } : null;
      endRun(s, j);
      set(s, j, { st: 'over', held });
    });
  if (s0.bud.redrive > 0 && p.st === 'over' && !p.op)
    act(`${own(s0, j)} is redriven`, (s) => {
      spend(s, 'redrive');
      endRun(s, j);
      set(s, j, { held: null, op: firstTry(s, j, null) });
    });
}

/** The moves of the Rust crate: a PutItem if there is no lease_version or lease_expiry has passed, an extension with a new version, and a deletion. */
export function crate({ crate: c, bud, rec }: State, act: Act): void {
  if (!c && bud.crate > 0 && (rec === null || rec.lv === null || rec.lx === -1))
    act('the crate takes', (s) => {
      spend(s, 'crate');
      const lv = newId(s);
      s.wiped ||= rec !== null && (rec.fence !== null || rec.mark !== null || rec.cap !== undefined);
      s.rec = { ...BARE, lv, lx: 1 };
      s.crate = { lv, x: 1 };
    });
  if (!c) return;
  const isIts = rec?.lv === c.lv;
  if (bud.extend > 0 && c.x < 1)
    act('the crate extends', (s) => {
      spend(s, 'extend');
      const lv = newId(s);
      s.crate = isIts ? { lv, x: 1 } : null;
      if (isIts) s.rec = { ...rec, lv, lx: 1 };
    });
  act('the crate drops', (s) => {
    if (isIts) s.rec = null;
    s.wiped ||= isIts;
    s.crate = null;
  });
  if (c.x === -1)
    act('the crate stops', (s) => {
      s.crate = null;
    });
}
