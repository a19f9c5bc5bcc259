import { explore, mutantsOf, playStates } from '../engine/states.ts';
import { type Faults, OnceProtocol, type Rule } from './protocol.ts';

const MIXES: Faults[] = [
  { lost: 0, deaths: 0 },
  { lost: 1, deaths: 1 },
  { lost: 2, deaths: 1 },
  { lost: 3, deaths: 2 },
];
const nameOf = ({ lost, deaths }: Faults) => `${lost} messages lost or late, ${deaths} deaths`;

const MUTANTS: Record<Rule, string> = {
  fenceAtTheStore: 'a result is stored if the slot is the same, even if another worker holds the run',
  remembers: 'the run of the next slot forgets which slot was done',
  grantAtTheStore: 'a result is stored after the run was released',
  repeatById: 'a store that meets a done slot is answered "stored", even if another worker did it',
  orderOfSlots: 'a slot is refused only if it equals the last one that was done',
  waiterAsksForItsSlot: 'a waiter takes whatever result is on record',
  expiry: 'a dead worker is never replaced',
};

/** Plays the model of once as the options of the command line ask. @returns whether all of it holds */
export const playOnce = (args: string[]): boolean =>
  playStates(
    {
      name: 'once',
      mixes: Object.fromEntries(MIXES.map((faults) => [nameOf(faults), faults])),
      mutants: mutantsOf(MUTANTS),
      forMutants: [nameOf({ lost: 2, deaths: 1 })],
      play: (faults, seconds, [off]: readonly Rule[]) => explore(new OnceProtocol(faults, off), seconds),
    },
    args,
  );
