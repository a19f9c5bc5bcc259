import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface Ended {
  exitCode: number;
  stdout: string;
  /** What it printed to stdout and stderr. */
  output: string;
}

/** Runs a program to its end. It throws for no exit code. @throws Error if the program cannot be started */
export const run = (command: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) =>
  new Promise<Ended>((resolve, reject) => {
    execFile(command, args, { maxBuffer: 2 ** 26, ...options }, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') reject(error);
      else resolve({ exitCode: Number(error?.code ?? 0), stdout, output: stdout + stderr });
    });
  });

/** The programs of the system and this Node, without those of this repository, which npm puts first for its scripts. */
export const PATH = [
  dirname(process.execPath),
  ...(process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules')),
].join(delimiter);

/** A new folder, as the home and the current folder of a user whose npm has nothing but a registry. `remove` must be called. */
export async function emptyFolder(registry: string) {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-empty-'));
  const env = {
    ...{ PATH, HOME: folder, USER: 'tester' },
    ...{ npm_config_registry: registry, npm_config_update_notifier: 'false', npm_config_fund: 'false' },
  };
  return {
    folder,
    /** Runs a program in the folder. */
    run: (command: string, args: string[], more: Record<string, string> = {}) =>
      run(command, args, { cwd: folder, env: { ...env, ...more } }),
    /** Starts a program in the folder that runs until it is interrupted. */
    start: (command: string, args: string[]) => {
      const child = spawn(command, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => {
          output += chunk;
        });
      const ended = once(child, 'exit');
      return {
        /** @throws Error with what it has printed, if it ends before */
        says: async (text: string): Promise<void> => {
          while (!output.includes(text)) {
            if (child.exitCode !== null) throw new Error(output);
            await delay(20);
          }
        },
        /** What Ctrl-C does. */
        interrupt: async (): Promise<void> => {
          process.kill(-(child.pid ?? 0), 'SIGINT');
          await ended;
        },
      };
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
