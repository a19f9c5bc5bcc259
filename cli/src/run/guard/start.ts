import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { isatty } from 'node:tty';
import { inForeground } from '../processes.ts';
import { GUARD_ARGS } from './program.ts';
import { TERMINAL_JOB } from './terminal-job.ts';

/** A guard that has not started its command yet. */
export interface Guard {
  /** The guard, or at a terminal the shell whose job is the guard. */
  child: ChildProcess;
  messages: Duplex;
  /** Messages of the shell that has the terminal: see TERMINAL_JOB. */
  control?: Duplex;
}

const SHELL = '/bin/sh';

/** The shell that can hand over the terminal. Undefined if this process does not have the terminal, or if there is no shell. */
export const terminalShell = (): string[] | undefined => (inForeground() && existsSync(SHELL) ? [SHELL] : undefined);

/** Starts a guard in a session of its own. */
export function startGuard(): Guard {
  // In a session of its own, the command could read the terminal while another job has it, so it gets no stdin then.
  const stdin = isatty(0) && !inForeground() ? 'ignore' : 'inherit';
  return start([process.execPath, ...GUARD_ARGS], { stdio: [stdin, 'inherit', 'inherit', 'pipe'], detached: true });
}

/** Starts a guard as the foreground job of the terminal. */
export function startGuardAtTerminal(shell: string[]): Guard {
  const stdio: StdioOptions = ['inherit', 'inherit', 'inherit', 'pipe', 'pipe'];
  const guard = start([...shell, '-c', TERMINAL_JOB, 'holdfast', process.execPath, ...GUARD_ARGS], { stdio });
  return { ...guard, control: guard.child.stdio[4] as Duplex };
}

function start([file = '', ...args]: string[], options: { stdio: StdioOptions; detached?: boolean }): Guard {
  // Node's variables, such as those of a debugger or a tracer, are meant for the user's command.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('NODE_')));
  const child = spawn(file, args, { ...options, env });
  const messages = child.stdio[3] as Duplex;
  for (const one of [child, messages, child.stdio[4]]) one?.on('error', () => {}); // the end of the child shows it too
  return { child, messages };
}

/** Ends a guard that has not started its command. */
export function discard({ child, messages, control }: Guard): void {
  child.kill('SIGKILL');
  messages.destroy();
  control?.destroy();
}
