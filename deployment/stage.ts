import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import type { Aws } from './aws.ts';
import { Refusal } from './failure.ts';
import { find, valuesOf } from './stack.ts';
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

/**
 * The state machine of a namespace is named `holdfast-<stage>-<namespace>-exclusive`, and so is that of the stage `<stage>-<namespace>`.
 * @param previous the parameters of the stack that is there
 * @throws Refusal if another stage has the name already
 */
export async function checkNamesakes(aws: Aws, { previous, next }: { previous: Values; next: Values }): Promise<void> {
  const { stage = '' } = next;
  const former = namespacesOf(previous);
  for (const namespace of namespacesOf(next).filter((name) => !former.includes(name)))
    if ((await find(aws, `holdfast-${stage}-${namespace}`)).stack)
      throw new Refusal(
        `namespaces must not have ${namespace}: the stage ${stage}-${namespace} has a state machine of the same name`,
      );
  if (previous.stage !== undefined) return;
  const parts = stage.split('-');
  for (let at = 1; at < parts.length; at += 1) {
    const [other, namespace] = [parts.slice(0, at).join('-'), parts.slice(at).join('-')];
    const { stack } = await find(aws, `holdfast-${other}`);
    if (stack && namespacesOf(valuesOf(stack)).includes(namespace))
      throw new Refusal(
        `the stage must not be ${stage}: the namespace ${namespace} of the stage ${other} has a state machine of the same name`,
      );
  }
}

const namespacesOf = ({ namespaces = '' }: Values): string[] => namespaces.split(',').filter((name) => name !== '');
