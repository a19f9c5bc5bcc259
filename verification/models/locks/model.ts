import { explore, playStates } from '../engine/states.ts';
import { firstTry, perform } from './calls.ts';
import { broken, forget } from './holds.ts';
import { MIXES, STARTS } from './mixes.ts';
import { moves } from './moves.ts';
import { MUTANTS } from './mutants.ts';
import { nameOf } from './name.ts';
import { game, get, IDLE, type Mix, NEVER, partyOf, type State, set } from './state.ts';

function beginning({ start, rows = [], ps, bud, caps, moves, asked = [] }: Mix): State {
  const rec = start === undefined ? null : (STARTS[start] ?? null);
  const s: State = {
    rec,
    rows: rows.map((n, nth) => ({ k: -11 - nth, n, by: partyOf(n), tok: -1, over: false, cancelled: false })),
    ps: ps.map(({ runs }, j) => ({ ...IDLE, left: runs, run: rows.some((n) => partyOf(n) === j) ? 0 : -1 })),
    ...{
      outside: IDLE,
      late: [],
      crate: null,
      top: rec?.fence ?? 1000,
      ended: rows.filter((n) => rec?.ring.includes(n)),
      leaving: [],
      withdrawn: [],
      joined: [],
      notified: [],
    },
    ...((caps || moves) && { operator: { caps: 0, moves: 0, number: 0, answeredCap: null, moved: null, last: 0 } }),
    ...{ wiped: false, odd: false, bud: { ...NEVER, ...bud }, clock: 1040, ids: -20 },
  };
  for (const j of asked) {
    set(s, j, { left: get(s, j).left - 1, run: 0 });
    set(s, j, { op: firstTry(s, j, null) });
    while (get(s, j).op) perform(s, j);
  }
  return s;
}

export const playLocks = (args: string[]): boolean =>
  playStates(
    {
      name: 'locks',
      mixes: MIXES,
      mutants: MUTANTS,
      play(mix, seconds, off = []) {
        Object.assign(game, { mix, off: new Set(off), ring: mix.ring ?? 2 });
        forget();
        const protocol = {
          first: beginning(mix),
          nameOf,
          broken,
          *moves(s: State) {
            for (const [what, state, bad] of moves(s))
              yield bad === undefined ? { what, state } : { what, broken: bad };
          },
        };
        return explore(protocol, seconds);
      },
    },
    args,
  );
