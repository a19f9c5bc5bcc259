import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { parameterValues } from '../infrastructure/evaluate.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

/**
 * Refuses a change by which callers of a running stack would meet other tables, another bucket or another way to sign.
 * After such a change a lease could be granted twice.
 * @param allowed the parameters that the operator allows to change
 * @param own by parameter the tables and the bucket that the stack makes where the parameter is empty
 * @throws Refusal that names each parameter which would change
 */
export function refuseSplit(
  template: CloudFormationTemplate,
  { previous, next, allowed, own }: { previous: Values; next: Values; allowed: string[]; own: Values },
): void {
  const before = parameterValues(template, { codeBucket: '', ...previous });
  const after = parameterValues(template, { codeBucket: '', ...next });
  const changed = Object.entries(PARAMETERS)
    .filter(([name, { guarded }]) => guarded && before[name] !== after[name] && !allowed.includes(name))
    .map(([name]) => name);
  // Callers would notice nothing, and the stack would give it up: a new stack could not make it again.
  const same = changed.filter((name) => !before[name] && after[name] === own[name]);
  const other = changed.filter((name) => !same.includes(name));
  const lines = [
    ...same.map((name) => `${name}=${after[name]} names what the stack has made: leave it out, and the stack keeps it`),
    ...(other.length === 0 ? [] : ['this would change on a running stack:']),
    ...other.map((name) => `  ${name} from ${said(before[name], own[name])} to ${said(after[name], own[name])}`),
    ...(other.length === 0 ? [] : WARNING),
  ];
  if (lines.length > 0) throw new Refusal(lines.join('\n'));
}

const WARNING = [
  'Callers would meet other records, and a lease could be granted twice. Nothing was changed. To do it all the same,',
  'stop every caller, and add --allow-change NAME for each.',
];

/** An empty parameter says nothing by itself: the stack then has a table or bucket of its own. */
function said(value: unknown, own: string | undefined): string {
  if (value || own === undefined) return `'${value}'`;
  return `its own '${own}'`;
}
