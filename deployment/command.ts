import { parseArgs } from 'node:util';
import type { Change, Stack, StackEvent } from '@aws-sdk/client-cloudformation';
import { ACCEPTED_OUTPUT } from '../shared/fixed-parameters.ts';
import { readArtifact } from './artifact.ts';
import { ask, assertCanAsk } from './ask.ts';
import { connect } from './aws.ts';
import { deploy, type Observer } from './deploy.ts';
import { DECLINED, exitCodeOf, only, Refusal } from './failure.ts';
import { DEPLOY_OPTIONS } from './options.ts';
import { readRequest } from './request.ts';

const USAGE = [
  'usage: deploy --stage NAME [options]',
  '',
  ...Object.entries<{ value?: string; help: string }>(DEPLOY_OPTIONS).map(
    ([name, { value, help }]) => `  ${`--${name}${value ? ` ${value}` : ''}`.padEnd(22)}  ${help}`,
  ),
].join('\n');

const TEXTS = { type: 'string', multiple: true, default: [] as string[] } as const;
const SWITCH = { type: 'boolean', default: false } as const;

/**
 * The command behind `npm run deploy` and `holdfast deploy`.
 * @param folder the folder of the release
 * @returns the exit code: 0, 1 if AWS failed or the operator answered no, 64 if the deployment was refused
 */
export const deployCommand = (folder: string, args: string[]): Promise<number> =>
  exitCodeOf(async () => {
    const { values } = parseArgs({
      args,
      options: {
        ...{ stage: TEXTS, region: TEXTS, param: TEXTS, reset: TEXTS, tag: TEXTS, untag: TEXTS, 'allow-change': TEXTS },
        ...{ account: TEXTS, 'role-arn': TEXTS },
        ...{ create: SWITCH, plan: SWITCH, yes: SWITCH, help: SWITCH },
      },
    });
    if (values.help) {
      console.log(USAGE);
      return 0;
    }
    const stage = only('stage', values.stage);
    const { plan, yes, create } = values;
    const location = { region: only('region', values.region), account: only('account', values.account) };
    if (stage === undefined) throw new Refusal(`--stage is missing\n${USAGE}`);
    const artifact = await readArtifact(folder);
    const order = readRequest(artifact.template, {
      stage,
      parameters: values.param,
      reset: values.reset,
      tags: values.tag,
      untag: values.untag,
      allowedChanges: values['allow-change'],
      mayCreate: create || plan || !yes,
      isPlan: plan,
      roleArn: only('role-arn', values['role-arn']),
    });
    if (!plan) assertCanAsk(yes, ' and, for a new stack, --create. --plan shows the changes');
    const stack = await deploy(await connect(location), { artifact, order }, observer(yes));
    if (!stack) return plan ? 0 : DECLINED;
    for (const line of resultOf(stack)) console.log(line);
    return 0;
  });

/** The lines at the end: the outputs, and the next step. */
function resultOf({ Outputs = [] }: Stack): string[] {
  const endpoint = Outputs.find(({ OutputKey }) => OutputKey === 'ApiUrl')?.OutputValue;
  return [
    // This output is only for the change check.
    ...Outputs.filter(({ OutputKey }) => OutputKey !== ACCEPTED_OUTPUT).map(
      ({ OutputKey, OutputValue }) => `${OutputKey} ${OutputValue}`,
    ),
    ...(endpoint ? ['', 'Next:', `  export HOLDFAST_ENDPOINT=${endpoint}`, '  holdfast doctor'] : []),
  ];
}

const observer = (yes: boolean): Observer => ({
  say: (line) => console.log(line),
  onChanges: (changes, isNew) => {
    const lines = changes.map(describe).sort();
    // In a new stack, everything is added, so a list would only be long.
    console.log(isNew ? `${lines.length} resources are added` : lines.join('\n'));
  },
  onEvent: ({ ResourceStatus, ResourceType, LogicalResourceId, ResourceStatusReason: reason }: StackEvent) =>
    console.log(`${ResourceStatus} ${ResourceType} ${LogicalResourceId}${reason ? `: ${reason}` : ''}`),
  confirm: async () => yes || ask('Deploy these changes?'),
});

function describe({ ResourceChange: change }: Change): string {
  const { Action, ResourceType, LogicalResourceId, Replacement } = change ?? {};
  return `${Action} ${ResourceType} ${LogicalResourceId}${Replacement === 'True' ? ' (replaced)' : ''}`;
}
