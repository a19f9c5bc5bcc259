import { explore, mutantsOf, playStates } from '../engine/states.ts';
import { protocolOf } from './explore.ts';
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
  // No rule covers a status that lags when an execution is redriven at once (docs/protocols/executions.md#hazards).
  ...[[], ['twice' as const]].map((faults) => ({ faults, skews: [-1, 1], promptly: true })),
];

const nameOf = ({ faults, skews, promptly }: Mix) =>
  `${faults.join(' and ') || 'no fault'}${skews.length > 1 ? ', clocks apart' : ''}${promptly ? ', redriven at once' : ''}`;

/** Plays the model of bound leases as the options of the command line ask. @returns whether all of it holds */
export const playBound = (args: string[]): boolean =>
  playStates(
    {
      name: 'bound',
      mixes: Object.fromEntries(MIXES.map((mix) => [nameOf(mix), mix])),
      mutants: mutantsOf(MUTANTS),
      play: (mix, seconds, [mutant]: readonly Mutant[]) => explore(protocolOf(mix.faults, { ...mix, mutant }), seconds),
    },
    args,
  );
