import { constants } from 'node:os';
import { load } from './load.ts';

/** When to check for a debugger, in milliseconds after the start. On a busy machine, Node may open it late. */
const CHECKS_MS = [0, 100, 1000];

/**
 * Keeps SIGUSR1 from opening Node's debugger, through which other users of this machine could use the caller's credentials. The signal ends the process
 * instead, unless a verb listens to it. Before the first module runs, Node still opens the debugger, so it is closed again.
 */
export function refuseDebugger(): void {
  const end = () => {
    if (process.listeners('SIGUSR1').at(-1) === end) process.exit(128 + constants.signals.SIGUSR1);
  };
  process.on('SIGUSR1', end);
  if (!/--inspect/.test(`${process.execArgv} ${process.env.NODE_OPTIONS}`))
    for (const ms of CHECKS_MS) setTimeout(closeDebugger, ms).unref();
}

function closeDebugger(): void {
  const inspector = load('node:inspector') as typeof import('node:inspector');
  if (inspector.url() === undefined) return;
  inspector.close();
  process.emit('SIGUSR1');
}
