import { parseArgs } from 'node:util';
import type { Change, StackEvent } from '@aws-sdk/client-cloudformation';
import { readArtifact } from './artifact.ts';
import { ask } from './ask.ts';
import { connect } from './aws.ts';
import { deploy, type Observer } from './deploy.ts';
import { exitCodeOf, only, Refusal } from './failure.ts';
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
 * @param folder the release
 * @returns the exit code: 0, 1 where AWS failed, 64 where the deployment was refused
 */
export const deployCommand = (folder: string, args: string[]): Promise<number> =>
  exitCodeOf(async () => {
    const { values } = parseArgs({
      args,
      options: {
        ...{ stage: TEXTS, region: TEXTS, param: TEXTS, reset: TEXTS, tag: TEXTS, untag: TEXTS, 'allow-change': TEXTS },
        'role-arn': TEXTS,
        ...{ 'forget-pools': SWITCH, plan: SWITCH, yes: SWITCH, help: SWITCH },
      },
    });
    if (values.help) {
      console.log(USAGE);
      return;
    }
    const stage = only('stage', values.stage);
    const region = only('region', values.region);
    if (stage === undefined) throw new Refusal(`--stage is missing\n${USAGE}`);
    const artifact = await readArtifact(folder);
    const order = readRequest(artifact.template, {
      stage,
      parameters: values.param,
      reset: values.reset,
      tags: values.tag,
      untag: values.untag,
      allowedChanges: values['allow-change'],
      forgetPools: values['forget-pools'],
      roleArn: only('role-arn', values['role-arn']),
    });
    const stack = await deploy(await connect(region), { artifact, order }, observer(values));
    for (const { OutputKey, OutputValue } of stack?.Outputs ?? []) console.log(`${OutputKey} ${OutputValue}`);
  });

const observer = ({ plan, yes }: { plan: boolean; yes: boolean }): Observer => ({
  say: (line) => console.log(line),
  onChanges: (changes, isNew) => {
    const lines = changes.map(describe).sort();
    // In a new stack everything is an addition.
    console.log(isNew ? `${lines.length} resources are added` : lines.join('\n'));
  },
  onEvent: ({ ResourceStatus, ResourceType, LogicalResourceId, ResourceStatusReason: reason }: StackEvent) =>
    console.log(`${ResourceStatus} ${ResourceType} ${LogicalResourceId}${reason ? `: ${reason}` : ''}`),
  confirm: async () => {
    if (plan) return false;
    return yes || !process.stdin.isTTY || ask('Deploy these changes?');
  },
});

function describe({ ResourceChange: change }: Change): string {
  const { Action, ResourceType, LogicalResourceId, Replacement } = change ?? {};
  return `${Action} ${ResourceType} ${LogicalResourceId}${Replacement === 'True' ? ' (replaced)' : ''}`;
}
