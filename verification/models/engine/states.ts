import { readOptions } from '../../../local/options.ts';

/** A move to the next state, or a move that breaks a promise. */
export type Move<State> = { what: string } & ({ state: State } | { broken: string });

/** A protocol as states and moves. It is so small that all states can be explored. */
export interface Protocol<State> {
  first: State;
  /** The name of a state. States that every rule treats alike have the same name. */
  nameOf(state: State): string | number;
  /** @returns what is wrong in a state, or undefined */
  broken(state: State): string | undefined;
  moves(state: State): Iterable<Move<State>>;
}

/** A model with some rules switched off, and what must go wrong then. */
export interface Mutant {
  what: string;
  /** The mixes that show it soonest. */
  mixes?: readonly string[];
  /** The rules that are off. Undefined if it is the rule of the mutant's own name. */
  off?: readonly string[];
  /** Why no mix shows it. If a mix does, the run fails, because the reason given here is wrong. */
  survives?: string;
}

/** A mutant for each rule, which switches off that rule, and which any mix may show. */
export const mutantsOf = (rules: Record<string, string>): Record<string, Mutant> =>
  Object.fromEntries(Object.entries(rules).map(([rule, what]) => [rule, { what }]));

/** A model for the command line. Each mix says how much may go wrong. */
interface Model<Mix, Rule extends string> {
  name: string;
  mixes: Record<string, Mix>;
  mutants: Record<string, Mutant>;
  /** The mixes for mutants that do not name any. Undefined for all. */
  forMutants?: readonly string[];
  /** @param off the rules that are switched off */
  play(mix: Mix, seconds: number, off: readonly Rule[]): Explored;
}

interface Explored {
  states: number;
  /** What `states` counts, if the model does not explore all states. */
  unit?: string;
  complete: boolean;
  broken?: string;
  /** The moves that lead to the broken promise. */
  path: string[];
}

export const HELP = `npm run verify -- models [bound|locks|once|places|rates]: explores every state of the models of docs/protocols. That of rates plays random runs.
Without a name it checks all, each in a process of its own.

  --seconds N   for each mix (600)
  --within N    seconds in all: mixes for which no time is left are not explored
  --seed N      which mixes come first (0: in their order)
  --mutants     switches one rule off after the other instead, and fails unless each is noticed, or is a second safeguard
  --only TEXT   only the mixes or rules whose name has TEXT
  --print       prints each history that breaks in full`;

const OPTIONS = {
  seconds: { type: 'string', default: '600' },
  within: { type: 'string', default: 'Infinity' },
  seed: { type: 'string', default: '0' },
  mutants: { type: 'boolean', default: false },
  only: { type: 'string', default: '' },
  print: { type: 'boolean', default: false },
} as const;

/** Explores all states, or as many as the time allows. */
export function explore<State>(protocol: Protocol<State>, seconds: number): Explored {
  type Name = string | number;
  const first = { state: protocol.first, name: protocol.nameOf(protocol.first) };
  const open = [first];
  const seen = new Map<Name, { before?: Name; what: string }>([[first.name, { what: 'begin' }]]);
  const until = performance.now() + seconds * 1000;
  const found = (name: Name, rule: string, path: string[]): Explored => {
    for (let step = seen.get(name); step; step = step.before === undefined ? undefined : seen.get(step.before))
      path.unshift(step.what);
    return { states: seen.size, complete: false, broken: rule, path };
  };
  for (let next = open.pop(); next; next = open.pop()) {
    const rule = protocol.broken(next.state);
    if (rule !== undefined) return found(next.name, rule, []);
    if (performance.now() > until) return { states: seen.size, complete: false, path: [] };
    for (const move of protocol.moves(next.state)) {
      if ('broken' in move) return found(next.name, move.broken, [move.what]);
      const name = protocol.nameOf(move.state);
      if (seen.has(name)) continue;
      seen.set(name, { before: next.name, what: move.what });
      open.push({ state: move.state, name });
    }
  }
  return { states: seen.size, complete: true, path: [] };
}

/** An order by the seed: the same one for the same seed, and another first one for each seed. */
function ordered(names: string[], seed: number): string[] {
  const rank = (name: string) => {
    let hash = seed;
    for (const letter of name) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x9e3779b1) ^ (hash >>> 15);
    return hash;
  };
  return seed === 0 ? names : names.toSorted((one, other) => rank(one) - rank(other));
}

/** Plays a model as the options of the command line ask. @returns whether all of it holds */
export function playStates<Mix, Rule extends string>(model: Model<Mix, Rule>, args: string[]): boolean {
  const { only, mutants, print, ...numbers } = readOptions(OPTIONS, args).values;
  const [seconds, seed] = [Number(numbers.seconds), Number(numbers.seed)];
  const endsAt = performance.now() + Number(numbers.within) * 1000;
  const left = () => Math.min(seconds, (endsAt - performance.now()) / 1000);
  const report = (verdict: string, { path, broken }: Explored) => {
    console.log(verdict);
    if (broken !== undefined && print) console.log(path.join('\n'));
  };
  const { name: of, mixes, forMutants = Object.keys(mixes) } = model;
  const chosen = (names: string[]) => ordered(names, seed).filter((name) => name.includes(only));
  const play = (mix: string, off: readonly string[] = []) => {
    if (!Object.hasOwn(mixes, mix)) throw new Error(`no mix is called ${mix}`);
    return model.play(mixes[mix] as Mix, left(), off as readonly Rule[]);
  };
  const sizeOf = ({ states, unit = 'states', complete }: Explored) =>
    `${states} ${unit}, ${complete ? 'complete' : 'cut by time'}`;
  const holds = (mix: string) => {
    if (left() <= 0) return true;
    const explored = play(mix);
    const { broken } = explored;
    report(`${broken === undefined ? 'holds' : 'BROKEN'}: ${of}, ${mix}: ${broken ?? sizeOf(explored)}`, explored);
    return broken === undefined;
  };
  const isAsExpected = (rule: string) => {
    const { what, mixes: shown = forMutants, off = [rule], survives } = model.mutants[rule] as Mutant;
    const sizes: string[] = [];
    for (const mix of shown) {
      const explored = play(mix, off);
      sizes.push(sizeOf(explored));
      if (explored.broken === undefined) continue;
      report(`${survives ? 'SHOWN' : 'caught'}: ${of}, ${what} (${mix}: ${explored.broken})`, explored);
      return survives === undefined;
    }
    console.log(
      `${survives ? 'not shown' : 'MISSED'}: ${of}, ${what} (${sizes.join('; ')})${survives ? `: ${survives}` : ''}`,
    );
    return survives !== undefined;
  };
  const outcomes = mutants
    ? chosen(Object.keys(model.mutants)).map(isAsExpected)
    : chosen(Object.keys(mixes)).map(holds);
  return outcomes.every(Boolean);
}
