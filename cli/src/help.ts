import { optionsOf } from './arguments.ts';
import type { Verb } from './verb.ts';

type Verbs = Record<string, Verb>;

const columns = (lines: [left: string, right: string][]): string => {
  const leftWidth = Math.max(...lines.map(([left]) => left.length));
  return lines.map(([left, right]) => `  ${left.padEnd(leftWidth)}  ${right}`).join('\n');
};

/** The text of `holdfast --help`. */
export const overview = (verbs: Verbs): string => `holdfast: run jobs under a lease, and see who holds what.

Usage: holdfast VERB ...

${columns(Object.entries(verbs).map(([name, { summary }]) => [name, summary]))}

holdfast help VERB shows the options of a verb, and an example. holdfast --version shows the version.`;

const DURATION = 'A DURATION is a number of seconds, or has a unit: 90, 60s, 15m, 1h, 2d.';

/** The text of `holdfast VERB --help`. */
export function helpOf(name: string, verb: Verb): string {
  const options = Object.entries(optionsOf(verb)).map(([option, { value, short, help, choices }]): [string, string] => [
    `${short ? `-${short}, ` : '    '}--${option}${value ? ` ${value}` : ''}`,
    choices ? `${help} (one of: ${choices.join(', ')})` : help,
  ]);
  return [
    `Usage: holdfast ${name} [options]${verb.usage && ` ${verb.usage}`}`,
    `${verb.summary.charAt(0).toUpperCase()}${verb.summary.slice(1)}.`,
    columns(options),
    ...(options.some(([option]) => option.endsWith(' DURATION')) ? [DURATION] : []),
    ...(verb.notes ? [verb.notes] : []),
    `Example:\n  ${verb.example}`,
  ].join('\n\n');
}
