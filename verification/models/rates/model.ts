import { type Mutant as Listed, playStates } from '../engine/states.ts';
import { type Mix, Run } from './play.ts';
import { MUTANTS, type Mutant } from './protocol.ts';

const MIXES: Record<string, Mix> = {
  'callers name the same rates': 'plain',
  'callers name different rates': 'differ',
  'callers settle': 'settle',
  'an operator caps': 'capped',
};
const [PLAIN = '', DIFFER = '', SETTLE = '', CAPPED = ''] = Object.keys(MIXES);
const SHOWN_BY: Partial<Record<Mutant, string>> = {
  ...{ slowerRate: DIFFER, noEntry: SETTLE, strictWindow: SETTLE },
  ...{ capIgnored: CAPPED, capNotCounted: CAPPED, capNumberStays: CAPPED, liftForgets: CAPPED },
  ...{ endNotAsked: CAPPED, endEarly: CAPPED },
};

const RUNS = 2000;

/** Plays random runs of rates as the options of the command line ask. @returns whether all of it holds */
export const playRates = (args: string[]): boolean =>
  playStates(
    {
      name: 'rates',
      mixes: MIXES,
      mutants: Object.fromEntries(
        Object.entries(MUTANTS).map(([name, what]): [string, Listed] => [
          name,
          { what, mixes: [SHOWN_BY[name as Mutant] ?? PLAIN] },
        ]),
      ),
      play: (mix, seconds, [mutant]: readonly Mutant[]) => random(mix, seconds, mutant),
    },
    args,
  );

function random(mix: Mix, seconds: number, mutant: Mutant | undefined) {
  const until = performance.now() + seconds * 1000;
  const unit = 'runs';
  for (let seed = 0; seed < RUNS; seed++) {
    if (performance.now() > until) return { states: seed, unit, complete: false, path: [] };
    const run = new Run(seed, mix, mutant);
    const broken = run.play();
    if (broken !== undefined) return { states: seed + 1, unit, complete: false, broken, path: run.path };
  }
  return { states: RUNS, unit, complete: true, path: [] };
}
