import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  DEPLOY_OPTIONS,
  DRAIN_OPTIONS,
  LIFT_OPTIONS,
  PARAMETERS_OPTIONS,
  RESUME_OPTIONS,
} from '../../../deployment/options.ts';
import type { Arguments } from '../arguments.ts';
import { misuse } from '../failure.ts';
import type { Options } from '../syntax.ts';
import type { Verb } from '../verb.ts';

const FROM: Options = { from: { value: 'FOLDER', help: 'the folder of the release (that of this command)' } };

export const deploy: Verb = {
  summary: 'deploy a release of Holdfast, or change the parameters of a deployment',
  usage: '',
  words: [0, 0],
  isLocal: true,
  notes: 'It needs the folder of a release. See docs/deploy.md',
  options: { ...DEPLOY_OPTIONS, ...FROM },
  example: 'holdfast deploy --stage prod --param maxWaitSeconds=10 --plan',
  async run({ arguments: args }) {
    const { folder, commands } = await release(args);
    return commands.deployCommand(folder, given(args, DEPLOY_OPTIONS));
  },
};

export const liftFences: Verb = {
  summary: 'lift the fences of a table that was restored above every later one',
  usage: '',
  words: [0, 0],
  isLocal: true,
  notes: 'It needs the folder of a release. See docs/operations.md',
  options: { ...LIFT_OPTIONS, ...FROM },
  example: 'holdfast lift-fences --table holdfast-prod-leases-2',
  async run({ arguments: args }) {
    const { commands } = await release(args);
    return commands.liftFencesCommand(given(args, LIFT_OPTIONS));
  },
};

export const drain: Verb = {
  summary: 'stop acquire on a deployment, and wait until no lease is held',
  usage: '',
  words: [0, 0],
  isLocal: true,
  notes: 'It needs the folder of a release. See docs/operations.md',
  options: { ...DRAIN_OPTIONS, ...FROM },
  example: 'holdfast drain --stage prod',
  async run({ arguments: args }) {
    const { commands } = await release(args);
    return commands.drainCommand(given(args, DRAIN_OPTIONS));
  },
};

export const resume: Verb = {
  summary: 'start acquire again after a drain',
  usage: '',
  words: [0, 0],
  isLocal: true,
  notes: 'It needs the folder of a release. See docs/operations.md',
  options: { ...RESUME_OPTIONS, ...FROM },
  example: 'holdfast resume --stage prod',
  async run({ arguments: args }) {
    const { commands } = await release(args);
    return commands.resumeCommand(given(args, RESUME_OPTIONS));
  },
};

export const parameters: Verb = {
  summary: 'list the parameters of a deployment that differ from their defaults',
  usage: '',
  words: [0, 0],
  isLocal: true,
  notes: 'It needs the folder of a release. See docs/configuration.md',
  options: { ...PARAMETERS_OPTIONS, ...FROM },
  example: 'holdfast parameters --stage prod',
  async run({ arguments: args }) {
    const { commands } = await release(args);
    return commands.parametersCommand(given(args, PARAMETERS_OPTIONS));
  },
};

/** The SDK of AWS, which no other verb needs, is in a file of the release. */
async function release(args: Arguments): Promise<{ folder: string; commands: Commands }> {
  const folder = resolve(args.text('from') ?? dirname(fileURLToPath(import.meta.url)));
  const file = join(folder, 'deploy.mjs');
  if (!existsSync(file)) throw misuse(`${folder} is no release of Holdfast: name one with --from`);
  return { folder, commands: await import(pathToFileURL(file).href) };
}

type Commands = typeof import('../../../deployment/commands.ts');

/** The options as they were typed, for the command of the release. */
const given = (args: Arguments, options: object): string[] =>
  Object.keys(options).flatMap((name) => [
    ...args.all(name).map((value) => `--${name}=${value}`),
    ...(args.is(name) ? [`--${name}`] : []),
  ]);
