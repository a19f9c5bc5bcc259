import { BARE, type Entry, entryOf, FAR, game, holders, type Op, type Rec, rowOf, type State, set } from './state.ts';

// An operator caps and moves, one command after the other. The rules say what must hold after each answer.

const OUTSIDE = -1;
type Act = (what: string, change: (s: State) => string | undefined) => void;

/** Sends the next command. Until its answer, either the old or the new cap may count. */
export function operates(s0: State, act: Act): void {
  const { operator, rec, ps } = s0;
  const { caps = [], moves = [] } = game.mix;
  if (!operator) return;
  if (operator.caps < caps.length)
    act(`an operator caps: ${JSON.stringify(caps[operator.caps])}`, (s) => {
      s.operator = { ...operator, caps: operator.caps + 1 };
      return void capAgain(s);
    });
  const j = moves[operator.moves];
  const k = j === undefined ? undefined : ps[j]?.ticket;
  const row = k === undefined ? undefined : rowOf(s0, k);
  if (j === undefined || k === undefined || !row || row.over || row.cancelled || !rec) return;
  act(`an operator moves ${row.n}`, (s) => {
    s.operator = { ...operator, moves: operator.moves + 1, number: operator.number + 1 };
    set(s, OUTSIDE, { op: { t: 'move', n: '', k, number: operator.number + 1 }, cont: 'outside' });
    return undefined;
  });
}

/** Sends the last cap with a new number, which is above all before. */
export function capAgain(s: State): void {
  const { operator } = s;
  const command = game.mix.caps?.[(operator?.caps ?? 0) - 1];
  if (!operator || command === undefined) return;
  const number = operator.number + 1;
  const m = typeof command === 'object' ? (command?.until ?? null) : command;
  s.operator = { ...operator, number, answeredCap: null };
  set(s, OUTSIDE, { op: { t: 'cap', n: '', m, number, x: typeof command === 'object' ? 1 : FAR }, cont: 'outside' });
}

/** How a grant breaks the commands that landed before it. Undefined if it obeys them. */
export function obeys({ operator, rec, rows, ps }: State, o: Op, before: Rec, e: Entry): string | undefined {
  if (!operator) return undefined;
  const { cap } = before;
  const after = rec ?? BARE;
  const isCapped = cap && cap.x !== -1 && (after.used ?? 0) > cap.m;
  if (isCapped && (cap.m === 0 || holders(after).length > 1)) return `cap: ${e.n} is granted above the cap of ${cap.m}`;
  const { moved } = operator;
  const row = moved && rows.find(({ k }) => k === moved.k);
  // A hand-off that read the record before the move may still serve another waiter.
  if (
    !row ||
    row.over ||
    row.cancelled ||
    entryOf(before, row.n) ||
    before.movedAt !== moved.number ||
    (o.t === 'grant' && o.movedAt !== moved.number)
  )
    return undefined;
  const p = ps[row.by];
  const [grant] = o.grants ?? [o.grant ?? e];
  if (grant.k !== moved.k && p?.ticket === row.k && p.st !== 'gone') return `moved: ${e.n} passes ${row.n}`;
  return o.moved === moved.k && after.moved === moved.k
    ? `moved: the move of ${row.n} stays after its grant`
    : undefined;
}

/** How the record differs from what the last answer said. */
export const disobeyed = ({ operator, rec, wiped }: State): string | undefined => {
  if (!operator || wiped) return undefined;
  const { answeredCap, last } = operator;
  if (answeredCap && (rec?.cap?.m ?? null) !== answeredCap.m) return `cap: the operator was answered ${answeredCap.m}`;
  return rec?.moved !== undefined && (rec.movedAt ?? 0) < last ? 'moved: an earlier command counts' : undefined;
};
