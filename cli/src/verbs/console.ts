import { randomBytes } from 'node:crypto';
import { isLocal } from '../../../clients/typescript/src/environment.ts';
import { transportFor } from '../connection.ts';
import { startConsole } from '../console/server.ts';
import { misuse } from '../failure.ts';
import type { Verb } from '../verb.ts';

/** A token that cannot be guessed, and is short enough to be typed from another screen. */
const newToken = () => randomBytes(18).toString('base64url');

export const consoleVerb: Verb = {
  summary: 'serve a page that shows who holds what',
  notes: 'Open the address that the command prints. The page calls the API with the credentials of the command.',
  usage: '',
  words: [0, 0],
  noTimeout: true,
  options: {
    write: { help: 'let the page break, cap, cancel, run next, report and clean up' },
    port: { value: 'PORT', help: 'where to listen (any free port)' },
  },
  example: 'holdfast console --write',
  async run({ arguments: args, output, settings }) {
    const { endpoint, namespace } = settings();
    const token = newToken();
    const options = { endpoint, namespace, token, write: args.is('write'), local: isLocal(endpoint) };
    const port = args.number('port', { min: 0, max: 65_535, whole: true }) ?? 0;
    const { url, stop } = await startConsole({ ...options, port, transport: transportFor(settings()) }).catch(
      ({ code }: NodeJS.ErrnoException) => {
        throw misuse(`port ${port} ${code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${code})`}: give --port`);
      },
    );
    // This comes before the address is printed, because a program that reads the address may send a signal at once.
    const ended = new Promise<void>((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
    });
    output.line(`${url}/#token=${token}`);
    await ended;
    await stop();
    return 0;
  },
};
