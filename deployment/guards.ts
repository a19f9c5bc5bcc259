import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { parameterValues } from '../infrastructure/evaluate.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

/**
 * Refuses a change by which callers of a running stack would meet other tables, another bucket or another way to sign.
 * After such a change a lease could be granted twice.
 * @param allowed the parameters that the operator allows to change
 * @throws Refusal that names each parameter which would change
 */
export function refuseSplit(
  template: CloudFormationTemplate,
  { previous, next, allowed }: { previous: Values; next: Values; allowed: string[] },
): void {
  const before = parameterValues(template, { codeBucket: '', ...previous });
  const after = parameterValues(template, { codeBucket: '', ...next });
  const changed = Object.entries(PARAMETERS)
    .filter(([name, { guarded }]) => guarded && before[name] !== after[name] && !allowed.includes(name))
    .map(([name]) => `${name} from '${before[name]}' to '${after[name]}'`);
  if (changed.length === 0) return;
  throw new Refusal(
    [
      'this would change on a running stack:',
      ...changed.map((line) => `  ${line}`),
      'Callers would meet other records, and a lease could be granted twice. Nothing was changed. To do it all the same,',
      'stop every caller, and add --allow-change NAME for each.',
    ].join('\n'),
  );
}
