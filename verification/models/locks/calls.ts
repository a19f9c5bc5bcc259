import { landed } from './landed.ts';
import { drops, isSuperseded, replaces } from './latest.ts';
import { ask, follow, notifyRow, superseded } from './replace.ts';
import {
  ALL,
  BARE,
  BATCH,
  dropRow,
  type End,
  type Entry,
  endRun,
  entryOf,
  expiredIn,
  FAR,
  fits,
  game,
  get,
  hasEnded,
  holders,
  inOrder,
  isThird,
  newId,
  now,
  type Op,
  own,
  type Party,
  type Rec,
  type Row,
  remembers,
  roomIn,
  rowOf,
  type State,
  set,
  specOf,
  ttlOf,
  weightOf,
  weightOfParty,
  without,
} from './state.ts';
import { capTerms, entry, isRemembered } from './writes.ts';

// How a call goes on after the answer to each of its requests: acquisitions, releases, the line, and withdrawals.

/** The first try of a call, which has not seen the record, or only its fence. */
export function firstTry(s: State, j: number, seen: Rec | null): Op {
  const { l, k } = specOf(j);
  const at = now(s);
  const ids = { n: own(s, j), i: newId(s), v: newId(s), x: ttlOf(j), w: weightOfParty(j), l, at: 0 };
  if (game.mix.caps) Object.assign(ids, { room: roomIn(seen ?? BARE, j), ...capTerms(seen, [j]) });
  return k === 'X'
    ? { t: 'acquire', ...ids, f: Math.max(at, (seen?.fence ?? 0) + 1) }
    : { t: 'acquire', ...ids, now: at };
}
export const markOp = (s: State, n: string, more: { seen?: number; back?: boolean } = {}): Op => ({
  ...{ t: 'mark', n, m: newId(s), seen: 0, back: false },
  ...(replaces(n) && {
    replace: true,
    drops: drops(s.rec ?? BARE, n),
    k: s.rows.findLast((row) => row.n === n)?.k ?? 0,
  }),
  ...more,
});
const claimOp = (s: State, e: Entry, j: number): Op => ({
  ...{ t: 'claim', n: e.n, i: e.i, v: e.v, nv: newId(s), x: ttlOf(j), f: now(s) },
});
/** A repeat writes a new version: a call that saw the grant before can no longer end it. */
const answerOp = (s: State, e: Entry): Op => ({ t: 'answer', n: e.n, i: e.i, v: e.v, nv: newId(s) });
const hasRow = (s: State, j: number) => rowOf(s, get(s, j).ticket)?.n === own(s, j);
const rest = (j: number) => (specOf(j).wait === 'task' ? 'parked' : 'waiting');

/** The caller is answered with a grant, and counts on it. */
function hold(s: State, j: number, e: Entry, repeated: boolean): string | undefined {
  const { l, k, w } = specOf(j);
  const n = own(s, j);
  dropRow(s, get(s, j).ticket);
  endRun(s, j);
  const stands = s.rec !== null && entryOf(s.rec, n)?.i === e.i;
  if (s.withdrawn.includes(n) && stands && e.x >= 0) return `withdrawn: ${n} holds, and was withdrawn`;
  // A caller that withdraws does not work under a grant that it is answered afterwards.
  if (!s.leaving.includes(n))
    set(s, j, { held: { n, i: e.i, x: e.x, w: k === 'X' ? ALL : w, l, q: s.rows.length > 0, k: e.k } });
  const isLow = e.low && e.x >= 0 && !(s.wiped && (repeated || k === 'S'));
  return isLow ? `fences: ${n} is answered with a fence that is not higher than all before` : undefined;
}

/** The call fails with LeaseLost or Superseded. */
function lose(s: State, j: number): string | undefined {
  const n = own(s, j);
  if (s.rec && isSuperseded(s.rec, n)) return superseded(s, j);
  dropRow(s, get(s, j).ticket);
  endRun(s, j);
  const isRight = hasEnded(s, n) || (s.rec && entryOf(s.rec, n)?.s);
  return isRight ? undefined : `lost: ${n} receives the end of its grant, and no call ended it`;
}

