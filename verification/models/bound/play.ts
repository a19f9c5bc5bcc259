import { readOptions } from '../../../local/options.ts';
import { OPTIONS } from '../engine/command.ts';
import { explore } from './explore.ts';
import { MUTANTS, type Mutant } from './rules.ts';
import { FAULTS, type Fault } from './types.ts';

interface Mix {
  faults: readonly Fault[];
  skews: readonly number[];
  promptly?: boolean;
}

const PAIRS: Fault[][] = [
  ['event', 'late'],
  ['stale', 'twice'],
  ['answer', 'stale'],
  ['event', 'throttle'],
  ['late', 'twice'],
];
const MIXES: Mix[] = [
  ...[[], ...FAULTS.map((fault) => [fault]), ...PAIRS].map((faults) => ({ faults, skews: [0] })),
  ...[[], ['stale' as const]].map((faults) => ({ faults, skews: [-1, 1] })),
  // A status that lags after a redrive at once is the hazard that no rule covers (docs/protocols/executions.md#hazards).
  ...[[], ['twice' as const]].map((faults) => ({ faults, skews: [-1, 1], promptly: true })),
];

const nameOf = ({ faults, skews, promptly }: Mix) =>
  `${faults.join(' and ') || 'no fault'}${skews.length > 1 ? ', clocks apart' : ''}${promptly ? ', redriven at once' : ''}`;

/** Plays the model of bound leases as the options of the command line ask. @returns whether all of it holds */
export function playBound(args: string[]): boolean {
  const { only, seconds, mutants, tell } = readOptions(OPTIONS, args).values;
  // A mix takes a fifth of the time of a small scenario, because there are fourteen mixes.
  const mostMs = (Number(seconds) * 1000) / 5;
  if (mutants) return playMutants(mostMs, { only, tell });
  return MIXES.filter((mix) => nameOf(mix).includes(only))
    .map((mix) => {
      const { states, complete, broken } = explore(mix.faults, mix, mostMs);
      const held = `${states} states, ${complete ? 'complete' : 'cut by time'}`;
      console.log(`${broken ? 'BROKEN' : 'holds'}: bound, ${nameOf(mix)}: ${broken?.rule ?? held}`);
      if (broken && tell) console.log(broken.path.join('\n'));
      return broken === undefined;
    })
    .every(Boolean);
}

function playMutants(mostMs: number, { only, tell }: { only: string; tell: boolean }): boolean {
  const names = (Object.keys(MUTANTS) as Mutant[]).filter((name) => name.includes(only));
  return names
    .map((mutant) => {
      for (const mix of MIXES) {
        const { broken } = explore(mix.faults, { ...mix, mutant }, mostMs);
        if (!broken) continue;
        console.log(`caught: bound, ${MUTANTS[mutant]} (${nameOf(mix)}: ${broken.rule})`);
        if (tell) console.log(broken.path.join('\n'));
        return true;
      }
      console.log(`MISSED: bound, ${MUTANTS[mutant]}`);
      return false;
    })
    .every(Boolean);
}
