import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { readOptions } from '../local/options.ts';
import { endsWithUs } from './children.ts';

const folder = (path: string) => join(import.meta.dirname, 'libraries', path);

/** What the bench compares with, the command that makes it, and its sources. All of it is optional: what cannot be made is left out, and named. */
const STEPS = [
  {
    what: 'the npm libraries',
    made: folder('node_modules/.package-lock.json'),
    from: [folder('package-lock.json')],
    command: ['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error'],
    cwd: folder('.'),
  },
  {
    what: 'the Java contestants',
    made: folder('java/target/contestant.jar'),
    from: [
      folder('java/pom.xml'),
      ...['Contestant', 'CuratorContestant', 'Scenarios'].map((name) =>
        folder(`java/src/main/java/holdfast/bench/${name}.java`),
      ),
    ],
    command: ['mvn', '-q', '-B', 'package'],
    cwd: folder('java'),
  },
  {
    what: 'the Go contestant',
    made: folder('etcd/target/etcd-contestant'),
    from: [folder('etcd/go.sum'), folder('etcd/main.go'), folder('etcd/hold.go')],
    command: ['go', 'build', '-o', 'target/etcd-contestant', '.'],
    cwd: folder('etcd'),
  },
  {
    what: 'the Rust contestant',
    made: folder('rust/target/release/dynamodb-lease-contestant'),
    from: [folder('rust/Cargo.lock'), folder('rust/src/main.rs')],
    command: ['cargo', 'build', '--release', '--locked', '--quiet'],
    cwd: folder('rust'),
  },
];

/** Installs and builds what is missing or older than its sources, or with `again` everything. @param except words in the names of what to leave out */
export async function installLibraries({ again = false, except = [] as string[] } = {}): Promise<void> {
  for (const { what, made, from, command, cwd } of STEPS) {
    if (except.some((word) => what.includes(word))) continue;
    if (isNewer(made, from) && !again) continue;
    console.log(`${what}: ${command.join(' ')} in ${cwd}`);
    const why = await failure(command, cwd);
    if (why) console.log(`${what}: not made, ${why}`);
  }
}

const changedAt = (file: string): number =>
  statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY;
const isNewer = (made: string, from: string[]): boolean => from.every((file) => changedAt(made) >= changedAt(file));

async function failure([program = '', ...rest]: string[], cwd: string): Promise<string | undefined> {
  const child = endsWithUs(spawn(program, rest, { cwd, stdio: ['ignore', 'ignore', 'inherit'] }));
  try {
    const [code] = await once(child, 'exit');
    return code === 0 ? undefined : `${program} ended with exit code ${code}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? `there is no ${program} here` : String(error);
  }
}

if (import.meta.main) {
  const { except } = readOptions({ except: { type: 'string', multiple: true } }).values;
  await installLibraries({ again: except === undefined, except });
}
