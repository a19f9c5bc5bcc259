import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { sharedClock } from '../clock.ts';
import { isStopped, ownGroup } from '../processes.ts';
import { type FromGuard, lineOf, readMessages, type ToGuard } from './messages.ts';

/**
 * The guard of a command: a program that starts the command, and ends its process group if the supervisor cannot. It does so when the supervisor has ended in
 * any way, and when the time of the lease is over, because the supervisor may be stopped. The guard ignores all signals to the group except SIGKILL.
 *
 * The guard receives the arguments and the environment of the command over descriptor 3, whose other end only the supervisor has.
 */
const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const;
const STOPS = ['SIGTSTP', 'SIGTTIN', 'SIGTTOU'] as const;

/** How often the clock is checked, in milliseconds, because timers do not run while the machine sleeps. */
const CHECK_MS = 5000;

/** How often to check whether the command has stopped after a signal, in milliseconds, and how many times, because it may also ignore the signal. */
const STOP_CHECK_MS = 20;
const STOP_CHECKS = 250;

const { pid: guard, ppid: parent } = process;
const group = ownGroup();
const supervisor = new Socket({ fd: 3 });
let command: ChildProcess | undefined;
let deadline = Number.POSITIVE_INFINITY;
let timer: NodeJS.Timeout | undefined;
let stopTimer: NodeJS.Timeout | undefined;

const report = (message: FromGuard) => supervisor.write(lineOf(message));

/** Ends the whole group, this process included. */
const kill = () => process.kill(-group, 'SIGKILL');

/** Ends the group if its time has run out. */
function checkDeadline(): void {
  const leftMs = deadline - sharedClock();
  if (leftMs <= 0) kill();
  clearTimeout(timer);
  timer = setTimeout(checkDeadline, Math.min(leftMs, CHECK_MS));
}

function run([file = '', ...args]: string[], env: NodeJS.ProcessEnv): void {
  command = spawn(file, args, { env, stdio: 'inherit' });
  command.once('error', ({ code }: NodeJS.ErrnoException) => report(['failed', code ?? '']));
  command.once('exit', (code, signal) => report(['exited', code, signal]));
  report(['started', group, guard]);
}

/**
 * At a terminal, the parent of the guard is the job of a shell. The job ignores the signals of the terminal, so the guard stops the job when the command has
 * stopped, and the shell notices.
 */
function followStop(checks = STOP_CHECKS): void {
  clearTimeout(stopTimer);
  if (command?.pid === undefined || checks === 0) return;
  if (isStopped(command.pid)) process.kill(parent, 'SIGSTOP');
  else stopTimer = setTimeout(() => followStop(checks - 1), STOP_CHECK_MS);
}

function receive(message: ToGuard): void {
  if (message[0] === 'run') run(message[1], message[2]);
  else if (message[0] === 'end') process.exit();
  else {
    deadline = message[1];
    checkDeadline();
  }
}

process.title = 'holdfast guard';
for (const signal of SIGNALS) process.on(signal, () => {});
for (const signal of STOPS) process.on(signal, () => group === parent && followStop());
// Without a process group of its own, the guard would end other processes.
if (group !== guard && group !== parent) process.exit(1);
supervisor.on('error', kill).on('close', kill);
readMessages(supervisor, receive);
