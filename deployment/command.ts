import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import type { Change, StackEvent } from '@aws-sdk/client-cloudformation';
import { readArtifact } from './artifact.ts';
import { connect } from './aws.ts';
import { deploy, type Observer } from './deploy.ts';
import { Refusal } from './failure.ts';
import { DEPLOY_OPTIONS } from './options.ts';

const USAGE = [
  'usage: deploy --stage NAME [options]',
  '',
  ...Object.entries<{ value?: string; help: string }>(DEPLOY_OPTIONS).map(
    ([name, { value, help }]) => `  ${`--${name}${value ? ` ${value}` : ''}`.padEnd(22)}  ${help}`,
  ),
].join('\n');

/**
 * The command behind `npm run deploy` and `holdfast deploy`.
 * @param folder the release
 * @returns the exit code: 0, 1 where AWS failed, 64 where the deployment was refused
 */
export async function deployCommand(folder: string, args: string[]): Promise<number> {
  try {
    const { values } = parseArgs({
      args,
      options: {
        stage: { type: 'string' },
        region: { type: 'string' },
        param: { type: 'string', multiple: true, default: [] },
        reset: { type: 'string', multiple: true, default: [] },
        tag: { type: 'string', multiple: true, default: [] },
        'allow-change': { type: 'string', multiple: true, default: [] },
        plan: { type: 'boolean', default: false },
        yes: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      console.log(USAGE);
      return 0;
    }
    const { stage, region, plan, yes } = values;
    if (stage === undefined) throw new Refusal(`--stage is missing\n${USAGE}`);
    const artifact = await readArtifact(folder);
    const request = {
      stage,
      parameters: values.param,
      reset: values.reset,
      tags: values.tag,
      allowedChanges: values['allow-change'],
    };
    const stack = await deploy(await connect(region), { artifact, request }, observer({ plan, yes }));
    for (const { OutputKey, OutputValue } of stack?.Outputs ?? []) console.log(`${OutputKey} ${OutputValue}`);
    return 0;
  } catch (error) {
    const isRefusal = error instanceof Refusal || (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS');
    console.error((error as Error).message);
    return isRefusal ? 64 : 1;
  }
}

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
    if (yes || !process.stdin.isTTY) return true;
    const terminal = createInterface({ input: process.stdin, output: process.stdout });
    const answer = await terminal.question('Deploy these changes? [y/N] ');
    terminal.close();
    return /^y(es)?$/i.test(answer);
  },
});

function describe({ ResourceChange: change }: Change): string {
  const { Action, ResourceType, LogicalResourceId, Replacement } = change ?? {};
  return `${Action} ${ResourceType} ${LogicalResourceId}${Replacement === 'True' ? ' (replaced)' : ''}`;
}