function refuse(s: State, j: number): string | undefined {
  if (specOf(j).wait === 'no') return void endRun(s, j);
  return void set(s, j, {
    op: hasRow(s, j) || without('row before mark') ? markOp(s, own(s, j)) : { t: 'row', n: own(s, j) },
  });
}

/** Decides what an acquire does next, by the record that it has met. */
function judge(s: State, j: number, tried?: number): string | undefined {
  const r = s.rec ?? BARE;
  const p = get(s, j);
  const mine = entryOf(r, own(s, j));
  if (mine && mine.i === tried) return hold(s, j, mine, false);
  if (mine?.s || remembers(r, own(s, j))) return lose(s, j);
  if (mine?.c) return void set(s, j, { op: claimOp(s, mine, j) });
  if (mine && mine.x > 0)
    return mine.k || specOf(j).execution ? void set(s, j, { op: answerOp(s, mine) }) : hold(s, j, mine, true);
  if (mine?.x === 0 || !fits(r, j)) return refuse(s, j);
  if (r.mark !== null) return p.empty ? refuse(s, j) : void handOff(s, j, 'acquire', r);
  if (p.tries >= 3) return refuse(s, j);
  const over = isThird(r) ? [] : needed(r, j, mine);
  if (over.length === 0) return void set(s, j, { op: firstTry(s, j, r), tries: p.tries + 1 });
  const ended = over.map((e): End => ({ n: e.n, i: e.i, v: e.v, how: 'expired' }));
  const { now: _, ...op } = firstTry(s, j, r);
  const f = Math.max(now(s), (r.fence ?? 0) + 1);
  return void set(s, j, { op: { ...op, t: 'takeOver', f, ended, freed: weightOf(over) }, tries: p.tries + 1 });
}

/** The expired entries that a take-over must end, the request's own first. An exclusive holder is not among them, because the next try replaces it anyway. */
function needed(r: Rec, j: number, mine: Entry | undefined): Entry[] {
  const ended = mine ? [mine] : [];
  for (const e of expiredIn(r)) if (e !== mine && (r.used ?? 0) - weightOf(ended) > roomIn(r, j)) ended.push(e);
  return specOf(j).k === 'X' ? ended.filter(({ w }) => w !== ALL) : ended;
}

/** A request of a party, its answer, and what the call does next. @returns what it breaks */
export function perform(s: State, j: number): string | undefined {
  const o = get(s, j).op as Op;
  switch (o.t) {
    case 'row': {
      const k = newId(s);
      forgetWithdrawal(s, o.n);
      s.rows = [...s.rows, { k, n: o.n, by: j, tok: get(s, j).tok, over: false, cancelled: false }];
      const isLast = without('row before mark');
      return void set(s, j, { ticket: k, op: isLast ? null : markOp(s, o.n), ...(isLast && { st: rest(j) }) });
    }
    case 'query':
      return query(s, j);
    case 'peek':
      return peek(s, j, o);
    case 'notify':
      return notify(s, j, 'taken');
    case 'notifyLost':
      return notifyLost(s, j);
    case 'flag':
      return flag(s, j, o);
    case 'withdraw':
      return withdraw(s, j, o);
    case 'leaveRow':
      return leaveRow(s, j, o);
    case 'follow':
      return follow(s, o.dropped) ?? arrived(s, j, s.rec ?? BARE);
  }
  const before = s.rec;
  const { won, bad } = landed(s, o);
  return bad ?? after(s, j, o, won, before);
}

/** The quick release reads the line first. */
function peek(s: State, j: number, o: Op): string | undefined {
  const release = { t: 'release', n: o.n, i: o.i, how: 'released' };
  const row = s.rows.find(({ over, cancelled }) => !over && !cancelled);
  if (!row || specOf(row.by).k !== 'X' || s.rows.some(({ k }) => k === o.k)) return void set(s, j, { op: release });
  const [i, v] = [newId(s), newId(s)];
  const isCall = specOf(row.by).wait === 'call';
  const grant = entry({ n: row.n, i, v, w: ALL, x: isCall ? 1 : ttlOf(row.by) }, 0, { k: row.k, c: isCall });
  return void set(s, j, { op: { t: 'quick', n: o.n, i: o.i, grant, f: now(s), row, ...capTerms(null, [row.by]) } });
}

