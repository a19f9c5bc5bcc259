import { explore, playStates } from '../engine/states.ts';
import { broken, forget } from './holds.ts';
import { MIXES, STARTS } from './mixes.ts';
import { moves } from './moves.ts';
import { MUTANTS } from './mutants.ts';
import { nameOf } from './name.ts';
import { game, IDLE, type Mix, NEVER, partyOf, type State } from './state.ts';

function beginning({ start, rows = [], ps, bud }: Mix): State {
  const rec = start === undefined ? null : (STARTS[start] ?? null);
  return {
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
    },
    ...{ wiped: false, odd: false, bud: { ...NEVER, ...bud }, clock: 1040, ids: -20 },
  };
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
