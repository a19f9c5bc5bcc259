import { spawn } from 'node:child_process';
import { join } from 'node:path';

/**
 * Runs `npm start` under Node's own watcher: it starts again when a module that it has loaded changes.
 * @param args those of the command, without --watch
 */
export async function watch(args: string[]): Promise<void> {
  const start = join(import.meta.dirname, 'start.ts');
  const child = spawn(process.execPath, ['--watch', '--watch-preserve-output', start, ...args], { stdio: 'inherit' });
  const end = () => void child.kill('SIGTERM');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  if (process.env.npm_lifecycle_event === 'start') onceOrphaned(end);
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 0)); // null after a signal, which this process sent
  });
}

/** A signal to npm alone ends npm and the shell that it runs scripts in, and does not come through to here. */
export function onceOrphaned(end: () => void): void {
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && end(), 250).unref();
}