/** Reads the row after a claim. A withdrawal flags the row first and reads the record second, so one of the two sees the other. */
function leaveRow(s: State, j: number, o: Op): string | undefined {
  const mine = s.rec && entryOf(s.rec, o.n);
  for (const k of new Set<number>([o.k, get(s, j).ticket])) {
    const row = rowOf(s, k);
    if (!row || row.n !== o.n) continue;
    if (!row.cancelled || without('claim: row is read')) {
      dropRow(s, k);
      continue;
    }
    // A row that was withdrawn stays, because each call of the request must see that.
    endRun(s, j);
    if (k === o.k) set(s, j, { op: { t: 'release', n: o.n, i: o.i, how: 'released' } });
    return undefined;
  }
  const x = hasEnded(s, o.n) ? -1 : o.e.x; // another call of the request has released it
  return hold(s, j, { ...o.e, x, low: mine?.i === o.i && mine?.low }, o.repeated);
}

/** A call in line has claimed its grant, or was answered with it. */
function received(s: State, j: number, e: Entry, repeated: boolean): string | undefined {
  const isCall = specOf(j).wait === 'call' && (game.mix.bud?.withdraw ?? 0) > 0;
  if (!isCall) return hold(s, j, e, repeated);
  return void set(s, j, { op: { t: 'leaveRow', n: e.n, i: e.i, k: e.k, e, repeated } });
}

/** Forgets a withdrawal, because another call of the request may join: the record does not remember a request that never had a grant. */
const forgetWithdrawal = (s: State, n: string): void => {
  s.withdrawn = s.withdrawn.filter((one) => one !== n);
};

/** A withdrawal flags the calls in line, reads the record, and ends the grant or serves those behind. */
function flag(s: State, j: number, o: Op): string | undefined {
  const hadRow = s.rows.some(({ n, over }) => n === o.n && !over);
  s.rows = s.rows.map((row) => (row.n === o.n && specOf(row.by).wait === 'call' ? { ...row, cancelled: true } : row));
  const flagged: Op = { ...o, t: 'withdraw', had: hadRow || o.had };
  return o.last ? finishWithdrawal(s, j, flagged, s.rec ?? BARE) : void set(s, j, { op: flagged });
}

function withdraw(s: State, j: number, o: Op): string | undefined {
  const r = s.rec ?? BARE;
  if (without('withdraw: flag first') && !o.last)
    return void set(s, j, { op: { ...o, t: 'flag', last: true, seen: r } });
  return finishWithdrawal(s, j, o, r);
}

function finishWithdrawal(s: State, j: number, o: Op, read: Rec): string | undefined {
  const r: Rec = o.seen ?? read;
  const mine = entryOf(r, o.n);
  if (mine && !o.ended) {
    s.rows = s.rows.map((row) =>
      row.k === mine.k && specOf(row.by).wait === 'call' ? { ...row, cancelled: true } : row,
    );
    return void set(s, j, {
      op: { t: 'release', n: o.n, i: mine.i, how: 'released', onward: { ...o, seen: undefined, t: 'withdraw' } },
      cont: 'outside',
    });
  }
  const stands = s.rec && !o.ended && entryOf(s.rec, o.n);
  if (stands && !stands.c) return `withdrawn: the grant of ${o.n} stands after its withdrawal`;
  const hasJoinedSince = s.rows.some(({ n, over, cancelled }) => n === o.n && !over && !cancelled);
  if (o.ended || (o.had && !hasJoinedSince)) s.withdrawn = [...new Set([...s.withdrawn, o.n])];
  return r.mark === null ? finish(s, j, 'served') : void handOff(s, j, 'outside', r);
}

