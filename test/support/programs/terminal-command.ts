/** Runs its arguments as `holdfast run` does, with the shell that is the first of them. LOST in the environment says that the lease is lost. */
import { Command } from '../../../cli/src/run/command.ts';

const [shell = '', ...words] = process.argv.slice(2);
const isLost = process.env.LOST !== undefined;
const command = new Command(words, {
  env: process.env,
  remainingMs: 60_000,
  shell: shell.split(' '),
  mayContinue: () => !isLost,
});
if (isLost) process.on('SIGCONT', () => command.kill());
const code = await command.exited;
await command.kill();
process.exit(code);
