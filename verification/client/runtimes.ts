import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { readOptions } from '../../local/options.ts';

const HELP = `npm run verify -- runtimes: tries the client in Node 20, 22 and 24, Bun and Deno, which it installs from npm into
.data/runtimes, and in Chromium where that is installed.`;

const PROGRAMS = ['node@20.20.2', 'node@22.23.3', 'bun@1.4.5', 'deno@2.9.6'];

const { values } = readOptions({ help: { type: 'boolean', short: 'h' } });
if (values.help) console.log(HELP);
else {
  const folders = PROGRAMS.map((program) => join('.data/runtimes', program.replace('@', '-')));
  for (const [at, program] of PROGRAMS.entries())
    run('npm', ['install', '--silent', '--no-save', '--no-audit', '--no-fund', '--prefix', folders[at] ?? '', program]);
  const bins = folders.map((folder) => join(process.cwd(), folder, 'node_modules/.bin'));
  run('npx', ['vitest', 'run', 'test/client/runtimes.full.test.ts'], {
    RACES: 'full',
    CLIENT_RUNTIMES: bins.join(':'),
  });
}

function run(command: string, args: string[], env: Record<string, string> = {}): void {
  if (process.exitCode) return;
  process.exitCode = spawnSync(command, args, { stdio: 'inherit', env: { ...process.env, ...env } }).status ?? 1;
}