function after(s: State, j: number, o: Op, won: boolean, before: Rec | null): string | undefined {
  const r = s.rec ?? BARE;
  const mine = entryOf(r, o.n);
  switch (o.t) {
    case 'acquire':
    case 'takeOver':
      if (won) forgetWithdrawal(s, o.n);
      return won ? settle(s, j, o, before) : judge(s, j, o.i);
    case 'raise':
      if (o.onward && !won) s.odd = true; // too late: the schedule notifies the task
      if (!won || !mine) return o.onward ? finish(s, j, 'served') : judge(s, j);
      if (!o.onward) return hold(s, j, mine, false);
      return void set(s, j, {
        seen: r,
        op: { ...o.onward, grants: o.onward.grants.map((h: Entry) => (h.n === o.n ? { ...h, v: mine.v } : h)) },
      });
    case 'mark':
      return marked(s, j, o, won, before?.latest?.k ?? 0);
    case 'grant':
      if (!won && !o.grants.some((e: Entry) => entryOf(r, e.n)?.i === e.i)) return readAgain(s, j, r);
      if (!won) return finish(s, j, 'served'); // an earlier try landed
      set(s, j, { seen: r, end: [] });
      return served(s, j, o);
    case 'end':
      if (!won) return readAgain(s, j, r);
      set(s, j, { seen: r, end: [] });
      if (o.clears) return finish(s, j, 'empty');
      return without('end: reads again') ? finish(s, j, 'waits') : void set(s, j, { op: queryOp() });
    case 'claim':
      if (won && mine) return ask(s) ?? received(s, j, mine, false);
      if (mine?.c) return void set(s, j, { op: claimOp(s, mine, j) });
      if (mine && !mine.s && mine.x > 0) return void set(s, j, { op: answerOp(s, mine) });
      if (remembers(r, o.n) || mine?.s) return lose(s, j);
      return hasRow(s, j) ? void set(s, j, { op: null, st: rest(j) }) : void endRun(s, j);
    case 'answer':
      if (won && mine && mine.x > 0) return received(s, j, mine, true);
      return hasRow(s, j) ? void set(s, j, { op: markOp(s, o.n, { seen: won ? (mine?.v ?? 0) : 0 }) }) : judge(s, j);
    case 'renew':
    case 'note':
    case 'grace':
      if (!won || !mine || o.t !== 'renew') return finish(s, j, 'served');
      return void set(s, j, {
        seen: r,
        op: { t: 'notify', n: '', grants: [mine], rows: [o.row], others: false, late: true, notified: o.notified },
      });
    case 'heartbeat': {
      const lives = mine?.i === o.i && !(mine?.s && !won);
      const { held } = get(s, j);
      return void set(s, j, { op: null, held: lives && held && mine ? { ...held, x: mine.x } : null });
    }
    case 'cap':
    case 'move':
      return commanded(s, j, o, won);
    case 'markEnding':
      return void set(s, j, { op: null });
    case 'release': {
      const next = o.onward && { ...o.onward, ended: won };
      const stands = won ? undefined : holders(r).find(({ i }) => i === o.i);
      const goes = stands && (o.v === undefined || stands.v === o.v);
      const isServed = won && before?.h?.i === o.i; // the write asked for no mark
      set(s, j, { next: next ?? null, seen: r, cont: 'release' });
      if (!goes && (!won || isServed || r.mark === null)) return finish(s, j, 'served');
      return void handOff(s, j, 'release', r, stands ? [{ n: o.n, i: o.i, v: stands.v, how: o.how }] : []);
    }
    default: // quick
      if (!won) return void set(s, j, { op: { t: 'release', n: o.n, i: o.i, how: 'released' } });
      set(s, j, { cont: 'release', seen: r, end: [] });
      return served(s, j, { ...o, grants: [r.h], rows: [o.row], others: false });
  }
}

