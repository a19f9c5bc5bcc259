import { readOptions } from '../../local/options.ts';
import { exhaust, type Walked, walk } from './explore.ts';
import { MIXES, MUTANTS, SMALL } from './mixes.ts';

const HELP = `node verification/queue-model/run.ts: checks a model of the queue (docs/protocols/queue.md) by seeded walks, and small scenarios completely.

  --walks N     walks of each mix (200)
  --first N     seed of the first walk (1)
  --seconds N   for each small scenario (60)
  --mutants     switches one rule off after the other instead, and fails where the walks do not notice
  --only TEXT   the mixes, scenarios or rules alone whose name has it
  --tell        tells each history that breaks in full`;

interface Options {
  walks: number;
  first: number;
  seconds: number;
  only: string;
  tell: boolean;
}

function main(): boolean {
  const { values } = readOptions({
    walks: { type: 'string', default: '200' },
    first: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '60' },
    mutants: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    tell: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const { only, tell } = values;
  const options = {
    walks: Number(values.walks),
    first: Number(values.first),
    seconds: Number(values.seconds),
    only,
    tell,
  };
  if (values.mutants) return mutants(options);
  const small = smallScenarios(options);
  const large = mixes(options);
  return small && large;
}

function report(name: string, { broken, world }: Walked, held: string, tell: boolean): boolean {
  console.log(broken ? `BROKEN: ${name}: ${broken}` : `holds: ${name}: ${held}`);
  if (broken && tell) console.log(world?.log.join('\n'));
  return broken === undefined;
}

const chosen = <T>(all: Record<string, T>, only: string): [string, T][] =>
  Object.entries(all).filter(([name]) => name.includes(only));

function smallScenarios({ seconds, only, tell }: Options): boolean {
  const outcomes = chosen(SMALL, only).map(([name, make]) => {
    const result = exhaust(make, seconds);
    const { states, histories, complete } = result;
    const held = `${states} states, ${histories} ends, ${complete ? 'complete' : 'cut by time'}`;
    return report(name, result, held, tell);
  });
  return outcomes.every(Boolean);
}

function mixes({ walks, first, only, tell }: Options): boolean {
  const outcomes = chosen(MIXES, only).map(([name, make]) => {
    for (let seed = first; seed < first + walks; seed++) {
      const result = walk(make, seed);
      if (result.broken) return report(`${name}, seed ${seed}`, result, '', tell);
    }
    return report(name, {}, `${walks} walks`, tell);
  });
  return outcomes.every(Boolean);
}

function mutants({ walks, first, only, tell }: Options): boolean {
  const outcomes = chosen(MUTANTS, only).map(([bug, { what, mixes: names = Object.keys(MIXES), survives }]) => {
    const found = firstBroken(bug, names, first, walks);
    if (found) {
      console.log(`caught: ${what} (${found.name}, seed ${found.seed}: ${found.broken})`);
      if (tell) console.log(found.world?.log.join('\n'));
    } else console.log(`${survives ? 'not shown' : 'MISSED'}: ${what}`);
    return found !== undefined || survives === true;
  });
  return outcomes.every(Boolean);
}

function firstBroken(bug: string, names: readonly string[], first: number, walks: number) {
  for (let seed = first; seed < first + walks; seed++)
    for (const name of names) {
      const make = MIXES[name];
      if (!make) throw new Error(`no mix is called ${name}`);
      const result = walk((chooser) => ({ ...make(chooser), bugs: { [bug]: true } }), seed);
      if (result.broken) return { ...result, name, seed };
    }
  return undefined;
}

process.exitCode = main() ? 0 : 1;
