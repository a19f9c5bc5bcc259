import manifest from '../package.json' with { type: 'json' };
import { Arguments, suggestion } from './arguments.ts';
import { connect } from './connection.ts';
import { refuseDebugger } from './debugger.ts';
import { EXIT } from './exit-codes.ts';
import { exitCodeOf, messageOf, misuse } from './failure.ts';
import { helpOf, overview } from './help.ts';
import { Output, unwritten } from './output.ts';
import { readSettings, type Settings } from './settings.ts';
import { VERBS } from './verbs.ts';

let output = new Output({ json: false, quiet: false });

async function main([name = '', ...args]: string[]): Promise<number> {
  if (name === 'help' && args[0] !== undefined) return main([args[0], '--help']);
  if (['--help', '-h', 'help', ''].includes(name)) {
    (name ? process.stdout : process.stderr).write(`${overview(VERBS)}\n`);
    return name ? 0 : exitCodeOf(misuse(''));
  }
  if (name === '--version' || name === '-v') {
    output.line(manifest.version);
    return 0;
  }
  let settings: Settings | undefined;
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  try {
    if (!verb) throw misuse(`there is no verb '${name}'${suggestion(name, Object.keys(VERBS))}`);
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
    const timeoutMs = (given.seconds('timeout', { min: 0 }) ?? 30) * 1000;
    return await verb.run({
      arguments: given,
      output,
      settings: known,
      connect: (options) => connect(known(), { timeoutMs, onRetry: (why) => output.note(why), ...options }),
    });
  } catch (error) {
    const exitCode = exitCodeOf(error);
    output.progress.end();
    output.complaint(messageOf(error, settings?.endpoint));
    if (exitCode === exitCodeOf(misuse(''))) output.complaint(`see holdfast ${verb ? `${name} ` : ''}--help`);
    return exitCode;
  }
}

refuseDebugger();

// A command and its lease must go on even if standard error was closed.
process.stderr.on('error', () => {});

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader may close the pipe, as in `holdfast status | head`.
  if (error.code !== 'EPIPE') output.complaint(unwritten(error).message);
  process.exit(error.code === 'EPIPE' ? 0 : EXIT.refused);
});

main(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