/** Goes on after a command of an operator, which has landed or has lost to another one. */
function commanded(s: State, j: number, o: Op, won: boolean): undefined {
  const r = s.rec ?? BARE;
  const { operator } = s;
  if (!operator) return;
  const answeredCap = o.t === 'cap' ? { m: o.m, number: o.number } : operator.answeredCap;
  const moved = o.t === 'move' && won ? { k: o.k, number: o.number } : operator.moved;
  const last = o.t === 'move' && won ? o.number : operator.last;
  s.operator = { ...operator, answeredCap, moved, last };
  const serves = o.t === 'cap' ? o.m !== 0 && !without('cap: a lift hands off') : won && !without('moved: hands off');
  if (serves && r.mark !== null) handOff(s, j, 'outside', r);
  else set(s, j, { op: null, cont: '' });
}

/** A first try that was late raises its fence, if it met none, or an expired grant that may have been late too. */
function settle(s: State, j: number, o: Op, before: Rec | null): string | undefined {
  const e = entryOf(s.rec as Rec, o.n) as Entry;
  const isFirst = (before?.fence ?? null) === null;
  const tookOver = o.t === 'takeOver' || (before?.h?.i ?? 0) !== 0;
  const isUnsafe = isFirst || (tookOver && !without('late take-overs'));
  if (!isUnsafe || !s.wiped || without('late grants')) return hold(s, j, e, false);
  const fence = s.rec?.fence ?? 0;
  return void set(s, j, {
    op: { t: 'raise', n: o.n, i: e.i, v: e.v, nv: newId(s), fence, f: Math.max(fence + 1, now(s)) },
  });
}

/** Notifies the tasks among the new holders. */
function served(s: State, j: number, { grants, rows, others }: Op): string | undefined {
  const isTask = rows.map(({ by }: Row) => specOf(by).wait === 'task');
  const [tasks, theirs] = [grants, rows].map((all) => all.filter((_: unknown, nth: number) => isTask[nth]));
  if (tasks.length === 0) return goOn(s, j, others);
  return void set(s, j, { op: { t: 'notify', n: '', grants: tasks, rows: theirs, others } });
}

/** Goes on when the waiter is in line and the mark is there. */
function arrived(s: State, j: number, r: Rec): string | undefined {
  const mine = entryOf(r, own(s, j));
  set(s, j, { op: null, st: rest(j) });
  return !(mine && mine.x !== -1) && fits(r, j) ? void handOff(s, j, 'wait', r) : undefined;
}

function marked(s: State, j: number, o: Op, won: boolean, before: number): string | undefined {
  if (j < 0) return finish(s, j, 'served');
  const r = s.rec ?? BARE;
  const mine = entryOf(r, o.n);
  const st = rest(j);
  if (without('row before mark') && !hasRow(s, j) && !o.back) return void set(s, j, { op: { t: 'row', n: o.n } });
  if (won && o.replace && !o.back)
    return void set(s, j, { op: { t: 'follow', n: o.n, dropped: o.drops ? before : 0 } });
  if (won || (o.back && r.mark !== null)) return arrived(s, j, r);
  if (mine?.s || (!mine && remembers(r, o.n))) return lose(s, j);
  if (mine?.k && mine.k === get(s, j).ticket && st === 'parked') return void set(s, j, { op: null, st }); // the call that granted the key notifies the task
  if (mine?.c) return void set(s, j, { op: claimOp(s, mine, j), st });
  if (mine && mine.x > 0) return void set(s, j, { op: answerOp(s, mine) });
  return void set(s, j, { op: markOp(s, o.n, { seen: mine?.v ?? 0, back: o.back }) });
}

/** A call in line polls the record. @returns what it does, and what that breaks */
export function poll(s: State, j: number): { what: string; bad?: string | undefined } | undefined {
  const n = own(s, j);
  const r = s.rec ?? BARE;
  const mine = entryOf(r, n);
  if (mine?.s || remembers(r, n)) return { what: 'sees the end of its grant', bad: lose(s, j) };
  if (mine?.c) set(s, j, { op: claimOp(s, mine, j) });
  else if (mine && mine.x > 0) set(s, j, { op: answerOp(s, mine) });
  if (mine && get(s, j).op) return { what: 'sees its grant' };
  const row = rowOf(s, get(s, j).ticket);
  if (!row || row.cancelled) {
    dropRow(s, get(s, j).ticket);
    endRun(s, j);
    if (row && r.mark !== null) handOff(s, j, 'release', r);
    return { what: row ? 'sees that it was withdrawn' : 'finds its row gone' };
  }
  if (mine?.x === 0) return undefined;
  if (r.mark === null) set(s, j, { op: markOp(s, n, { back: true, seen: mine?.v ?? 0 }) });
  else if (fits(r, j)) handOff(s, j, 'wait', r);
  else return undefined;
  return { what: r.mark === null ? 'puts the mark back' : 'sees room' };
}

