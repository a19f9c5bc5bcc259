import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import { CHANGE_CHECK } from '../infrastructure/logical-ids.ts';
import {
  allowanceOf,
  type CheckedParameters,
  changesToAllow,
  type ParameterChange,
} from '../shared/fixed-parameters.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

/** A change of a stack, as its fixed parameters matter to it. */
interface Change {
  /** The template of the stack. */
  deployed: CloudFormationTemplate;
  previous: Values;
  next: Values;
  /** The names of the parameters that the operator allows to change. */
  allowed: string[];
  /** By parameter the tables and the bucket that the stack makes if the parameter is empty. */
  own: Values;
  /** The pseudo parameters of the stack's place. */
  place: Values;
}

/**
 * Refuses a change by which callers of a running stack would meet other tables, another bucket or another way to sign.
 * After such a change a lease could be granted twice.
 * @param template the one to deploy
 * @returns the value of the parameter `allowChange`, by which the change check of the stack allows what the operator allows
 * @throws Refusal that names each parameter which would change
 */
export function checkFixedParameters(template: CloudFormationTemplate, change: Change): string {
  const { deployed, previous, next, allowed, own, place } = change;
  const after = checkedIn(template, { ...next, ...place });
  const changes = changesToAllow(checkedIn(deployed, { ...previous, ...place }), after);
  const isKnown = ({ name }: ParameterChange) => name in (template.Parameters ?? {});
  const other = changes.filter((one) => isKnown(one) && !allowed.includes(one.name));
  const unknown = changes.filter((one) => !isKnown(one));
  // Callers would notice nothing, and the stack would give it up: a new stack could not make it again.
  const same = Object.keys(own).filter(
    (name) => !previous[name] && next[name] && next[name] === own[name] && !allowed.includes(name),
  );
  const lines = [
    ...same.map((name) => `${name}=${own[name]} names what the stack has made: leave it out, and the stack keeps it`),
    ...unknown.map(({ name, from }) => `${name}='${from}': this release does not have the parameter. ${UNKNOWN}`),
    ...(other.length === 0 ? [] : ['this would change on a running stack:']),
    ...other.map(({ name, from, to }) => `  ${name} from ${said(from, own[name])} to ${said(to, own[name])}`),
    ...(other.length === 0 ? [] : WARNING),
  ];
  if (lines.length > 0) throw new Refusal(lines.join('\n'));
  return changes.map(allowanceOf).join(' ');
}

/** The values that the change check of a template compares. */
function checkedIn(template: CloudFormationTemplate, values: Values): CheckedParameters {
  const { [CHANGE_CHECK]: written } = template.Resources;
  if (!written) throw new Error('the template has no change check');
  // Not the whole template, which takes a hundred times as long.
  const part = { ...template, Resources: { [CHANGE_CHECK]: written }, Outputs: {} };
  const check = evaluate(part, { codeBucket: '', ...values }).Resources[CHANGE_CHECK];
  return Object(check?.Properties) as CheckedParameters;
}

const UNKNOWN =
  'Callers would use other records, and a lease could be granted twice. Nothing was changed. Deploy a release that has the parameter.';

const WARNING = [
  'Callers would meet other records, and a lease could be granted twice. Nothing was changed. To do it all the same,',
  'stop every caller, and add --allow-change NAME for each.',
];

const said = (value: string, own: string | undefined): string => (value === own ? `its own '${own}'` : `'${value}'`);
