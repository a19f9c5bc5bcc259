import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

/** Of IAM, for the name of a role. */
const MAX_ROLE_NAME = 64;

/**
 * A role is named after the stage and the region, so a stage may be longer in a region with a short name.
 * @param values the parameters and the pseudo parameters
 * @throws Refusal that says how long the stage may be
 */
export function checkStageLength(template: CloudFormationTemplate, values: Values): void {
  const { stage = '', 'AWS::Region': region } = values;
  const names = Object.values(evaluate(template, values).Resources).map(({ Properties }) => Properties?.RoleName);
  const longest = Math.max(...names.map((name) => (typeof name === 'string' ? name.length : 0)));
  if (longest <= MAX_ROLE_NAME) return;
  throw new Refusal(
    `the stage must have at most ${stage.length - longest + MAX_ROLE_NAME} characters in ${region}, not ${stage.length}: IAM takes ${MAX_ROLE_NAME} for the name of a role`,
  );
}