/** A call leaves the line at its deadline. It hands off before it leaves. */
export function leave(s: State, j: number): void {
  const { ticket } = get(s, j);
  s.rows = s.rows.map((row) => (row.k === ticket ? { ...row, over: true } : row));
  const r = s.rec ?? BARE;
  const mine = entryOf(r, own(s, j));
  if (mine?.c) set(s, j, { op: claimOp(s, mine, j) });
  else if (r.mark !== null && fits(r, j)) handOff(s, j, 'left', r);
  else endRun(s, j);
}

/** An acquire goes on after a hand-off that it made. */
function goesOn(s: State, j: number, how: 'empty' | 'waits' | 'served', seen: Rec): string | undefined {
  if (how === 'empty') return void set(s, j, { empty: true, op: firstTry(s, j, seen) });
  const mine = entryOf(seen, own(s, j));
  if (mine?.c) return void set(s, j, { op: claimOp(s, mine, j) });
  return refuse(s, j);
}

const queryOp = (notified: number[] = []): Op => ({ t: 'query', n: '', notified });
/** Begins a hand-off with the record that a write or a read has just shown. */
export const handOff = (s: State, j: number, cont: Party['cont'], seen: Rec, end: End[] = []): void =>
  set(s, j, { op: queryOp(), cont, seen, end });

type Place = 'waits' | 'passed' | 'gone' | 'lost' | 'superseded' | { repeats: Entry };

/** What becomes of a row, judged by the record that the call has seen. */
function judgeRow(row: Row, r: Rec, ended: readonly End[]): Place {
  const isTask = specOf(row.by).wait === 'task';
  const mine = entryOf(r, row.n);
  const gone = ended.find(({ n }) => n === row.n);
  const isLost = gone ? isRemembered(gone) : mine?.k !== row.k && remembers(r, row.n) && !without('line: remembered');
  const isReplaced = isSuperseded(r, row.n) && !row.over && !mine;
  if (isReplaced && !row.cancelled) return 'superseded';
  if (isLost && !row.cancelled) return 'lost';
  if (row.over) return 'gone';
  if (row.cancelled) return 'passed';
  if (gone && mine?.k === row.k) return isTask ? (gone.how === 'expired' ? 'waits' : 'passed') : 'gone';
  if (gone || !mine) return 'waits';
  const isShared = isTask && mine.k !== row.k && !mine.c && !mine.s && mine.x > 0;
  return isShared && !without('line: second rows') ? { repeats: mine } : 'passed';
}

/** Whether the row is that of a task that still waits for a message. */
const isIts = (s: State, row: Row): boolean => get(s, row.by).ticket === row.k && get(s, row.by).st !== 'gone';
const takes = (s: State, row: Row): boolean => isIts(s, row) && get(s, row.by).st === 'parked' && !get(s, row.by).op;

