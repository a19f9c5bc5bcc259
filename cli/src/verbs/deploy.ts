import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DEPLOY_OPTIONS } from '../../../deployment/options.ts';
import { misuse } from '../failure.ts';
import type { Verb } from '../verb.ts';

export const deploy: Verb = {
  summary: 'deploy a release of Holdfast, or change the parameters of a deployment',
  usage: '',
  words: [0, 0],
  isLocal: true,
  notes:
    'It needs the folder of a release, where this command lies unless --from names another one. See docs/deploy.md',
  options: {
    ...DEPLOY_OPTIONS,
    from: { value: 'FOLDER', help: 'the release (else the folder of this command)' },
  },
  example: 'holdfast deploy --stage prod --param maxWaitSeconds=10 --plan',
  async run({ arguments: args }) {
    const folder = resolve(args.text('from') ?? dirname(fileURLToPath(import.meta.url)));
    const file = join(folder, 'deploy.mjs');
    if (!existsSync(file)) throw misuse(`${folder} is no release of Holdfast: name one with --from`);
    // The SDK of AWS, which no other verb needs, is in this file alone.
    const { deployCommand } = await import(pathToFileURL(file).href);
    const given = Object.keys(DEPLOY_OPTIONS).flatMap((name) => [
      ...args.all(name).map((value) => `--${name}=${value}`),
      ...(args.is(name) ? [`--${name}`] : []),
    ]);
    return deployCommand(folder, given);
  },
};
