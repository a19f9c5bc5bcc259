import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  DEPLOY_OPTIONS,
  DRAIN_OPTIONS,
  HISTORY_OPTIONS,
  LIFT_OPTIONS,
  PARAMETERS_OPTIONS,
  RESUME_OPTIONS,
} from '../../../deployment/options.ts';
import type { Arguments } from '../arguments.ts';
import { misuse } from '../failure.ts';
import type { Options } from '../syntax.ts';
import type { Verb } from '../verb.ts';

const FROM: Options = { from: { value: 'FOLDER', help: 'the folder of the release (the folder of this command)' } };

interface ReleaseVerb extends Pick<Verb, 'summary' | 'example' | 'options'>, Partial<Pick<Verb, 'usage' | 'words'>> {
  /** The page that the help names. */
  page: string;
  command(commands: Commands, args: string[], folder: string): Promise<number>;
}

/** Makes a verb whose code is in the file `deploy.mjs` of a release, because that code needs the AWS SDK. */
const releaseVerb = ({ page, options, command, ...verb }: ReleaseVerb): Verb => ({
  usage: '',
  words: [0, 0],
  isLocal: true,
  notes: `This verb needs the folder of a release. See docs/${page}.md`,
  ...verb,
  options: { ...options, ...FROM },
  async run({ arguments: args }) {
    const { folder, commands } = await release(args);
    return command(commands, [...given(args, options), '--', ...args.words], folder);
  },
});

export const deploy = releaseVerb({
  summary: 'deploy a release of Holdfast, or change the parameters of a deployment',
  page: 'deploy',
  options: DEPLOY_OPTIONS,
  example: 'holdfast deploy --stage prod --param maxWaitSeconds=10 --plan',
  command: ({ deployCommand }, args, folder) => deployCommand(folder, args),
});

export const liftFences = releaseVerb({
  summary: 'raise the fences of a restored table above all that were granted since the backup',
  page: 'operations',
  options: LIFT_OPTIONS,
  example: 'holdfast lift-fences --table holdfast-prod-leases-2',
  command: ({ liftFencesCommand }, args) => liftFencesCommand(args),
});

export const drain = releaseVerb({
  summary: 'refuse new leases on a deployment, and wait until none is held',
  page: 'operations',
  options: DRAIN_OPTIONS,
  example: 'holdfast drain --stage prod',
  command: ({ drainCommand }, args) => drainCommand(args),
});

export const resume = releaseVerb({
  summary: 'grant leases again after a drain',
  page: 'operations',
  options: RESUME_OPTIONS,
  example: 'holdfast resume --stage prod',
  command: ({ resumeCommand }, args) => resumeCommand(args),
});

export const parameters = releaseVerb({
  summary: 'list the parameters of a deployment that differ from their defaults',
  page: 'configuration',
  options: PARAMETERS_OPTIONS,
  example: 'holdfast parameters --stage prod',
  command: ({ parametersCommand }, args) => parametersCommand(args),
});

export const history = releaseVerb({
  summary: 'show who had a key, from the logs of a deployment',
  usage: 'KEY',
  words: [1, 1],
  page: 'cli',
  options: HISTORY_OPTIONS,
  example: 'holdfast history nightly-report --since 7d --stage prod',
  command: ({ historyCommand }, args) => historyCommand(args),
});

async function release(args: Arguments): Promise<{ folder: string; commands: Commands }> {
  const folder = resolve(args.text('from') ?? dirname(fileURLToPath(import.meta.url)));
  const file = join(folder, 'deploy.mjs');
  if (!existsSync(file)) throw misuse(`${folder} is not a release of Holdfast: give the folder of one by --from`);
  return { folder, commands: await import(pathToFileURL(file).href) };
}

type Commands = typeof import('../../../deployment/commands.ts');

/** The options as they were typed, to pass them to the code of the release. */
const given = (args: Arguments, options: object): string[] =>
  Object.keys(options).flatMap((name) => [
    ...args.all(name).map((value) => `--${name}=${value}`),
    ...(args.is(name) ? [`--${name}`] : []),
  ]);
