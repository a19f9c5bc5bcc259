import { join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import {
  deployCommand,
  drainCommand,
  historyCommand,
  liftFencesCommand,
  parametersCommand,
  resumeCommand,
} from './commands.ts';

/** The npm scripts for deployments. `npm run deploy` deploys what `npm run release` has written. */
const COMMANDS: Record<string, (args: string[]) => Promise<number>> = {
  deploy: (args) => deployCommand(join('release', `holdfast-${manifest.version}`), args),
  drain: drainCommand,
  resume: resumeCommand,
  parameters: parametersCommand,
  history: historyCommand,
  'lift-fences': liftFencesCommand,
};

const [name = '', ...args] = process.argv.slice(2);
const command = COMMANDS[name];
if (command) process.exitCode = await command(args);
else {
  console.error(`there is no command '${name}'. The commands are ${Object.keys(COMMANDS).join(', ')}`);
  process.exitCode = 64;
}