/** Reads the rows, judges them by the record that the call saw before, and composes the next write. */
function query(s: State, j: number): string | undefined {
  const { seen, end, op } = get(s, j);
  const r = seen ?? BARE;
  const third = isThird(r);
  if (third && r.lx !== -1) return finish(s, j, 'waits');
  const over = third ? [] : expiredIn(r).filter((e) => !end.some(({ n }) => n === e.n));
  const ending: End[] = [...end, ...over.map(({ n, i, v }): End => ({ n, i, v, how: 'expired' }))];
  let used = (r.used ?? 0) - weightIn(r, ending);
  const grants: Entry[] = [];
  const rows: Row[] = [];
  let [room, others] = [ALL, false];
  let isFirstOver = r.moved !== undefined && !rowOf(s, r.moved);
  if (isFirstOver && without('moved: passed over')) return finish(s, j, 'waits');
  for (const row of inOrder(s.rows, r)) {
    const place = judgeRow(row, r, ending);
    const wrong = place === 'superseded' ? notifyRow(s, row) : undefined;
    if (wrong) return wrong;
    if (place === 'gone' || place === 'lost') dropRow(s, row.k);
    if (place === 'lost' && takes(s, row)) endRun(s, row.by);
    if (place === 'lost' && !hasEnded(s, row.n) && !entryOf(r, row.n)?.s && !end.some(isRemembered))
      return `lost: ${row.n} receives the end of its grant, and no call ended it`;
    if (typeof place === 'object' && !op?.notified.includes(row.k)) {
      const { n, i, v } = place.repeats;
      return void set(s, j, {
        op: { t: 'renew', n, i, v, nv: newId(s), x: ttlOf(row.by), row, notified: [...(op?.notified ?? []), row.k] },
      });
    }
    const isFirst = row.k === r.moved;
    if (isFirst && (place === 'gone' || place === 'lost' || row.cancelled)) isFirstOver = true;
    if (place !== 'waits' || grants.some(({ n }) => n === row.n)) continue;
    const isCall = specOf(row.by).wait === 'call';
    const w = weightOfParty(row.by);
    const most = roomIn(r, row.by);
    if (used > most && without('line: in order')) continue;
    if (used > most || grants.length === BATCH) {
      others = true;
      break;
    }
    room = Math.min(room, most - weightOf(grants));
    const f = Math.max((r.fence ?? 0) + 1, now(s)) + grants.length;
    const asked = { n: row.n, i: newId(s), v: newId(s), w, x: isCall ? 1 : ttlOf(row.by) };
    grants.push(entry(asked, f, { k: row.k, c: isCall, nf: r.fence === null }));
    rows.push(row);
    used += w;
  }
  const isServed = grants.some(({ k }) => k === r.moved) && !without('moved: served once');
  const unmoves = r.moved !== undefined && (isServed || isFirstOver || !others);
  const base = { n: '', others, m: r.mark, ...(game.mix.moves && { unmoves, moved: r.moved, movedAt: r.movedAt }) };
  if (grants.length > 0) {
    const terms = {
      fence: r.fence,
      used: r.used !== null,
      third: third ? r.lv : null,
      back: newId(s),
      last: r.h?.i === 0 && r.h.n,
    };
    return void set(s, j, {
      op: {
        t: 'grant',
        ...base,
        ...terms,
        ...capTerms(
          r,
          rows.map(({ by }) => by),
        ),
        grants,
        rows,
        ended: ending,
        freed: weightIn(r, ending),
        room,
      },
    });
  }
  const ended = others ? ending : end;
  if (ended.length === 0 && (others || r.mark === null)) return finish(s, j, others ? 'waits' : 'empty');
  return void set(s, j, { op: { t: 'end', ...base, clears: !others, ended, freed: weightIn(r, ended) } });
}

const weightIn = (r: Rec, ended: readonly End[]) => weightOf(ended.map(({ n }) => entryOf(r, n) ?? { w: 0 }));

/** Ends a hand-off, and lets its call go on. */
function finish(s: State, j: number, how: 'empty' | 'waits' | 'served'): string | undefined {
  const { cont, seen, next } = get(s, j);
  set(s, j, { op: next, cont: next ? 'outside' : '', seen: null, end: [], next: null });
  if (next || cont === 'wait' || cont === 'outside') return undefined;
  if (cont === 'acquire') return goesOn(s, j, how, seen ?? BARE);
  if (cont === 'left' && entryOf(seen ?? BARE, own(s, j))?.c) return goesOn(s, j, 'served', seen ?? BARE);
  return j < 0 ? undefined : void endRun(s, j);
}

const nextIn = (s: State, r: Rec) =>
  inOrder(s.rows, r).find((row) => !row.over && !row.cancelled && !entryOf(r, row.n));

