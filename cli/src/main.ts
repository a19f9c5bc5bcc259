import manifest from '../package.json' with { type: 'json' };
import { Arguments } from './arguments.ts';
import { connect } from './connection.ts';
import { refuseDebugger } from './debugger.ts';
import { exitCodeOf, messageOf, misuse } from './failure.ts';
import { helpOf, overview } from './help.ts';
import { Output } from './output.ts';
import { readSettings, type Settings } from './settings.ts';
import { VERBS } from './verbs.ts';

async function main([name = '', ...args]: string[]): Promise<number> {
  let output = new Output({ json: false, quiet: false });
  if (['--help', '-h', 'help', ''].includes(name)) {
    (name ? process.stdout : process.stderr).write(`${overview(VERBS)}\n`);
    return name ? 0 : exitCodeOf(misuse(''));
  }
  if (name === '--version') {
    output.line(manifest.version);
    return 0;
  }
  let settings: Settings | undefined;
  try {
    const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
    if (!verb) throw misuse(`there is no verb '${name}'`);
    const given = new Arguments(verb, args);
    if (given.is('help')) {
      process.stdout.write(`${helpOf(name, verb)}\n`);
      return 0;
    }
    const known = () => {
      settings ??= readSettings(given);
      return settings;
    };
    output = new Output({ json: given.is('json'), quiet: given.is('quiet') });
    const timeoutMs = (given.number('timeout', { least: 0 }) ?? 30) * 1000;
    return await verb.run({
      arguments: given,
      output,
      settings: known,
      connect: (options) => connect(known(), { timeoutMs, onRetry: (why) => output.note(why), ...options }),
    });
  } catch (error) {
    const exitCode = exitCodeOf(error);
    output.complaint(messageOf(error, settings?.endpoint));
    if (exitCode === exitCodeOf(misuse(''))) output.complaint(`see holdfast ${VERBS[name] ? `${name} ` : ''}--help`);
    return exitCode;
  }
}

refuseDebugger();

// The reader of the output may close the pipe: `holdfast status | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

main(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
