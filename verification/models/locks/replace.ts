import { landed } from './landed.ts';
import { isSuperseded, replaces } from './latest.ts';
import {
  copy,
  dropRow,
  endRun,
  get,
  newId,
  own,
  type Row,
  remembers,
  rowOf,
  type State,
  specOf,
  without,
} from './state.ts';

// How calls treat requests that replace older ones (docs/protocols/replace.md).

function notifySuperseded(s: State, n: string): string | undefined {
  s.notified = [...new Set([...s.notified, n])];
  return s.joined.indexOf(n) < s.joined.length - 1
    ? undefined
    : `superseded: ${n} is superseded, and no request is newer`;
}

/** Notifies the request of a row that it is superseded: by a message to a task, or a flag on the row of a call. */
export function notifyRow(s: State, row: Row): string | undefined {
  const p = get(s, row.by);
  if (specOf(row.by).wait === 'call')
    s.rows = s.rows.map((one) => (one.k === row.k ? { ...one, cancelled: true } : one));
  else {
    dropRow(s, row.k);
    if (p.ticket === row.k && p.st === 'parked' && !p.op) endRun(s, row.by);
  }
  return notifySuperseded(s, row.n);
}

/** A call sees that its request was replaced. */
export function superseded(s: State, j: number): string | undefined {
  const n = own(s, j);
  dropRow(s, get(s, j).ticket);
  endRun(s, j);
  return notifySuperseded(s, n);
}

/** The newcomer notifies the request that it has replaced, and asks the holder to stop. */
export function follow(s: State, dropped: number): string | undefined {
  const row = dropped ? rowOf(s, dropped) : undefined;
  return (row && notifyRow(s, row)) ?? ask(s);
}

/** Asks the holder to stop, if it and the latest request said `running`. */
export function ask(s: State): string | undefined {
  const { latest, h } = s.rec ?? {};
  if (!s.rec || !latest || !h?.i || h.n === latest.n || h.s || h.c || h.x === -1) return undefined;
  const agrees = replaces(h.n) === 'running' || without('ask: who said running');
  if (replaces(latest.n) !== 'running' || !agrees || remembers(s.rec, latest.n)) return undefined;
  const { bad } = landed(s, { t: 'markEnding', n: h.n, i: h.i, nv: newId(s) });
  return replaces(h.n) === 'running' ? bad : `asked: ${h.n} did not say running, and is asked to stop`;
}

/** The schedule notifies a superseded request if the newcomer has exited. */
export function repairReplaced(s0: State): [string, State, string | undefined] | undefined {
  const row = s0.rows.find(({ n, cancelled, over }) => s0.rec && isSuperseded(s0.rec, n) && !cancelled && !over);
  if (!row) return undefined;
  const s = copy(s0);
  return ['the schedule notifies of a newer request', s, notifyRow(s, row)];
}
