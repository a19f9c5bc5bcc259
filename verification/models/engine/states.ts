import { readOptions } from '../../../local/options.ts';
import { OPTIONS } from './command.ts';

/** A state that follows, or what must not happen. */
export type Move<State> = { what: string } & ({ state: State } | { broken: string });

/** A protocol as states and moves, small enough to go through all states. */
export interface Protocol<State> {
  first: State;
  /** States that no rule tells apart have the same name. */
  nameOf(state: State): string;
  /** What is wrong in a state, if anything is. */
  broken(state: State): string | undefined;
  moves(state: State): Iterable<Move<State>>;
}

/** A model, as its command plays it. A mix is how much may go wrong, by its name. */
interface Model<Mix, Rule extends string> {
  name: string;
  mixes: Record<string, Mix>;
  /** The rules that can be switched off, and what then happens. */
  mutants: Record<Rule, string>;
  /** The mixes that show the mutants; all, if left out. */
  forMutants?: string[];
  /** @param off the rule that is switched off */
  play(mix: Mix, seconds: number, off?: Rule): Explored;
}

interface Explored {
  states: number;
  complete: boolean;
  broken?: string;
  /** The moves that lead there. */
  path: string[];
}

/** Goes through all states, or until the time is over. */
export function explore<State>(protocol: Protocol<State>, seconds = Number.POSITIVE_INFINITY): Explored {
  const first = { state: protocol.first, name: protocol.nameOf(protocol.first) };
  const open = [first];
  const seen = new Map<string, { before?: string; what: string }>([[first.name, { what: 'begin' }]]);
  const until = performance.now() + seconds * 1000;
  const found = (name: string, rule: string, path: string[]): Explored => {
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

/** Plays a model as the options of the command line ask. @returns whether all of it holds */
export function playStates<Mix, Rule extends string>(model: Model<Mix, Rule>, args: string[]): boolean {
  const { only, seconds, mutants, tell } = readOptions(OPTIONS, args).values;
  const report = (verdict: string, { path, broken }: Explored) => {
    console.log(verdict);
    if (broken !== undefined && tell) console.log(path.join('\n'));
  };
  const { name: of, mixes, forMutants = Object.keys(mixes) } = model;
  const chosen = (names: string[]) => names.filter((name) => name.includes(only));
  const play = (mix: string, off?: Rule) => model.play(mixes[mix] as Mix, Number(seconds), off);
  const holds = (mix: string) => {
    const explored = play(mix);
    const { states, complete, broken } = explored;
    const held = `${states} states, ${complete ? 'complete' : 'cut by time'}`;
    report(`${broken === undefined ? 'holds' : 'BROKEN'}: ${of}, ${mix}: ${broken ?? held}`, explored);
    return broken === undefined;
  };
  const isCaught = (rule: string) => {
    const what = `${of}, ${model.mutants[rule as Rule]}`;
    for (const mix of forMutants) {
      const explored = play(mix, rule as Rule);
      if (explored.broken === undefined) continue;
      report(`caught: ${what} (${mix}: ${explored.broken})`, explored);
      return true;
    }
    console.log(`MISSED: ${what}`);
    return false;
  };
  const outcomes = mutants ? chosen(Object.keys(model.mutants)).map(isCaught) : chosen(Object.keys(mixes)).map(holds);
  return outcomes.every(Boolean);
}
