import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import type { Aws } from './aws.ts';
import { Refusal } from './failure.ts';
import { findStack, valuesOf } from './stack.ts';
import type { Values } from './values.ts';

/** The most characters that IAM accepts in the name of a role. */
const MAX_ROLE_NAME = 64;

/**
 * The names of roles contain the stage and the region, so a stage may be longer in a region with a short name.
 * @param values the parameters and the pseudo parameters
 * @throws Refusal that says how long the stage may be
 */
export function checkStageLength(template: CloudFormationTemplate, values: Values): void {
  const { stage = '', 'AWS::Region': region } = values;
  const names = Object.values(evaluate(template, values).Resources).map(({ Properties }) => Properties?.RoleName);
  const longest = Math.max(...names.map((name) => (typeof name === 'string' ? name.length : 0)));
  if (longest <= MAX_ROLE_NAME) return;
  throw new Refusal(
    `the stage must have at most ${stage.length - longest + MAX_ROLE_NAME} characters in ${region}, not ${stage.length}: the name of a role has at most ${MAX_ROLE_NAME}`,
  );
}

/**
 * A namespace has a state machine `holdfast-<stage>-<namespace>-exclusive`. The stage `<stage>-<namespace>` has one of the same name, so the two cannot
 * both exist.
 * @param previous the parameters of the current stack
 * @throws Refusal if another stage already has the name
 */
export async function checkNamesakes(aws: Aws, { previous, next }: { previous: Values; next: Values }): Promise<void> {
  const { stage = '' } = next;
  const former = namespacesOf(previous);
  for (const namespace of namespacesOf(next).filter((name) => !former.includes(name)))
    if ((await findStack(aws, `holdfast-${stage}-${namespace}`)).stack)
      throw new Refusal(
        `namespaces must not contain ${namespace}: the stage ${stage}-${namespace} has a state machine of the same name`,
      );
  if (previous.stage !== undefined) return;
  const parts = stage.split('-');
  for (let splitAt = 1; splitAt < parts.length; splitAt += 1) {
    const [other, namespace] = [parts.slice(0, splitAt).join('-'), parts.slice(splitAt).join('-')];
    const { stack } = await findStack(aws, `holdfast-${other}`);
    if (stack && namespacesOf(valuesOf(stack)).includes(namespace))
      throw new Refusal(
        `the stage must not be ${stage}: the namespace ${namespace} of the stage ${other} has a state machine of the same name`,
      );
  }
}

const namespacesOf = ({ namespaces = '' }: Values): string[] => namespaces.split(',').filter((name) => name !== '');
