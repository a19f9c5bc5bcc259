import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { endsWithUs } from './children.ts';

const folder = (path: string) => join(import.meta.dirname, 'peers', path);

/** What the bench compares with, and what makes it. Each is optional: what cannot be had is left out, and said. */
const STEPS = [
  {
    what: 'the npm libraries',
    made: folder('node_modules/vega/package.json'),
    command: ['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error'],
    cwd: folder('.'),
  },
  {
    what: 'the Java contestant',
    made: folder('java/target/contestant.jar'),
    command: ['mvn', '-q', '-B', 'package'],
    cwd: folder('java'),
  },
  {
    what: 'the Rust contestant',
    made: folder('rust/target/release/dynamodb-lease-contestant'),
    command: ['cargo', 'build', '--release', '--locked', '--quiet'],
    cwd: folder('rust'),
  },
];

/** Installs and builds what is not there yet, or with `again` all. */
export async function installPeers({ again = false } = {}): Promise<void> {
  for (const { what, made, command, cwd } of STEPS) {
    if (existsSync(made) && !again) continue;
    console.log(`${what}: ${command.join(' ')} in ${cwd}`);
    const why = await failure(command, cwd);
    if (why) console.log(`${what}: not made, ${why}`);
  }
}

async function failure([program = '', ...rest]: string[], cwd: string): Promise<string | undefined> {
  const child = endsWithUs(spawn(program, rest, { cwd, stdio: ['ignore', 'ignore', 'inherit'] }));
  try {
    const [code] = await once(child, 'exit');
    return code === 0 ? undefined : `${program} ended with exit code ${code}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? `there is no ${program} here` : String(error);
  }
}

if (import.meta.main) await installPeers({ again: true });
