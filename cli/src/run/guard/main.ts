import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { sharedClock } from '../clock.ts';
import { isStopped, ownGroup } from '../processes.ts';
import { type FromGuard, lineOf, readMessages, type ToGuard } from './messages.ts';

/**
 * The guard of a command: a program in the process group of the command, which is also its parent. It ends the group when the supervisor has
 * ended in any way, and when the time of the lease is over, for a supervisor that is stopped. It outlives all signals to the group but SIGKILL.
 *
 * The guard receives the arguments and the environment of the command over descriptor 3, whose other end only the supervisor holds.
 */
const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const;
const STOPS = ['SIGTSTP', 'SIGTTIN', 'SIGTTOU'] as const;

/** The longest time between two looks at the clock, in milliseconds: timers do not run while the machine sleeps. */
const LOOK_MS = 5000;

/** How often to look whether the command has stopped, and how often at most: it may take its time, or go on. */
const STOP_LOOK_MS = 20;
const STOP_LOOKS = 250;

const { pid: guard, ppid: parent } = process;
const group = ownGroup();
const supervisor = new Socket({ fd: 3 });
let command: ChildProcess | undefined;
let deadline = Number.POSITIVE_INFINITY;
let timer: NodeJS.Timeout | undefined;
let stopTimer: NodeJS.Timeout | undefined;

const tell = (message: FromGuard) => supervisor.write(lineOf(message));

/** Ends the whole group, this process included. */
const kill = () => process.kill(-group, 'SIGKILL');

function look(): void {
  const leftMs = deadline - sharedClock();
  if (leftMs <= 0) kill();
  clearTimeout(timer);
  timer = setTimeout(look, Math.min(leftMs, LOOK_MS));
}

function run([file = '', ...args]: string[], env: NodeJS.ProcessEnv): void {
  command = spawn(file, args, { env, stdio: 'inherit' });
  command.once('error', ({ code }: NodeJS.ErrnoException) => tell(['failed', code ?? '']));
  command.once('exit', (code, signal) => tell(['exited', code, signal]));
  tell(['started', group, guard]);
}

/** At a terminal the parent is the job of a shell. The shell sees that the job has stopped by its parent, which has no terminal signals. */
function followStop(looks = STOP_LOOKS): void {
  clearTimeout(stopTimer);
  if (command?.pid === undefined || looks === 0) return;
  if (isStopped(command.pid)) process.kill(parent, 'SIGSTOP');
  else stopTimer = setTimeout(() => followStop(looks - 1), STOP_LOOK_MS);
}

function receive(message: ToGuard): void {
  if (message[0] === 'run') run(message[1], message[2]);
  else if (message[0] === 'end') process.exit();
  else {
    deadline = message[1];
    look();
  }
}

process.title = 'holdfast guard';
for (const signal of SIGNALS) process.on(signal, () => {});
for (const signal of STOPS) process.on(signal, () => group === parent && followStop());
// Without a process group of its own, the guard would end other processes.
if (group !== guard && group !== parent) process.exit(1);
supervisor.on('error', kill).on('close', kill);
readMessages(supervisor, receive);
