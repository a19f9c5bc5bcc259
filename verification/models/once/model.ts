import { readOptions } from '../../../local/options.ts';
import { type Faults, normal, Protocol, type Rule, type State, start } from './protocol.ts';

const MIXES: Faults[] = [
  { lost: 0, deaths: 0 },
  { lost: 1, deaths: 1 },
  { lost: 2, deaths: 1 },
  { lost: 3, deaths: 2 },
];

/** Rules that can be switched off, and what then happens. */
const MUTANTS: Record<Rule, string> = {
  fenceAtTheStore: 'a result is stored if the slot is the same, whoever holds the run',
  remembers: 'the run of the next slot forgets which slot was done',
  grantAtTheStore: 'a result is stored after the run was released',
  repeatById: 'a store that meets a done slot is answered "stored", whoever did it',
  orderOfSlots: 'a slot is refused only if it equals the last one that was done',
  waiterAsksForItsSlot: 'a waiter takes whatever result is on record',
  expiry: 'a dead worker is never replaced',
};

/** Where the mutants show. */
const FOR_MUTANTS: Faults = { lost: 2, deaths: 1 };

interface Explored {
  states: number;
  broken?: string;
  /** The moves that lead there. */
  way: string[];
}

/** Goes through every state. */
function explore(faults: Faults, off?: Rule): Explored {
  const protocol = new Protocol(off);
  const first = start(faults);
  const seen = new Map<string, { from?: string; what: string }>([[JSON.stringify(first), { what: 'the start' }]]);
  const open: State[] = [first];
  const end = (at: string, broken: string, last: string[]): Explored => {
    const way = [...last];
    for (let step = seen.get(at); step?.from !== undefined; step = seen.get(step.from)) way.unshift(step.what);
    return { states: seen.size, broken, way };
  };
  for (let state = open.pop(); state; state = open.pop()) {
    const name = JSON.stringify(state);
    const fault = protocol.fault(state);
    if (fault !== undefined) return end(name, fault, []);
    for (const move of protocol.moves(state)) {
      if ('broken' in move) return end(name, move.broken, [move.what]);
      const next = normal(move.next);
      const nextName = JSON.stringify(next);
      if (seen.has(nextName)) continue;
      seen.set(nextName, { from: name, what: move.what });
      open.push(next);
    }
  }
  return { states: seen.size, way: [] };
}

const OPTIONS = {
  mutants: { type: 'boolean', default: false },
  only: { type: 'string', default: '' },
  tell: { type: 'boolean', default: false },
  // The models of walks have these. Here every state is explored.
  walks: { type: 'string', default: '' },
  first: { type: 'string', default: '' },
  seconds: { type: 'string', default: '' },
} as const;

/** Explores the model as the options of the command line ask. @returns whether all of it holds */
export function playOnce(args: string[]): boolean {
  const { values } = readOptions(OPTIONS, args);
  const tell = ({ way }: Explored) => values.tell && console.log(way.join('\n'));
  if (values.mutants) {
    const chosen = (Object.keys(MUTANTS) as Rule[]).filter((rule) => rule.includes(values.only));
    const outcomes = chosen.map((rule) => {
      const found = explore(FOR_MUTANTS, rule);
      console.log(
        found.broken
          ? `caught: once, ${MUTANTS[rule]} (${found.broken}, after ${found.states} states)`
          : `MISSED: once, ${MUTANTS[rule]}`,
      );
      tell(found);
      return found.broken !== undefined;
    });
    return outcomes.every(Boolean);
  }
  const outcomes = MIXES.map((faults) => {
    const found = explore(faults);
    const name = `once, ${faults.lost} messages lost or late, ${faults.deaths} deaths`;
    console.log(found.broken ? `BROKEN: ${name}: ${found.broken}` : `holds: ${name}: ${found.states} states, complete`);
    tell(found);
    return found.broken === undefined;
  });
  return outcomes.every(Boolean);
}
