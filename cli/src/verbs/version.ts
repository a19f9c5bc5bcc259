import manifest from '../../package.json' with { type: 'json' };
import { NoEndpoint } from '../failure.ts';
import type { Settings } from '../settings.ts';
import type { Verb } from '../verb.ts';

/** How long to go on trying where no answer comes, in milliseconds. */
const TIMEOUT_MS = 5000;

export const version: Verb = {
  summary: 'say the version of this command, and that of the deployment',
  usage: '',
  words: [0, 0],
  options: {},
  notes: 'Where no endpoint is known it says its own alone.',
  example: 'holdfast version',
  async run({ output, connect, settings }) {
    const endpoint = endpointOf(settings);
    if (!output.isJson) output.line(`holdfast ${manifest.version}`);
    const deployed = endpoint && (await connect().call('readHealth', {}, { timeoutMs: TIMEOUT_MS })).version;
    if (output.isJson)
      output.json({ holdfast: manifest.version, deployment: deployed ?? null, endpoint: endpoint ?? null });
    else if (endpoint) output.line(`deployment ${deployed} (${endpoint})`);
    return 0;
  },
};

function endpointOf(settings: () => Settings): string | undefined {
  try {
    return settings().endpoint;
  } catch (error) {
    if (error instanceof NoEndpoint) return undefined;
    throw error;
  }
}
