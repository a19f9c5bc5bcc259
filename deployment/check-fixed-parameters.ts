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

interface Change {
  /** The template that is deployed now. */
  deployed: CloudFormationTemplate;
  previous: Values;
  next: Values;
  /** The names of the parameters that the operator allows to change. */
  allowed: string[];
  /** For each parameter of a table or the bucket, the name that the stack makes up if the parameter is empty. */
  stackNames: Values;
  /** The pseudo parameters for the account and the region. */
  pseudoValues: Values;
}

/**
 * Refuses an update after which callers of a running stack would use other tables, another bucket or another way to sign: a lease could then
 * be granted twice.
 * @param template the template to deploy
 * @returns the value for the parameter `allowChange`, so that the change check of the stack also allows what the operator allows
 * @throws Refusal that names each parameter which would change
 */
export function checkFixedParameters(template: CloudFormationTemplate, change: Change): string {
  const { deployed, previous, next, allowed, stackNames, pseudoValues } = change;
  const after = checkedIn(template, { ...next, ...pseudoValues });
  const changes = changesToAllow(checkedIn(deployed, { ...previous, ...pseudoValues }), after);
  const isKnown = ({ name }: ParameterChange) => name in (template.Parameters ?? {});
  const notAllowed = changes.filter((one) => isKnown(one) && !allowed.includes(one.name));
  const unknownToRelease = changes.filter((one) => !isKnown(one));
  // If the parameter names the table that the stack made itself, CloudFormation removes the table from the stack, and a new stack cannot create it.
  const generatedNames = Object.keys(stackNames).filter(
    (name) => !previous[name] && next[name] && next[name] === stackNames[name] && !allowed.includes(name),
  );
  const lines = [
    ...generatedNames.map(
      (name) => `${name}=${stackNames[name]} names what the stack has created itself: leave the parameter out`,
    ),
    ...unknownToRelease.map(
      ({ name, from }) => `${name}='${from}': this release does not have the parameter. ${UNKNOWN}`,
    ),
    ...(notAllowed.length === 0 ? [] : ['this would change on a running stack:']),
    ...notAllowed.map(
      ({ name, from, to }) => `  ${name} from ${said(from, stackNames[name])} to ${said(to, stackNames[name])}`,
    ),
    ...(notAllowed.length === 0 ? [] : WARNING),
  ];
  if (lines.length > 0) throw new Refusal(lines.join('\n'));
  return changes.map(allowanceOf).join(' ');
}

/** The values that the change check of a template compares. */
function checkedIn(template: CloudFormationTemplate, values: Values): CheckedParameters {
  const { [CHANGE_CHECK]: written } = template.Resources;
  if (!written) throw new Error('the template has no change check');
  // To evaluate the whole template would take a hundred times as long.
  const part = { ...template, Resources: { [CHANGE_CHECK]: written }, Outputs: {} };
  const check = evaluate(part, { codeBucket: '', ...values }).Resources[CHANGE_CHECK];
  return Object(check?.Properties) as CheckedParameters;
}

const UNKNOWN =
  'Callers would use other records, and a lease could be granted twice. Nothing was changed. Deploy a release that has the parameter.';

const WARNING = [
  'Callers would use other records, and a lease could be granted twice. Nothing was changed. To make the change nevertheless,',
  'stop every caller, and add --allow-change NAME for each parameter.',
];

const said = (value: string, stackName: string | undefined): string =>
  value === stackName ? `its own '${stackName}'` : `'${value}'`;
