import manifest from '../../package.json' with { type: 'json' };
import { NoEndpoint } from '../failure.ts';
import type { Verb } from '../verb.ts';

export const version: Verb = {
  summary: 'print the version of this command, and of the deployment',
  usage: '',
  words: [0, 0],
  options: {},
  example: 'holdfast version',
  async run({ output, connect, settings }) {
    const said = { holdfast: manifest.version, deployment: null as string | null, endpoint: null as string | null };
    if (!output.isJson) output.line(`holdfast ${said.holdfast}`);
    try {
      said.endpoint = settings().endpoint;
      said.deployment = (await connect().call('readHealth', {})).version;
      if (!output.isJson) output.line(`deployment ${said.deployment} (${said.endpoint})`);
    } catch (error) {
      if (!(error instanceof NoEndpoint)) throw error;
    } finally {
      if (output.isJson) output.json(said); // the version of the command is known in any case
    }
    return 0;
  },
};
