import { constants } from 'node:os';
import { load } from './load.ts';

/** When to look for a debugger after the start, in milliseconds. On a busy machine Node may open it late. */
const LOOKS_MS = [0, 100, 1000];

/**
 * Keeps SIGUSR1 from opening Node's debugger, in which each user of this machine could use the caller's credentials. The signal ends
 * the process instead, unless a verb listens to it. Node opens the debugger by itself until a module can run, so it is closed again.
 */
export function refuseDebugger(): void {
  const end = () => {
    if (process.listeners('SIGUSR1').at(-1) === end) process.exit(128 + constants.signals.SIGUSR1);
  };
  process.on('SIGUSR1', end);
  if (!/--inspect/.test(`${process.execArgv} ${process.env.NODE_OPTIONS}`))
    for (const ms of LOOKS_MS) setTimeout(closeDebugger, ms).unref();
}

function closeDebugger(): void {
  const inspector = load('node:inspector') as typeof import('node:inspector');
  if (inspector.url() === undefined) return;
  inspector.close();
  process.emit('SIGUSR1');
}
