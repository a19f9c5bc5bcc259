import { parseArgs } from 'node:util';
import type { StackEvent } from '@aws-sdk/client-cloudformation';
import { ask, assertCanAsk } from './ask.ts';
import { connect } from './aws.ts';
import { drain, existingStack, resume } from './drain.ts';
import { DECLINED, exitCodeOf, only, Refusal } from './failure.ts';
import { deployedTemplate, valuesOf } from './stack.ts';

export const TEXTS = { type: 'string', multiple: true, default: [] as string[] } as const;
const SWITCH = { type: 'boolean', default: false } as const;
const LOCATION = { stage: TEXTS, region: TEXTS, account: TEXTS };

/** How long a drain waits by default, in seconds. */
const PATIENCE_SECONDS = '3600';

/**
 * `holdfast drain`: stops acquire, and waits until the stage is no longer in use.
 * @returns the exit code: 0, 1 if the stage is still in use or AWS failed, 64 if it was refused
 */
export const drainCommand = (args: string[]): Promise<number> =>
  exitCodeOf(async () => {
    const { values } = parseArgs({ args, options: { ...LOCATION, timeout: TEXTS, yes: SWITCH } });
    const { stage, location } = locationOf('drain', values);
    const timeout = only('timeout', values.timeout) ?? PATIENCE_SECONDS;
    if (!/^\d{1,6}$/.test(timeout)) throw new Refusal(`--timeout must be whole seconds, not '${timeout}'`);
    assertCanAsk(values.yes);
    const isDone = await drain(
      await connect(location),
      { stage, timeoutMs: Number(timeout) * 1000 },
      observer(values.yes),
    );
    return isDone ? 0 : DECLINED;
  });

/**
 * `holdfast resume`: starts acquire again.
 * @returns the exit code: 0, 1 if AWS failed or the operator answered no, 64 if it was refused
 */
export const resumeCommand = (args: string[]): Promise<number> =>
  exitCodeOf(async () => {
    const { values } = parseArgs({ args, options: { ...LOCATION, yes: SWITCH } });
    const { stage, location } = locationOf('resume', values);
    assertCanAsk(values.yes);
    return (await resume(await connect(location), { stage }, observer(values.yes))) ? 0 : DECLINED;
  });

/**
 * `holdfast parameters`: prints the parameters of a stack that differ from their defaults, or all. It changes nothing.
 * @returns the exit code: 0, 1 if AWS failed, 64 if it was refused
 */
export const parametersCommand = (args: string[]): Promise<number> =>
  exitCodeOf(async () => {
    const { values } = parseArgs({ args, options: { ...LOCATION, all: SWITCH } });
    const { stage, location } = locationOf('parameters', values);
    const aws = await connect(location);
    const stack = await existingStack(aws, stage);
    const { Parameters = {} } = await deployedTemplate(aws, stack.StackName);
    const isDefault = (name: string, value: string) => String(Parameters[name]?.Default) === value;
    const shown = Object.entries(valuesOf(stack)).filter(([name, value]) => values.all || !isDefault(name, value));
    for (const [name, value] of shown.toSorted(([one], [other]) => (one < other ? -1 : 1)))
      console.log(`${name} ${value}`.trim());
    return 0;
  });

/** @throws Refusal if the stage is missing, or an option is given twice */
export function locationOf(command: string, options: { stage: string[]; region: string[]; account: string[] }) {
  const stage = only('stage', options.stage);
  if (stage === undefined) throw new Refusal(`usage: ${command} --stage NAME`);
  return { stage, location: { region: only('region', options.region), account: only('account', options.account) } };
}

const observer = (yes: boolean) => ({
  say: (line: string) => console.log(line),
  onEvent: ({ ResourceStatus, LogicalResourceId, ResourceStatusReason: reason }: StackEvent) =>
    console.log(`${ResourceStatus} ${LogicalResourceId}${reason ? `: ${reason}` : ''}`),
  confirm: async (question: string) => yes || ask(question),
});
