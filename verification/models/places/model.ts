import { explore, mutantsOf, playStates } from '../engine/states.ts';
import { beginning, broken, forget, game, type Mix, moves, nameOf } from './protocol.ts';

const MIXES: Record<string, Mix> = {
  'a sleeper and a newcomer': { who: 'HSN', faults: 1 },
  'a caller that goes to sleep': { who: 'HAN', faults: 1 },
  'a sleeper and a caller': { who: 'HSC', whole: true },
  'two sleepers': { who: 'HSS', whole: true },
  'two sleepers and a newcomer': { who: 'HSSN', whole: true },
  'a return twice': { who: 'HSD', faults: 1 },
  'a return twice and a newcomer': { who: 'HSDN', whole: true },
  'a removed record': { who: 'HSN', wipes: 1 },
  cancellations: { who: 'HSNO', whole: true },
  'cancellations of an awake sleeper': { who: 'HAO', faults: 1 },
  'cancellations of a return twice': { who: 'HSDO', whole: true },
  'a task': { who: 'HST' },
  'a moved sleeper': { who: 'HSM', faults: 1 },
  'a moved sleeper and a caller': { who: 'HSCM', whole: true },
  'a moved sleeper and a task': { who: 'HSTM', whole: true },
  'a moved sleeper is cancelled': { who: 'HSMO', whole: true },
};

const MUTANTS: Record<string, string> = {
  'mark with places': 'a hand-off removes the mark whatever places there are',
  margin: 'a hand-off takes a place for expired at its keep_until, without the margin',
  'mark back': 'a return does not put back the mark if the record has none',
  'numbers stay': 'the arrivals are counted from 0 when no caller is awake',
  'place first': 'a call that goes to sleep deletes its row before it puts the place',
  'rows alone': 'a hand-off serves a place as if it were awake',
  'ten seconds': 'a plain acquire leaves the key even to sleepers that are late',
  'read again': 'a hand-off that met only sleepers does not read again',
  'on condition': 'a call with a grant deletes a withdrawn place',
  'row first': 'a return writes its place before its row',
  'moved first': 'a hand-off ignores who was moved',
  'moved: ten seconds': 'a hand-off waits for a moved sleeper until its place expires',
  'place, then row': 'a cancel flags the row before the place',
};

export const playPlaces = (args: string[]): boolean =>
  playStates(
    {
      name: 'places',
      mixes: MIXES,
      mutants: mutantsOf(MUTANTS),
      forMutants: ['a task', 'cancellations of an awake sleeper', 'a moved sleeper and a task'],
      play(mix, seconds, off = []) {
        Object.assign(game, { off: new Set(off), whole: mix.whole ?? false });
        forget();
        return explore({ first: beginning(mix), nameOf, broken, moves }, seconds);
      },
    },
    args,
  );