/** Goes on after a grant and the messages about it. */
function goOn(s: State, j: number, others: boolean): string | undefined {
  const { end, seen } = get(s, j);
  const r = seen ?? BARE;
  const next = nextIn(s, r);
  const queries = end.length > 0 || (others && next && (r.used ?? 0) <= roomIn(r, next.by));
  return queries ? void set(s, j, { op: queryOp() }) : finish(s, j, 'served');
}

/** A hand-off that lost begins again with the new record. A grant that did not reach its party stays if another call has answered it since. */
function readAgain(s: State, j: number, r: Rec): string | undefined {
  const end = get(s, j).end.flatMap((one) => {
    const e = holders(r).find(({ i }) => i === one.i);
    return e && (isRemembered(one) || e.v === one.v) ? [{ ...one, v: e.v }] : [];
  });
  set(s, j, { seen: r, end });
  const next = nextIn(s, r);
  const queries = end.length > 0 || (next ? fits(r, next.by) : r.mark !== null);
  return queries ? void set(s, j, { op: queryOp() }) : finish(s, j, 'waits');
}

/** Notifies a task of its grant. `late`: the call that sends the message has not granted the key. */
export function notify(s: State, j: number, how: 'taken' | 'no answer' | 'without effect'): string | undefined {
  const o = get(s, j).op as Op;
  const [[e, ...grants], [row, ...rows]] = [o.grants as [Entry, ...Entry[]], o.rows as [Row, ...Row[]]];
  const goes = (): string | undefined => {
    if (grants.length > 0) return void set(s, j, { op: { ...o, grants, rows } });
    return o.notified ? void set(s, j, { op: queryOp(o.notified) }) : goOn(s, j, o.others);
  };
  if (e.x < 1) {
    s.odd = true; // the grant is short of its ttl, so the schedule renews it
    return goes();
  }
  if (e.nf && !without('late grants')) {
    const fence = get(s, j).seen?.fence ?? 0;
    const onward = { ...o, grants: [{ ...e, nf: false, low: false }, ...grants] };
    return void set(s, j, {
      op: { t: 'raise', n: e.n, i: e.i, v: e.v, nv: newId(s), fence, f: Math.max(fence + 1, now(s)), onward },
    });
  }
  if (how === 'without effect' || (isIts(s, row) && !takes(s, row))) {
    s.odd = true; // the notice is left to the schedule
    return goes();
  }
  if (!isIts(s, row)) {
    dropRow(s, row.k);
    const end: End = { n: e.n, i: e.i, v: e.v, how: 'neverNotified' };
    if (!o.late || without('repair: gone proves nothing')) set(s, j, { end: [...get(s, j).end, end] });
    // A call that has not granted the key does not know whether the task was notified before.
    else if (e.x === FAR && e.k === row.k) return void set(s, j, { op: { t: 'note', n: e.n, i: e.i, v: e.v } });
    return goes();
  }
  const onRecord = s.rec && entryOf(s.rec, e.n);
  const stands = onRecord?.i === e.i;
  const x = stands || !hasEnded(s, e.n) ? e.x : -1; // an operator has broken it, at the risk that its task begins
  const bad = hold(s, row.by, { ...e, x, low: stands && onRecord.low }, false);
  if (how === 'no answer') {
    s.rows = [...s.rows, row].toSorted((one, other) => other.k - one.k);
    s.odd = true;
  }
  return bad ?? goes();
}

/** Sends LeaseLost to the task of a broken grant that perhaps was never notified. If the task takes the message, the grant ends at once. */
function notifyLost(s: State, j: number): string | undefined {
  const { row, e } = get(s, j).op as Op as unknown as { row: Row; e: Entry };
  const took = takes(s, row);
  dropRow(s, row.k);
  if (took) endRun(s, row.by);
  if (!took && !without('ending: only if it took the message')) return finish(s, j, 'served');
  return void set(s, j, { op: { t: 'release', n: e.n, i: e.i, v: e.v, how: 'broken', waits: true } });
}
