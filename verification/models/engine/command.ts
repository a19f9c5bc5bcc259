import { readOptions } from '../../../local/options.ts';
import { exhaust, type Game, type Walked, walk } from './search.ts';
import type { Chooser, Scenario } from './world.ts';

/** A rule that can be switched off. */
export interface Mutant {
  what: string;
  /** Where it shows soonest; everywhere, if neither these nor small scenarios are named. */
  mixes?: string[];
  /** Small scenarios that show it, where walks seldom do. */
  small?: string[];
  /** Why no history shows it. */
  survives?: string;
}

/** A model, as its command plays it. */
export interface Model {
  name: string;
  game: Game;
  /** Gone through completely. */
  small: Record<string, () => Scenario>;
  /** Gone through by chance. */
  mixes: Record<string, (chooser: Chooser) => Scenario>;
  mutants: Record<string, Mutant>;
}

export const HELP = `npm run verify -- models [bound|keys|leases|once|permits]: checks the models of docs/protocols by seeded walks, and small scenarios and once completely.
Without a name it checks all, each in a process of its own.

  --walks N     walks of each mix (200)
  --first N     seed of the first walk (1)
  --seconds N   for each small scenario (60)
  --mutants     switches one rule off after the other instead, and fails where the walks do not notice
  --only TEXT   the mixes, scenarios or rules alone whose name has it
  --tell        tells each history that breaks in full`;

/** The options of every model. */
export const OPTIONS = {
  walks: { type: 'string', default: '200' },
  first: { type: 'string', default: '1' },
  seconds: { type: 'string', default: '60' },
  mutants: { type: 'boolean', default: false },
  only: { type: 'string', default: '' },
  tell: { type: 'boolean', default: false },
} as const;

interface Options {
  walks: number;
  first: number;
  seconds: number;
  only: string;
  tell: boolean;
}

/** Plays a model as the options of the command line ask. @returns whether all of it holds */
export function play(model: Model, args: string[]): boolean {
  const { values } = readOptions(OPTIONS, args);
  const { only, tell } = values;
  const options = {
    walks: Number(values.walks),
    first: Number(values.first),
    seconds: Number(values.seconds),
    only,
    tell,
  };
  if (values.mutants) return mutants(model, options);
  const small = smallScenarios(model, options);
  const large = mixes(model, options);
  return small && large;
}

function report(name: string, { broken, world }: Walked, held: string, tell: boolean): boolean {
  console.log(broken ? `BROKEN: ${name}: ${broken}` : `holds: ${name}: ${held}`);
  if (broken && tell) console.log(world?.log.join('\n'));
  return broken === undefined;
}

const chosen = <T>(all: Record<string, T>, only: string): [string, T][] =>
  Object.entries(all).filter(([name]) => name.includes(only));

function smallScenarios({ name: model, small, game }: Model, { seconds, only, tell }: Options): boolean {
  const outcomes = chosen(small, only).map(([name, make]) => {
    const result = exhaust(make, seconds, game);
    const { states, histories, complete } = result;
    const held = `${states} states, ${histories} ends, ${complete ? 'complete' : 'cut by time'}`;
    return report(`${model}, ${name}`, result, held, tell);
  });
  return outcomes.every(Boolean);
}

function mixes({ name: model, mixes: all, game }: Model, { walks, first, only, tell }: Options): boolean {
  const outcomes = chosen(all, only).map(([name, make]) => {
    for (let seed = first; seed < first + walks; seed++) {
      const result = walk(make, seed, game);
      if (result.broken) return report(`${model}, ${name}, seed ${seed}`, result, '', tell);
    }
    return report(`${model}, ${name}`, {}, `${walks} walks`, tell);
  });
  return outcomes.every(Boolean);
}

function mutants(model: Model, { walks, first, seconds, only, tell }: Options): boolean {
  const outcomes = chosen(model.mutants, only).map(([bug, { what, survives, ...where }]) => {
    const found = brokenBySmall(model, bug, where.small, seconds) ?? brokenByWalk(model, bug, where, { first, walks });
    if (found) {
      console.log(`caught: ${model.name}, ${what} (${found.where}: ${found.broken})`);
      if (tell) console.log(found.world?.log.join('\n'));
    } else
      console.log(`${survives ? 'not shown' : 'MISSED'}: ${model.name}, ${what}${survives ? `: ${survives}` : ''}`);
    return found !== undefined || survives !== undefined;
  });
  return outcomes.every(Boolean);
}

type Found = Walked & { where: string };

const made = <T>(all: Record<string, T>, name: string): T => {
  const one = all[name];
  if (!one) throw new Error(`nothing is called ${name}`);
  return one;
};

function brokenBySmall({ small, game }: Model, bug: string, names: string[] = [], seconds: number): Found | undefined {
  for (const name of names) {
    const make = made(small, name);
    const result = exhaust(() => ({ ...make(), bugs: { [bug]: true } }), seconds, game);
    if (result.broken) return { ...result, where: name };
  }
  return undefined;
}

function brokenByWalk(
  { mixes, game }: Model,
  bug: string,
  { mixes: named, small }: Pick<Mutant, 'mixes' | 'small'>,
  { first, walks }: Pick<Options, 'first' | 'walks'>,
): Found | undefined {
  const names = named ?? (small ? [] : Object.keys(mixes));
  for (let seed = first; seed < first + walks; seed++)
    for (const name of names) {
      const make = made(mixes, name);
      const result = walk((chooser) => ({ ...make(chooser), bugs: { [bug]: true } }), seed, game);
      if (result.broken) return { ...result, where: `${name}, seed ${seed}` };
    }
  return undefined;
}
