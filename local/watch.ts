import { spawn } from 'node:child_process';
import { join } from 'node:path';

/**
 * Runs `npm start` under Node's watcher, which starts it again when a module that it has loaded changes.
 * @param args the arguments of the command, without --watch
 */
export async function watch(args: string[]): Promise<void> {
  const start = join(import.meta.dirname, 'start.ts');
  const child = spawn(process.execPath, ['--watch', '--watch-preserve-output', start, ...args], { stdio: 'inherit' });
  const end = () => void child.kill('SIGTERM');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  if (process.env.npm_lifecycle_event === 'start') endWhenOrphaned(end);
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 0)); // null after a signal, which this process sent
  });
}

/** Ends this process when npm has ended: a signal to npm ends npm and its shell, but does not reach this process. */
export function endWhenOrphaned(end: () => void): void {
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && end(), 250).unref();
}
